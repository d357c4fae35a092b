//go:build integration

package integration

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDistributionNodes adds and removes nodes: pods for spot nodes fall back to on-demand nodes and return, and pods
// leave a node that announces its end in time. Users' own node rules always hold.
func TestDistributionNodes(t *testing.T) {
	t.Parallel()
	s := startSplitCluster(t, 3, 3)
	s.startServer()
	s.register()
	s.run("rules of the user", func(t *testing.T) { s.userRules(t) })
	s.run("a spot notice", func(t *testing.T) { s.notice(t) })
	s.run("all spot nodes lost", func(t *testing.T) { s.spotLost(t) })
}

// requiredZones returns alternatives for where pods may run.
func requiredZones(zones ...string) *corev1.Affinity {
	var terms []corev1.NodeSelectorTerm
	for _, zone := range zones {
		terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "topology.kubernetes.io/zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}},
		}})
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}}
}

// userRules has pods with their own node rules.
func (s *splitCluster) userRules(t *testing.T) {
	s.namespace("rules", nil)
	var zoned []workloadID
	for _, kind := range []string{"Deployment", "StatefulSet"} {
		zoned = append(zoned, s.create(manifest{
			workloadID: workloadID{kind, "rules", "zoned"}, replicas: 8, labels: enabled("custom", "3"),
			pod: func(pod *corev1.PodTemplateSpec) { pod.Spec.Affinity = requiredZones("a", "b") },
		}))
	}
	var pinned []workloadID
	for _, nodeType := range []string{onDemandNode, spotNode} {
		pinned = append(pinned, s.create(manifest{
			workloadID: workloadID{"Deployment", "rules", nodeType}, replicas: 4, labels: enabled("custom", "2"),
			pod: func(pod *corev1.PodTemplateSpec) { pod.Spec.NodeSelector = map[string]string{nodeTypeKey: nodeType} },
		}))
	}
	for _, w := range zoned {
		s.reaches(w, 3, 5)
		for _, pod := range s.podsOf(w) {
			if pod.node != onDemandNode+"-0" && pod.node != onDemandNode+"-1" && pod.node != spotNode+"-0" && pod.node != spotNode+"-1" {
				t.Errorf("pod %s of %s may only run in zones a and b, but is on %s", pod.name, w, pod.node)
			}
		}
	}
	for _, w := range pinned {
		s.becomes(w, func(c counts) bool {
			nodes := map[string]int{onDemandNode: c.onDemandNodes, spotNode: c.spotNodes}
			return c.complete() && nodes[w.name] == 4
		}, "complete on the nodes that the pods select")
	}
	s.sentinel("rules")
	for _, w := range append(zoned, pinned...) {
		s.ended(w, 0, "")
	}
}

// leaves waits until no pod of some workloads is on a node.
func (s *splitCluster) leaves(node string, workloads ...workloadID) {
	s.t.Helper()
	for _, w := range workloads {
		s.becomes(w, func(c counts) bool { return c.complete() && len(s.on(node, w)) == 0 }, "complete elsewhere than on %s", node)
	}
}

// on returns the pods of a workload on a node.
func (s *splitCluster) on(node string, w workloadID) []podState {
	return slices.DeleteFunc(s.podsOf(w), func(pod podState) bool { return pod.node != node })
}

// arrivals returns the pods of a workload that were created and scheduled on a node since a revision.
func (h *history) arrivals(w workloadID, node string, since int64) int {
	pods, _ := h.snapshot()
	made, on := map[string]int64{}, map[string]bool{}
	for _, s := range pods {
		if _, known := made[s.uid]; !known {
			made[s.uid] = s.revision
		}
		if s.workload == w && s.node == node && made[s.uid] > since {
			on[s.uid] = true
		}
	}
	return len(on)
}

// notice announces the end of one spot node through the API, and of another one with the taint of a provider's agent.
func (s *splitCluster) notice(t *testing.T) {
	s.namespace("notice", nil)
	web := s.create(manifest{workloadID: workloadID{"Deployment", "notice", "web"}, replicas: 9, labels: enabled("all-in-spot", ""), readyAfter: pause})
	db := s.create(manifest{workloadID: workloadID{"StatefulSet", "notice", "db"}, replicas: 9, labels: enabled("", ""), readyAfter: pause, set: func(set *appsv1.StatefulSetSpec) {
		set.PodManagementPolicy = appsv1.ParallelPodManagement
	}})
	plain := s.create(manifest{workloadID: workloadID{"Deployment", "notice", "plain"}, replicas: 9})
	s.reaches(web, 0, 9)
	s.reaches(db, 5, 4)
	s.becomes(plain, counts.complete, "complete")
	first, second := spotNode+"-0", spotNode+"-1"
	left := len(s.on(first, plain))

	began := time.Now()
	deadline, err := s.server.client.Interrupt(context.Background(), "real", first, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	// Two minutes after an instant between the request and its answer, of which fractions of a second may be missing.
	if earliest, latest := began.Add(119*time.Second), time.Now().Add(121*time.Second); deadline.Before(earliest) || deadline.After(latest) {
		t.Errorf("the deadline is %s, want two minutes from now, between %s and %s", deadline, earliest, latest)
	}
	announced := s.revision()
	s.leaves(first, web, db)
	t.Logf("the node was empty %s after the notice", time.Since(began).Round(time.Millisecond))
	s.reaches(web, 0, 9)
	s.reaches(db, 5, 4)

	began = time.Now()
	s.patchNode(second, `{"spec": {"taints": [{"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule", "value": "i-1"}]}}`)
	tainted := s.revision()
	s.leaves(second, web, db)
	t.Logf("the other node was empty %s after its taint", time.Since(began).Round(time.Millisecond))
	s.reaches(web, 0, 9)
	s.reaches(db, 5, 4)

	// No new pods go there either, and workloads without a split are not affected.
	s.scale(web, 14)
	s.reaches(web, 0, 14)
	for _, w := range []workloadID{web, db} {
		if n := s.arrivals(w, first, announced); n > 0 {
			t.Errorf("%d pods of %s were placed on %s after its interruption was announced", n, w, first)
		}
		if n := s.arrivals(w, second, tainted); n > 0 {
			t.Errorf("%d pods of %s were placed on %s after its taint", n, w, second)
		}
	}
	s.ended(plain, 0, "")
	if n := len(s.on(first, plain)); n != left {
		t.Errorf("%d of %d pods without a split are left on %s", n, left, first)
	}

	// The announcements are canceled.
	s.patchNode(second, `{"spec": {"taints": null}}`)
	for _, node := range []string{first, second} {
		if err := s.server.client.WithdrawInterruption(context.Background(), "real", node); err != nil {
			t.Fatal(err)
		}
	}
	eventually.True(t, "the nodes accept pods again", func() bool {
		for _, name := range []string{first, second} {
			node, err := s.client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || len(node.Spec.Taints) > 0 {
				return false
			}
		}
		return true
	})
	s.clear(s.history, "notice")
}

// revision returns the latest revision seen.
func (h *history) revision() int64 {
	pods, _ := h.snapshot()
	if len(pods) == 0 {
		return 0
	}
	return pods[len(pods)-1].revision
}

// spotLost makes all spot nodes fail at once, two for a while and one permanently.
func (s *splitCluster) spotLost(t *testing.T) {
	s.namespace("lost", nil)
	web := s.create(manifest{workloadID: workloadID{"Deployment", "lost", "web"}, replicas: 5, labels: enabled("custom", "2")})
	db := s.create(manifest{workloadID: workloadID{"StatefulSet", "lost", "db"}, replicas: 4, labels: enabled("", ""), set: func(set *appsv1.StatefulSetSpec) {
		set.PodManagementPolicy = appsv1.ParallelPodManagement
	}})
	s.reaches(web, 2, 3)
	s.reaches(db, 3, 1)
	nodes := s.nodes(spotNode)
	for _, node := range nodes {
		s.lose(node)
	}
	fellBack := func(c counts) bool {
		return c.complete() && c.spotNodes == 0 && c.onDemandNodes == c.wanted && c.onDemandLabels+c.spotLabels == c.wanted
	}
	s.becomes(web, fellBack, "complete on on-demand nodes")
	s.becomes(db, fellBack, "complete on on-demand nodes")
	s.sentinelLost(t)
	s.ended(web, 0, "")
	s.ended(db, 0, "")

	if err := s.client.CoreV1().Nodes().Delete(t.Context(), nodes[0], metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes[1:] {
		s.restore(node)
	}
	s.reaches(web, 2, 3)
	s.reaches(db, 3, 1)
}

// sentinelLost makes the server check everything while there are no spot nodes: a new workload for them is complete on
// on-demand nodes, and stays there.
func (s *splitCluster) sentinelLost(t *testing.T) {
	w := s.create(manifest{workloadID: workloadID{"Deployment", "lost", "late"}, replicas: 3, labels: enabled("all-in-spot", "")})
	s.becomes(w, func(c counts) bool { return c.complete() && c.onDemandNodes == 3 && c.spotLabels == 3 }, "complete on on-demand nodes")
	eventually.True(t, "the server reports that it fell back", func() bool {
		d := s.distribution(w)
		return d != nil && d.FallenBack == 3
	})
	s.ended(w, 0, "")
}
