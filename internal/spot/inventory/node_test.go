package inventory

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// nodeOf returns a schedulable node of a type, or of none if it is "".
func nodeOf(name, nodeType string) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name), Labels: map[string]string{}, CreationTimestamp: metav1.NewTime(start)},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi"), "pods": resource.MustParse("10")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(start)}},
		},
	}
	if nodeType != "" {
		n.Labels[plainLabel] = nodeType
	}
	return n
}

func taint(key, value string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: effect})
	}
}

func condition(kind corev1.NodeConditionType, status corev1.ConditionStatus, since time.Time) func(*corev1.Node) {
	return func(n *corev1.Node) {
		for i := range n.Status.Conditions {
			if n.Status.Conditions[i].Type == kind {
				n.Status.Conditions[i].Status = status
				return
			}
		}
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(since)})
	}
}

// TestNodes checks which nodes accept pods, and which have announced their end, through what and for when. Those of
// these that still accept pods must be fenced.
func TestNodes(t *testing.T) {
	noSchedule, noExecute, prefer := corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule
	cordon := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	created := func(n *corev1.Node) { n.Status.Conditions = nil }
	inTwo := start.Add(spot.NoticeTime)
	tests := []struct {
		name     string
		label    string
		alter    []func(*corev1.Node)
		usable   bool
		by       string
		ends     time.Time
		unfenced bool
	}{
		{name: "plain", usable: true},
		{name: "just created", alter: []func(*corev1.Node){created}, usable: true},
		{name: "not ready", alter: []func(*corev1.Node){condition(corev1.NodeReady, corev1.ConditionFalse, start)}},
		{name: "no heartbeat", alter: []func(*corev1.Node){condition(corev1.NodeReady, corev1.ConditionUnknown, start)}},
		{name: "cordoned", alter: []func(*corev1.Node){cordon}},
		{name: "taint that excludes pods", alter: []func(*corev1.Node){taint("team", "a", noSchedule)}},
		{name: "taint that evicts pods", alter: []func(*corev1.Node){taint("team", "a", noExecute)}},
		{name: "taint that is only a preference", alter: []func(*corev1.Node){taint("team", "a", prefer)}, usable: true},
		{name: "taint that spot pods tolerate", alter: []func(*corev1.Node){taint(plainLabel, "spot", noSchedule)}, usable: true},
		{name: "own taint", alter: []func(*corev1.Node){taint(spot.TaintInterruption, "1767225720", noSchedule)}, by: spot.TaintInterruption, ends: time.Unix(1767225720, 0)},
		{name: "own taint without a time", alter: []func(*corev1.Node){taint(spot.TaintInterruption, "soon", noSchedule)}, by: spot.TaintInterruption, ends: inTwo},
		{name: "AWS", alter: []func(*corev1.Node){taint("aws-node-termination-handler/spot-itn", "x", noSchedule)}, by: "aws-node-termination-handler/spot-itn", ends: inTwo},
		{name: "AWS, as a preference", alter: []func(*corev1.Node){taint("aws-node-termination-handler/spot-itn", "x", prefer)}, by: "aws-node-termination-handler/spot-itn", ends: inTwo, unfenced: true},
		{name: "AWS, cordoned", alter: []func(*corev1.Node){taint("aws-node-termination-handler/spot-itn", "x", prefer), cordon}, by: "aws-node-termination-handler/spot-itn", ends: inTwo},
		{name: "Karpenter", alter: []func(*corev1.Node){taint("karpenter.sh/disrupted", "", noSchedule)}, by: "karpenter.sh/disrupted", ends: inTwo},
		{name: "Karpenter before 1.0", alter: []func(*corev1.Node){taint("karpenter.sh/disruption", "disrupting", noSchedule)}, by: "karpenter.sh/disruption", ends: inTwo},
		{name: "GKE", alter: []func(*corev1.Node){taint("cloud.google.com/impending-node-termination", "", noSchedule)}, by: "cloud.google.com/impending-node-termination", ends: inTwo},
		{name: "cluster autoscaler", alter: []func(*corev1.Node){taint("ToBeDeletedByClusterAutoscaler", "1767225600", noSchedule)}, by: "ToBeDeletedByClusterAutoscaler", ends: inTwo},
		{name: "AKS", alter: []func(*corev1.Node){condition("PreemptScheduled", corev1.ConditionTrue, start)}, by: "PreemptScheduled", ends: inTwo, unfenced: true},
		{name: "AKS, condition false", alter: []func(*corev1.Node){condition("PreemptScheduled", corev1.ConditionFalse, start)}, usable: true},
		{name: "AKS, with own taint", alter: []func(*corev1.Node){condition("PreemptScheduled", corev1.ConditionTrue, start), taint(spot.TaintInterruption, "1767225720", noSchedule)}, by: spot.TaintInterruption, ends: inTwo},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(plainLabel)
			n := nodeOf("n", "spot")
			for _, alter := range test.alter {
				alter(n)
			}
			w.hear(n)
			usable, ending := w.Nodes()
			if want := (split.Split{}); test.usable && usable.Spot != 1 || !test.usable && usable != want {
				t.Errorf("usable nodes %+v", usable)
			}
			by, ends, ok := w.Node("n")
			if !ok || by != test.by || !ends.Equal(test.ends) || (ending == 1) != (test.by != "") {
				t.Errorf("ends by %q at %s, %d ending; want by %q at %s", by, ends, ending, test.by, test.ends)
			}
			if _, unfenced := w.Unfenced()["n"]; unfenced != test.unfenced || unfenced != (len(w.ends) > 0) {
				t.Errorf("unfenced = %t, ends %v", unfenced, w.ends)
			}
		})
	}
	if _, _, ok := newWorld(plainLabel).Node("n"); ok {
		t.Error("Node() found an unknown node")
	}
}

// TestNodeTypes covers how each provider marks spot nodes.
func TestNodeTypes(t *testing.T) {
	for _, test := range []struct {
		key    string
		labels map[string]string
		want   split.NodeType
	}{
		{plainLabel, map[string]string{plainLabel: "spot"}, split.Spot},
		{plainLabel, map[string]string{plainLabel: "on-demand"}, split.OnDemand},
		{plainLabel, nil, split.Unset},
		{"cloud.google.com/gke-spot", map[string]string{"cloud.google.com/gke-spot": "true"}, split.Spot},
		{"cloud.google.com/gke-spot", nil, split.OnDemand},
		{"eks.amazonaws.com/capacityType", map[string]string{"eks.amazonaws.com/capacityType": "SPOT"}, split.Spot},
	} {
		w := newWorld(test.key)
		n := nodeOf("n", "")
		n.Labels = test.labels
		w.hear(n)
		if got := w.typeOf("n"); got != test.want {
			t.Errorf("%s %v: %q, want %q", test.key, test.labels, got, test.want)
		}
		usable, _ := w.Nodes()
		if usable.Of(test.want) != usable.Total() || (usable.Total() == 1) != (test.want != split.Unset) {
			t.Errorf("%s %v: %+v", test.key, test.labels, usable)
		}
	}
}

// TestHeartbeats checks that a node's periodic status updates do not cause its pods to be evaluated.
func TestHeartbeats(t *testing.T) {
	for _, ends := range []bool{false, true} {
		w := newWorld(plainLabel)
		_, rs := w.web(1, "")
		n := nodeOf("n", "spot")
		if ends {
			taint("aws-node-termination-handler/spot-itn", "", corev1.TaintEffectPreferNoSchedule)(n)
		}
		w.have(n)
		p := podFor(w.creation(rs), split.Spot)
		p.Spec.NodeName = "n"
		w.have(p)
		changed, told := w.changed[webKey], len(w.ends)
		_, at, _ := w.Node("n")
		for range 5 {
			w.now = w.now.Add(10 * time.Second)
			n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(w.now)
			n.Status.Images = append(n.Status.Images, corev1.ContainerImage{SizeBytes: 1})
			n.Annotations = map[string]string{"beat": w.now.String()}
			w.have(n)
		}
		if w.changed[webKey] != changed || len(w.ends) != told {
			t.Errorf("ends %t: %d changes of the workload", ends, w.changed[webKey]-changed)
		}
		if _, now, _ := w.Node("n"); !now.Equal(at) {
			t.Errorf("the end moved from %s to %s", at, now)
		}
	}
}

// TestNodeEndWakesWorkloads checks that workloads are evaluated when one of their nodes announces its end, cancels it,
// or is deleted.
func TestNodeEndWakesWorkloads(t *testing.T) {
	w := newWorld(plainLabel)
	_, rs := w.web(1, "")
	p := podFor(w.creation(rs), split.Spot)
	p.Spec.NodeName = "n"
	w.have(p)
	n := nodeOf("n", "spot")
	ends := func() time.Time {
		v, _ := w.View(webKey, false)
		return v.Pods[0].Ends
	}
	for _, step := range []struct {
		name string
		do   func()
		ends bool
	}{
		{"created", func() { w.have(n) }, false},
		{"ending", func() { condition("PreemptScheduled", corev1.ConditionTrue, start)(n); w.have(n) }, true},
		{"no longer ending", func() { condition("PreemptScheduled", corev1.ConditionFalse, start)(n); w.have(n) }, false},
		{"ending again", func() { condition("PreemptScheduled", corev1.ConditionTrue, start)(n); w.have(n) }, true},
		{"deleted", func() { w.hearGone(n) }, false},
	} {
		before := w.changed[webKey]
		step.do()
		if w.changed[webKey] == before {
			t.Errorf("%s: no change was announced", step.name)
		}
		if ends().IsZero() == step.ends {
			t.Errorf("%s: got the end %s", step.name, ends())
		}
	}
}

// fallen returns a pod for spot nodes that runs on an on-demand node.
func (w *world) fallen(created time.Time) *corev1.Pod {
	_, rs := w.web(1, "")
	w.have(nodeOf("base", "on-demand"))
	p := podFor(w.creation(rs), split.Spot)
	p.CreationTimestamp, p.Spec.NodeName = metav1.NewTime(created), "base"
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("400m")}}}}
	w.have(p)
	return p
}

// TestMayReturn: a pod that fell back is tried again when there is room for it on spot
// nodes, some time after one has come, or after it has stayed for long.
func TestMayReturn(t *testing.T) {
	at := func(d time.Duration) time.Time { return start.Add(d) }
	tests := []struct {
		name  string
		nodes func(w *world)
		now   time.Duration
		may   bool
		at    time.Time
	}{
		{name: "no spot nodes", now: 3 * time.Hour},
		{name: "node just created", nodes: func(w *world) { w.spotNode("s", 10*time.Minute) }, now: 11 * time.Minute, at: at(15 * time.Minute)},
		{name: "node created a while ago", nodes: func(w *world) { w.spotNode("s", 10*time.Minute) }, now: 15 * time.Minute, may: true},
		{name: "node older than the pod", nodes: func(w *world) { w.spotNode("s", -time.Minute) }, now: 15 * time.Minute, at: at(2 * time.Hour)},
		{name: "node older than the pod, long ago", nodes: func(w *world) { w.spotNode("s", -time.Minute) }, now: 2 * time.Hour, may: true},
		{name: "no room", nodes: func(w *world) { w.spotNode("s", 10*time.Minute); w.fill("s", "700m") }, now: 15 * time.Minute},
		{name: "no room, by requests larger than any node", nodes: func(w *world) {
			w.spotNode("s", 10*time.Minute)
			for i := range 3 {
				w.fill("s", "9223372036854775", fmt.Sprint("-", i))
			}
		}, now: 15 * time.Minute},
		{name: "just enough room", nodes: func(w *world) { w.spotNode("s", 10*time.Minute); w.fill("s", "600m") }, now: 15 * time.Minute, may: true},
		{name: "room on another node", nodes: func(w *world) {
			w.spotNode("s", 10*time.Minute)
			w.fill("s", "700m")
			w.spotNode("t", 9*time.Minute)
		}, now: 15 * time.Minute, may: true},
		{name: "node that takes no pods", nodes: func(w *world) {
			n := w.spotNode("s", 10*time.Minute)
			n.Spec.Unschedulable = true
			w.have(n)
		}, now: 3 * time.Hour},
		{name: "node that takes pods again", nodes: func(w *world) {
			n := w.spotNode("s", -time.Hour)
			n.Spec.Unschedulable = true
			w.have(n)
			w.now = at(20 * time.Minute)
			n.Spec.Unschedulable = false
			w.have(n)
		}, now: 21 * time.Minute, at: at(25 * time.Minute)},
		{name: "node deleted", nodes: func(w *world) { w.hearGone(w.spotNode("s", 10*time.Minute)) }, now: 15 * time.Minute},
		{name: "node deleted, with another that is older than the pod", nodes: func(w *world) {
			w.spotNode("old", -time.Hour)
			w.hearGone(w.spotNode("s", 10*time.Minute))
		}, now: 15 * time.Minute, at: at(2 * time.Hour)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(plainLabel)
			p := w.fallen(start)
			if test.nodes != nil {
				test.nodes(w)
			}
			w.now = at(test.now)
			may, when := w.MayReturn(string(p.UID))
			if may != test.may || !when.Equal(test.at) {
				t.Errorf("MayReturn() = %t at %s, want %t at %s", may, when, test.may, test.at)
			}
		})
	}
	if may, _ := newWorld(plainLabel).MayReturn("nobody"); may {
		t.Error("MayReturn() of an unknown pod = true")
	}
}

// spotNode returns a node that was added some time after the start.
func (w *world) spotNode(name string, came time.Duration) *corev1.Node {
	n := nodeOf(name, "spot")
	n.CreationTimestamp = metav1.NewTime(start.Add(came))
	n.Status.Conditions[0].LastTransitionTime = n.CreationTimestamp
	w.have(n)
	return n
}

// fill puts an unrelated pod on a node.
func (w *world) fill(name, cpu string, suffix ...string) {
	pod := "filler-" + name + strings.Join(suffix, "")
	w.have(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: pod, UID: types.UID(pod)},
		Spec: corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}},
		}}},
	})
}

// TestSpotNodeWakesFallenBackWorkloads checks that a workload with a pod that fell back is evaluated when a spot node
// is added.
func TestSpotNodeWakesFallenBackWorkloads(t *testing.T) {
	w := newWorld(plainLabel)
	w.fallen(start)
	before := w.changed[webKey]
	w.spotNode("s", time.Minute)
	if w.changed[webKey] == before {
		t.Error("no change was announced")
	}
}

// TestMarkIsRemovedFromSurvivingNodes checks that our own mark is removed from a node that still exists after its
// announced end, and only if nothing else announces its end, which would put the mark back.
func TestMarkIsRemovedFromSurvivingNodes(t *testing.T) {
	ours := taint(spot.TaintInterruption, "1767225720", corev1.TaintEffectNoSchedule) // two minutes after the start
	for _, test := range []struct {
		name  string
		alter []func(*corev1.Node)
		after time.Duration
		want  bool
	}{
		{"before the end", []func(*corev1.Node){ours}, 11 * time.Minute, false},
		{"after the end", []func(*corev1.Node){ours}, 13 * time.Minute, true},
		{"taint of others", []func(*corev1.Node){taint("karpenter.sh/disrupted", "", corev1.TaintEffectNoSchedule)}, time.Hour, false},
		{"condition with the same meaning", []func(*corev1.Node){ours, condition("PreemptScheduled", corev1.ConditionTrue, start)}, time.Hour, false},
		{"condition that was true before", []func(*corev1.Node){ours, condition("PreemptScheduled", corev1.ConditionFalse, start)}, time.Hour, true},
		{"other taint with the same meaning", []func(*corev1.Node){ours, taint("karpenter.sh/disrupted", "", corev1.TaintEffectNoSchedule)}, time.Hour, false},
	} {
		w := newWorld(plainLabel)
		n := nodeOf("n", "spot")
		for _, alter := range test.alter {
			alter(n)
		}
		w.hear(n)
		w.now = start.Add(test.after)
		if got := len(w.Outlived(10*time.Minute)) == 1; got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}

// TestSecondAnnouncement checks that a later announcement without a time counts from when it was made, whatever was
// announced before.
func TestSecondAnnouncement(t *testing.T) {
	w := newWorld(plainLabel)
	n := nodeOf("n", "spot")
	taint(spot.TaintInterruption, strconv.FormatInt(start.Add(2*time.Hour).Unix(), 10), corev1.TaintEffectNoSchedule)(n)
	w.have(n)
	w.now = start.Add(10 * time.Minute)
	taint("karpenter.sh/disrupted", "", corev1.TaintEffectNoSchedule)(n)
	w.have(n)
	w.now = start.Add(11 * time.Minute)
	condition(corev1.NodeDiskPressure, corev1.ConditionTrue, w.now)(n)
	w.have(n) // the time stays
	if by, ends, _ := w.Node("n"); by != "karpenter.sh/disrupted" || !ends.Equal(start.Add(12*time.Minute)) {
		t.Errorf("ends by %s at %s", by, ends)
	}
	w.hearGone(n)
	if len(w.tainted) != 0 {
		t.Errorf("the taints of a deleted node are still stored: %v", w.tainted)
	}
}
