//go:build integration

package integration

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// pause is how long replaced pods take to become ready: long enough that the watch shows if a second one is deleted too
// early.
const pause = 300 * time.Millisecond

// ended checks how many pods of a workload the server has ended, and that all were of one type.
func (s *splitCluster) ended(w workloadID, n int, nodeType string) {
	s.t.Helper()
	of := s.replaced(w)
	if len(of) != n {
		s.t.Errorf("the server replaced %d pods of %s, want %d:\n%s", len(of), w, n, s.story(w, s.endings()))
		return
	}
	for _, pod := range of {
		if pod.nodeType() != nodeType {
			s.t.Errorf("pod %s of %s, which was replaced, ran on %s, want a node of type %s", pod.name, w, pod.node, nodeType)
		}
	}
}

// TestDistributionChanges splits workloads that already run, and changes their splits. The server replaces no more pods
// than necessary, one at a time.
func TestDistributionChanges(t *testing.T) {
	t.Parallel()
	s := startSplitCluster(t, 2, 0)
	// These run before there are spot nodes and a server: all of their pods are on on-demand nodes.
	s.namespace("early", nil)
	early := []struct {
		manifest
		onDemand int
	}{
		{manifest{workloadID: workloadID{"Deployment", "early", "web"}, replicas: 5, labels: enabled("", "")}, 0},
		{manifest{workloadID: workloadID{"Deployment", "early", "api"}, replicas: 5, labels: enabled("custom", "3")}, 3},
		{manifest{workloadID: workloadID{"StatefulSet", "early", "db"}, replicas: 5, labels: enabled("", "")}, 3},
		{manifest{workloadID: workloadID{"StatefulSet", "early", "single"}, replicas: 1, labels: enabled("all-in-spot", "")}, 0},
		{manifest{workloadID: workloadID{"Deployment", "early", "plain"}, replicas: 3}, 3},
	}
	for _, e := range early {
		e.readyAfter = pause
		s.create(e.manifest)
	}
	for _, e := range early {
		s.becomes(e.workloadID, counts.complete, "complete")
	}
	s.addNodes(spotNode, 2, nil)
	s.startServer()
	s.register()

	s.run("workloads that run already", func(t *testing.T) {
		for _, e := range early {
			onDemand, spot := e.onDemand, e.replicas-e.onDemand
			s.becomes(e.workloadID, func(c counts) bool {
				return c.complete() && c.onDemandNodes == onDemand && c.spotNodes == spot
			}, "%d + %d", onDemand, spot)
			s.ended(e.workloadID, spot, onDemandNode)
		}
	})

	s.namespace("change", nil)
	s.run("the example of the design", func(t *testing.T) {
		for _, kind := range []string{"Deployment", "StatefulSet"} {
			w := s.create(manifest{workloadID: workloadID{kind, "change", "example"}, replicas: 5, labels: enabled("custom", "2"), readyAfter: pause})
			s.reaches(w, 2, 3)
			s.relabel(w, "custom", "3")
			s.reaches(w, 3, 2)
			s.ended(w, 1, spotNode)
		}
	})
	s.run("another mode", func(t *testing.T) {
		web := s.create(manifest{workloadID: workloadID{"Deployment", "change", "web"}, replicas: 4, labels: enabled("all-in-spot", ""), readyAfter: pause})
		db := s.create(manifest{workloadID: workloadID{"StatefulSet", "change", "db"}, replicas: 4, labels: enabled("all-in-spot", ""), readyAfter: pause})
		s.reaches(web, 0, 4)
		s.reaches(db, 0, 4)
		s.relabel(web, "all-in-on-demand", "")
		s.relabel(db, "majority-in-on-demand", "")
		s.reaches(web, 4, 0)
		s.reaches(db, 3, 1)
		s.ended(web, 4, spotNode)
		s.ended(db, 3, spotNode)
	})
	s.run("who wins", func(t *testing.T) { s.whoWins(t) })
	s.run("bad labels are refused", func(t *testing.T) {
		w := workloadID{"Deployment", "change", "web"}
		for label, value := range map[string]string{labelEnabled: "yes", labelMode: "all-in-clouds", labelCustom: "two"} {
			if err := s.tryPatch(w, `{"metadata": {"labels": {"`+label+`": "`+value+`"}}}`); err == nil {
				t.Errorf("label %s=%s was accepted", label, value)
			} else if message := err.Error(); !strings.Contains(message, label) || !strings.Contains(message, value) || !strings.Contains(message, "must be") {
				t.Errorf("label %s=%s was rejected with %q", label, value, message)
			}
		}
	})
	s.run("paused", func(t *testing.T) {
		w := s.create(manifest{workloadID: workloadID{"Deployment", "change", "paused"}, replicas: 3, labels: enabled("all-in-spot", "")})
		s.reaches(w, 0, 3)
		s.patch(w, `{"spec": {"paused": true}}`)
		s.relabel(w, "all-in-on-demand", "")
		s.sentinel("change")
		s.ended(w, 0, "")
		s.patch(w, `{"spec": {"paused": false}}`)
		s.reaches(w, 3, 0)
		s.ended(w, 3, spotNode)
	})
	s.run("unhealthy", func(t *testing.T) { s.unhealthy(t) })
	s.run("a disruption budget", func(t *testing.T) { s.budget(t) })
	s.run("switched off", func(t *testing.T) { s.switchedOff(t) })
}

// whoWins has the server's workload object request another split than the labels do.
func (s *splitCluster) whoWins(t *testing.T) {
	w := s.create(manifest{workloadID: workloadID{"Deployment", "change", "asked"}, replicas: 4, labels: enabled("custom", "1")})
	s.reaches(w, 1, 3)
	policy := &api.PropagationPolicy{Metadata: api.Metadata{Namespace: "change", Name: "asked"}}
	policy.Spec.ResourceSelectors = []api.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: "asked"}}
	put(s.server, policy)
	workload := &api.Workload{Metadata: api.Metadata{Namespace: "change", Name: "asked"}}
	workload.Spec = api.WorkloadSpec{
		APIVersion: "apps/v1", Kind: "Deployment", Replicas: number(int64(4)),
		Distribution: &api.DistributionSpec{Mode: api.ModeAllInOnDemand},
	}
	put(s.server, workload)
	s.reaches(w, 4, 0)
	s.ended(w, 3, spotNode)
	// Disabling the split takes precedence over everything else.
	s.label(w, map[string]string{labelEnabled: "false"})
	workload.Spec.Distribution.Mode = api.ModeAllInSpot
	put(s.server, workload)
	s.sentinel("change")
	s.ended(w, 3, spotNode)
	s.label(w, map[string]string{labelEnabled: "true"})
	s.reaches(w, 0, 4)
	if err := s.server.client.Delete(t.Context(), api.KeyOf(workload)); err != nil {
		t.Fatal(err)
	}
	s.reaches(w, 1, 3)
}

// unhealthy has a workload with a pod that does not become ready: none of its pods is deleted until it does.
func (s *splitCluster) unhealthy(t *testing.T) {
	never := func(pod *corev1.PodTemplateSpec) { pod.Labels["never-ready"] = "true" }
	for _, kind := range []string{"Deployment", "StatefulSet"} {
		w := s.create(manifest{workloadID: workloadID{kind, "change", "unwell"}, replicas: 3, labels: enabled("all-in-spot", ""), pod: never, set: func(set *appsv1.StatefulSetSpec) {
			set.PodManagementPolicy = appsv1.ParallelPodManagement
		}})
		s.reaches(w, 0, 3)
		pod := s.podsOf(w)[1].name
		s.setReady(w, pod, "False")
		s.becomes(w, func(c counts) bool { return c.ready == 2 }, "unwell")
		s.relabel(w, "custom", "1")
		s.sentinel("change")
		s.ended(w, 0, "")
		if d := s.distribution(w); d == nil || d.State != api.DistributionWaiting || d.Message == "" {
			t.Errorf("%s has a pod that is not ready, but the server reports %+v", w, d)
		}
		s.setReady(w, pod, "True")
		s.reaches(w, 1, 2)
		s.ended(w, 1, spotNode)
	}
}

// budget has a workload whose disruption budget allows no deletion: it keeps its pods until it does.
func (s *splitCluster) budget(t *testing.T) {
	w := s.create(manifest{workloadID: workloadID{"Deployment", "change", "budget"}, replicas: 3, labels: enabled("all-in-spot", "")})
	s.reaches(w, 0, 3)
	allow := s.forbidDisruption(w, 3)
	s.relabel(w, "custom", "1")
	eventually.True(t, "the server reports that a disruption budget blocks it", func() bool {
		d := s.distribution(w)
		return d != nil && d.State != api.DistributionReplacing && strings.Contains(d.Message, "budget")
	})
	s.ended(w, 0, "")
	allow()
	s.reaches(w, 1, 2)
	s.ended(w, 1, spotNode)
}

// forbidDisruption has a disruption budget keep all pods of a workload, of which there are so many, until it is allowed.
func (s *splitCluster) forbidDisruption(w workloadID, pods int32) (allow func()) {
	s.t.Helper()
	budgets := s.client.PolicyV1().PodDisruptionBudgets(w.namespace)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: w.name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: number(intstr.FromInt32(0)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": w.name}}},
	}
	if _, err := budgets.Create(s.t.Context(), budget, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	eventually.True(s.t, "the budget is in force", func() bool {
		b, err := budgets.Get(s.t.Context(), w.name, metav1.GetOptions{})
		return err == nil && b.Status.ObservedGeneration == b.Generation && b.Status.ExpectedPods == pods
	})
	return func() {
		if err := budgets.Delete(s.t.Context(), w.name, metav1.DeleteOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// setReady sets whether a pod is ready.
func (s *splitCluster) setReady(w workloadID, pod, status string) {
	s.t.Helper()
	patch := `{"status": {"conditions": [{"type": "Ready", "status": "` + status + `"}]}}`
	if _, err := s.client.CoreV1().Pods(w.namespace).Patch(s.t.Context(), pod, strategicMerge, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		s.t.Fatal(err)
	}
}

// switchedOff disables splits with both policies for that.
func (s *splitCluster) switchedOff(t *testing.T) {
	create := func(kind, name string) workloadID {
		return s.create(manifest{workloadID: workloadID{kind, "change", name}, replicas: 3, labels: enabled("custom", "1"), readyAfter: pause})
	}
	off := map[string]string{labelEnabled: "false"}
	kept, set := create("Deployment", "kept"), create("StatefulSet", "kept")
	s.reaches(kept, 1, 2)
	s.reaches(set, 1, 2)
	s.label(kept, off)
	s.label(set, off)
	s.sentinel("change")
	s.ended(kept, 0, "")
	s.ended(set, 0, "")
	for _, w := range []workloadID{kept, set} {
		if c := s.counts(w); !c.is(1, 2) {
			t.Errorf("the split of %s changed: %s", w, c)
		}
		s.label(w, map[string]string{labelEnabled: "true"})
		s.reaches(w, 1, 2)
	}

	s.register(func(spot *api.SpotSpec) { spot.OnDisable = api.OnDisableRecreate })
	for _, w := range []workloadID{kept, set} {
		s.label(w, off)
		s.becomes(w, func(c counts) bool { return c.complete() && c.otherLabels == 3 }, "plain again")
		if of := s.replaced(w); len(of) != 3 {
			t.Errorf("%d pods of %s were replaced, want each of the 3 once", len(of), w)
		}
	}
}
