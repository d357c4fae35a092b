package inventory

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// node is what is kept of a node.
type node struct {
	uid    types.UID
	name   string
	kind   split.NodeType
	usable bool // accepts new pods
	// fenced says that no new pods are scheduled on it.
	fenced      bool
	allocatable amount
	by          string    // what announced its termination, or ""
	others      bool      // announced by somebody other than this server
	ends        time.Time // when it will be terminated
	since       time.Time // when it last became usable
}

// amount is what a node has, or a pod requests, of the most common resources.
type amount struct{ milliCPU, memory, pods int64 }

// most is more than any node has, and little enough that the requests of all pods of a node can be added up.
const most = 1 << 52

func bounded(milliCPU, memory, pods int64) amount {
	return amount{min(milliCPU, most), min(memory, most), min(pods, most)}
}

func amountOf(list corev1.ResourceList) amount {
	return bounded(list.Cpu().MilliValue(), list.Memory().Value(), list.Pods().Value())
}

func (a amount) plus(b amount) amount {
	return amount{a.milliCPU + b.milliCPU, a.memory + b.memory, a.pods + b.pods}
}

func (a amount) less(b amount) amount {
	return amount{a.milliCPU - b.milliCPU, a.memory - b.memory, a.pods - b.pods}
}

func (a amount) holds(b amount) bool {
	return a.milliCPU >= b.milliCPU && a.memory >= b.memory && a.pods >= b.pods
}

func (i *Inventory) takeNode(c informer.Change[informer.Node]) {
	if o, ok := c.New.Detail.(*corev1.Node); ok {
		i.putNode(i.reduceNode(o))
	} else if o, ok := c.Old.Detail.(*corev1.Node); ok {
		i.removeNode(o.Name, o.UID)
	}
}

func (i *Inventory) removeNode(name string, uid types.UID) {
	delete(i.tainted, uid)
	if n := i.nodes[name]; n != nil && n.uid == uid {
		delete(i.nodes, name)
		i.lookAtSpot()
		i.changedOn(name)
	}
}

// trimNode removes large unneeded parts of a node.
func trimNode(o *corev1.Node) any {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID, Labels: o.Labels, CreationTimestamp: o.CreationTimestamp},
		Spec:       corev1.NodeSpec{Unschedulable: o.Spec.Unschedulable, Taints: o.Spec.Taints},
		Status:     corev1.NodeStatus{Allocatable: o.Status.Allocatable, Conditions: o.Status.Conditions},
	}
}

func (i *Inventory) reduceNode(o *corev1.Node) *node {
	n := &node{
		uid: o.UID, name: o.Name, kind: i.Label.TypeOf(o.Labels), allocatable: amountOf(o.Status.Allocatable),
		fenced: o.Spec.Unschedulable,
	}
	open := !o.Spec.Unschedulable
	taints := make([]spot.Taint, 0, len(o.Spec.Taints))
	var others []spot.Taint
	tainted := map[string]time.Time{}
	own, _ := i.Label.Taint()
	for _, t := range o.Spec.Taints {
		taint := spot.Taint{Key: t.Key, Value: t.Value}
		if t.TimeAdded != nil {
			taint.Added = t.TimeAdded.Time
		} else {
			// Each taint has its own time: a second announcement may be for an earlier termination.
			if taint.Added = i.tainted[o.UID][t.Key]; taint.Added.IsZero() {
				taint.Added = i.Now()
			}
			tainted[t.Key] = taint.Added
		}
		taints = append(taints, taint)
		if t.Key != spot.TaintInterruption {
			others = append(others, taint)
		}
		closes := t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
		open = open && (!closes || t.Key == own)
		_, _, announces := spot.Ending([]spot.Taint{taint}, nil, i.Now())
		n.fenced = n.fenced || closes && announces
	}
	if delete(i.tainted, o.UID); len(tainted) > 0 {
		i.tainted[o.UID] = tainted
	}
	ready := true // a node without the condition was just created
	n.since = o.CreationTimestamp.Time
	var conditions []spot.NodeCondition
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.NodeReady {
			ready, n.since = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		}
		if c.Status == corev1.ConditionTrue {
			conditions = append(conditions, spot.NodeCondition{Type: string(c.Type), Since: c.LastTransitionTime.Time})
		}
	}
	ending := false
	n.by, n.ends, ending = spot.Ending(taints, conditions, i.Now())
	_, _, n.others = spot.Ending(others, conditions, i.Now())
	n.usable = ready && open && !ending
	return n
}

// putNode adds or updates a node. Heartbeats of nodes change nothing that is kept.
func (i *Inventory) putNode(n *node) {
	before := i.nodes[n.name]
	switch {
	case before == nil || before.uid != n.uid:
	case n.usable && !before.usable:
		n.since = i.Now()
	default:
		n.since = before.since
	}
	if before != nil && *before == *n {
		return
	}
	i.nodes[n.name] = n
	i.lookAtSpot()
	if n.by != "" && !n.fenced {
		i.NodeEnds(n.name)
	}
	i.changedOn(n.name)
}

// lookAtSpot updates when spot nodes became usable.
func (i *Inventory) lookAtSpot() {
	if grown := i.spotSince(); !grown.Equal(i.spotGrown) {
		i.spotGrown = grown
		i.changedFallen()
	}
}

// spotSince returns when the last usable spot node was added, or zero.
func (i *Inventory) spotSince() (since time.Time) {
	for _, n := range i.nodes {
		if n.kind == split.Spot && n.usable && n.since.After(since) {
			since = n.since
		}
	}
	return since
}

// changedOn reports changes of the workloads that have pods on a node.
func (i *Inventory) changedOn(name string) {
	for _, p := range i.podsOn[name] {
		i.changedPod(p)
	}
}

// changedFallen reports changes of the workloads that have pods for spot nodes on other nodes.
func (i *Inventory) changedFallen() {
	for _, p := range i.pods {
		if p.kind == split.Spot && i.typeOf(p.node) == split.OnDemand {
			i.changedPod(p)
		}
	}
}

func (i *Inventory) typeOf(name string) split.NodeType {
	if n := i.nodes[name]; n != nil {
		return n.kind
	}
	return split.Unset
}
