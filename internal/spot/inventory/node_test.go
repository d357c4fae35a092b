package inventory

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// nodeOf is one that takes pods, of a type, "" for none.
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

// TestNodes: which nodes take pods, which have announced their end, by whom and for
// when, and which of these still take pods, so that they have to be fenced.
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
		{name: "not heard of", alter: []func(*corev1.Node){condition(corev1.NodeReady, corev1.ConditionUnknown, start)}},
		{name: "cordoned", alter: []func(*corev1.Node){cordon}},
		{name: "kept for others", alter: []func(*corev1.Node){taint("team", "a", noSchedule)}},
		{name: "others go", alter: []func(*corev1.Node){taint("team", "a", noExecute)}},
		{name: "others rather not", alter: []func(*corev1.Node){taint("team", "a", prefer)}, usable: true},
		{name: "kept for pods for spot nodes", alter: []func(*corev1.Node){taint(plainLabel, "spot", noSchedule)}, usable: true},
		{name: "ours", alter: []func(*corev1.Node){taint(spot.TaintInterruption, "1767225720", noSchedule)}, by: spot.TaintInterruption, ends: time.Unix(1767225720, 0)},
		{name: "ours, without a moment", alter: []func(*corev1.Node){taint(spot.TaintInterruption, "soon", noSchedule)}, by: spot.TaintInterruption, ends: inTwo},
		{name: "AWS", alter: []func(*corev1.Node){taint("aws-node-termination-handler/spot-itn", "x", noSchedule)}, by: "aws-node-termination-handler/spot-itn", ends: inTwo},
		{name: "AWS, as a preference", alter: []func(*corev1.Node){taint("aws-node-termination-handler/spot-itn", "x", prefer)}, by: "aws-node-termination-handler/spot-itn", ends: inTwo, unfenced: true},
		{name: "AWS, cordoned", alter: []func(*corev1.Node){taint("aws-node-termination-handler/spot-itn", "x", prefer), cordon}, by: "aws-node-termination-handler/spot-itn", ends: inTwo},
		{name: "Karpenter", alter: []func(*corev1.Node){taint("karpenter.sh/disrupted", "", noSchedule)}, by: "karpenter.sh/disrupted", ends: inTwo},
		{name: "Karpenter before 1.0", alter: []func(*corev1.Node){taint("karpenter.sh/disruption", "disrupting", noSchedule)}, by: "karpenter.sh/disruption", ends: inTwo},
		{name: "GKE", alter: []func(*corev1.Node){taint("cloud.google.com/impending-node-termination", "", noSchedule)}, by: "cloud.google.com/impending-node-termination", ends: inTwo},
		{name: "cluster autoscaler", alter: []func(*corev1.Node){taint("ToBeDeletedByClusterAutoscaler", "1767225600", noSchedule)}, by: "ToBeDeletedByClusterAutoscaler", ends: inTwo},
		{name: "AKS", alter: []func(*corev1.Node){condition("PreemptScheduled", corev1.ConditionTrue, start)}, by: "PreemptScheduled", ends: inTwo, unfenced: true},
		{name: "AKS, not now", alter: []func(*corev1.Node){condition("PreemptScheduled", corev1.ConditionFalse, start)}, usable: true},
		{name: "AKS, fenced", alter: []func(*corev1.Node){condition("PreemptScheduled", corev1.ConditionTrue, start), taint(spot.TaintInterruption, "1767225720", noSchedule)}, by: spot.TaintInterruption, ends: inTwo},
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
				t.Errorf("%+v take pods", usable)
			}
			by, ends, ok := w.Node("n")
			if !ok || by != test.by || !ends.Equal(test.ends) || (ending == 1) != (test.by != "") {
				t.Errorf("it ends by %q at %s, %d do; want by %q at %s", by, ends, ending, test.by, test.ends)
			}
			if _, unfenced := w.Unfenced()["n"]; unfenced != test.unfenced || unfenced != (len(w.ends) > 0) {
				t.Errorf("to be fenced: %t, told %v", unfenced, w.ends)
			}
		})
	}
	if _, _, ok := newWorld(plainLabel).Node("n"); ok {
		t.Error("it knows a node that there is not")
	}
}

// TestNodeTypes: each provider says in its own way which nodes are spot.
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

// TestHeartbeats: a node that says every few seconds that it is well has nobody look at
// its pods.
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
			t.Errorf("ends %t: it tells %d times of the workload", ends, w.changed[webKey]-changed)
		}
		if _, now, _ := w.Node("n"); !now.Equal(at) {
			t.Errorf("its end moved from %s to %s", at, now)
		}
	}
}

// TestNodeEndWakesWorkloads: workloads are looked at when a node of theirs announces its end, calls
// it off, or is gone.
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
		{"it comes", func() { w.have(n) }, false},
		{"it ends", func() { condition("PreemptScheduled", corev1.ConditionTrue, start)(n); w.have(n) }, true},
		{"it does not", func() { condition("PreemptScheduled", corev1.ConditionFalse, start)(n); w.have(n) }, false},
		{"it ends all the same", func() { condition("PreemptScheduled", corev1.ConditionTrue, start)(n); w.have(n) }, true},
		{"it is gone", func() { w.hearGone(n) }, false},
	} {
		before := w.changed[webKey]
		step.do()
		if w.changed[webKey] == before {
			t.Errorf("%s: nobody is told", step.name)
		}
		if ends().IsZero() == step.ends {
			t.Errorf("%s: the end is %s", step.name, ends())
		}
	}
}

// fallen is a pod for spot nodes that runs on an on-demand one.
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
		{name: "no spot node", now: 3 * time.Hour},
		{name: "one came, just now", nodes: func(w *world) { w.spotNode("s", 10*time.Minute) }, now: 11 * time.Minute, at: at(15 * time.Minute)},
		{name: "one came a while ago", nodes: func(w *world) { w.spotNode("s", 10*time.Minute) }, now: 15 * time.Minute, may: true},
		{name: "it was there when the pod was created", nodes: func(w *world) { w.spotNode("s", -time.Minute) }, now: 15 * time.Minute, at: at(2 * time.Hour)},
		{name: "and the pod has stayed for long", nodes: func(w *world) { w.spotNode("s", -time.Minute) }, now: 2 * time.Hour, may: true},
		{name: "there is no room", nodes: func(w *world) { w.spotNode("s", 10*time.Minute); w.fill("s", "700m") }, now: 15 * time.Minute},
		{name: "there is just room", nodes: func(w *world) { w.spotNode("s", 10*time.Minute); w.fill("s", "600m") }, now: 15 * time.Minute, may: true},
		{name: "there is room on another", nodes: func(w *world) {
			w.spotNode("s", 10*time.Minute)
			w.fill("s", "700m")
			w.spotNode("t", 9*time.Minute)
		}, now: 15 * time.Minute, may: true},
		{name: "one that takes no pods", nodes: func(w *world) {
			n := w.spotNode("s", 10*time.Minute)
			n.Spec.Unschedulable = true
			w.have(n)
		}, now: 3 * time.Hour},
		{name: "one that takes pods again", nodes: func(w *world) {
			n := w.spotNode("s", -time.Hour)
			n.Spec.Unschedulable = true
			w.have(n)
			w.now = at(20 * time.Minute)
			n.Spec.Unschedulable = false
			w.have(n)
		}, now: 21 * time.Minute, at: at(25 * time.Minute)},
		{name: "one that is gone", nodes: func(w *world) { w.hearGone(w.spotNode("s", 10*time.Minute)) }, now: 15 * time.Minute},
		{name: "one that is gone, after one that was there", nodes: func(w *world) {
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
				t.Errorf("may %t at %s, want %t at %s", may, when, test.may, test.at)
			}
		})
	}
	if may, _ := newWorld(plainLabel).MayReturn("nobody"); may {
		t.Error("a pod that there is not may return")
	}
}

// spotNode is one that came some time after the start.
func (w *world) spotNode(name string, came time.Duration) *corev1.Node {
	n := nodeOf(name, "spot")
	n.CreationTimestamp = metav1.NewTime(start.Add(came))
	n.Status.Conditions[0].LastTransitionTime = n.CreationTimestamp
	w.have(n)
	return n
}

// fill puts a pod of nobody's on a node.
func (w *world) fill(name, cpu string) {
	w.have(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "filler-" + name, UID: types.UID("filler-" + name)},
		Spec: corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}},
		}}},
	})
}

// TestSpotNodeWakesFallenBackWorkloads: a workload with a pod that fell back is looked at when a spot node
// comes.
func TestSpotNodeWakesFallenBackWorkloads(t *testing.T) {
	w := newWorld(plainLabel)
	w.fallen(start)
	before := w.changed[webKey]
	w.spotNode("s", time.Minute)
	if w.changed[webKey] == before {
		t.Error("nobody is told")
	}
}

// TestMarkIsRemovedFromSurvivingNodes: only our own mark is taken off a node that is still there after its
// end; and only where nobody else says that it ends, who would have it put back.
func TestMarkIsRemovedFromSurvivingNodes(t *testing.T) {
	ours := taint(spot.TaintInterruption, "1767225720", corev1.TaintEffectNoSchedule) // two minutes after the start
	for _, test := range []struct {
		name  string
		alter []func(*corev1.Node)
		after time.Duration
		want  bool
	}{
		{"not over", []func(*corev1.Node){ours}, 11 * time.Minute, false},
		{"over", []func(*corev1.Node){ours}, 13 * time.Minute, true},
		{"not ours", []func(*corev1.Node){taint("karpenter.sh/disrupted", "", corev1.TaintEffectNoSchedule)}, time.Hour, false},
		{"a condition says the same", []func(*corev1.Node){ours, condition("PreemptScheduled", corev1.ConditionTrue, start)}, time.Hour, false},
		{"a condition said the same", []func(*corev1.Node){ours, condition("PreemptScheduled", corev1.ConditionFalse, start)}, time.Hour, true},
		{"another taint says the same", []func(*corev1.Node){ours, taint("karpenter.sh/disrupted", "", corev1.TaintEffectNoSchedule)}, time.Hour, false},
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

// TestSecondAnnouncement: who says later that a node ends, and does not say since when,
// says so from then on, whatever was announced before.
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
	w.have(n) // the moment stays
	if by, ends, _ := w.Node("n"); by != "karpenter.sh/disrupted" || !ends.Equal(start.Add(12*time.Minute)) {
		t.Errorf("by %s at %s", by, ends)
	}
	w.hearGone(n)
	if len(w.tainted) != 0 {
		t.Errorf("what is known of its taints stays: %v", w.tainted)
	}
}
