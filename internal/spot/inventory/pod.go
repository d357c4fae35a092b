package inventory

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// pod is what is kept of a pod.
type pod struct {
	uid             types.UID
	namespace, name string
	owner           types.UID // its ReplicaSet or StatefulSet; "" for others, of which only the size matters
	set             string    // name of the StatefulSet
	kind            split.NodeType
	node            string
	admission       types.UID // UID of the request that admitted it
	revision        string    // of a StatefulSet
	cost            string    // its deletion cost, or ""
	ready           bool
	terminating     bool
	ended           bool // it has completed or failed
	created         time.Time
	ordinal         int
	requests        amount
	seen            uint64 // value of the inventory's count when it was first seen
}

func (i *Inventory) takePod(c informer.Change[informer.Pod]) {
	if p, ok := c.New.Detail.(*pod); ok {
		i.putPod(p)
	} else if p, ok := c.Old.Detail.(*pod); ok {
		i.removePod(p.uid)
	}
}

// controllerOf returns the ReplicaSet or StatefulSet that a pod belongs to.
func controllerOf(o metav1.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(o)
	if owner == nil || (owner.Kind != kindReplicaSet && owner.Kind != kindStatefulSet) || !strings.HasPrefix(owner.APIVersion, "apps/") {
		return nil
	}
	return owner
}

// detailOf returns what is kept of a pod with requests.
func detailOf(o *corev1.Pod, requests informer.Amount) any {
	p := podOf(o)
	if !p.ended && p.node != "" {
		p.requests = bounded(requests.MilliCPU, requests.Memory, 1)
	}
	return p
}

// podOf returns what is kept of a pod, without its requests.
func podOf(o *corev1.Pod) *pod {
	p := &pod{
		uid: o.UID, name: o.Name, node: unique.Make(o.Spec.NodeName).Value(),
		terminating: o.DeletionTimestamp != nil, ended: o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed,
	}
	owner := controllerOf(o)
	if owner == nil {
		return p
	}
	p.namespace, p.owner = unique.Make(o.Namespace).Value(), owner.UID
	p.kind, p.admission = spot.AffinityOf(o.Labels), types.UID(o.Annotations[spot.AnnotationAdmission])
	p.cost, p.created = unique.Make(o.Annotations[split.AnnotationDeletionCost]).Value(), o.CreationTimestamp.Time
	p.ready = slices.ContainsFunc(o.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	if owner.Kind == kindStatefulSet {
		p.revision = unique.Make(o.Labels["controller-revision-hash"]).Value()
		p.set = unique.Make(owner.Name).Value()
		p.ordinal, _ = strconv.Atoi(o.Name[strings.LastIndex(o.Name, "-")+1:])
	}
	return p
}

// putPod adds or updates a pod. Its reservation ends.
func (i *Inventory) putPod(p *pod) {
	before := i.pods[p.uid]
	if before == nil {
		i.seen++
		p.seen = i.seen
	} else if p.seen = before.seen; *before == *p {
		return
	}
	if before != nil {
		i.unplace(before)
	}
	i.pods[p.uid] = p
	if p.node != "" {
		add(i.podsOn, p.node, p.uid, p)
		i.used[p.node] = i.used[p.node].plus(p.requests)
	}
	if p.owner == "" {
		return
	}
	add(i.podsOf, p.owner, p.uid, p)
	if before == nil && p.admission != "" {
		i.fulfil(p.owner, p.admission)
	}
	i.changedPod(p)
}

// unplace removes a pod from its node.
func (i *Inventory) unplace(p *pod) {
	if p.node == "" {
		return
	}
	drop(i.podsOn, p.node, p.uid)
	if i.used[p.node] = i.used[p.node].less(p.requests); len(i.podsOn[p.node]) == 0 {
		delete(i.used, p.node)
	}
}

func (i *Inventory) removePod(uid types.UID) {
	p := i.pods[uid]
	if p == nil {
		return
	}
	delete(i.pods, uid)
	i.unplace(p)
	if p.owner != "" {
		drop(i.podsOf, p.owner, uid)
		i.changedPod(p)
	}
}

// changedPod reports a change of the workload that a pod belongs to.
func (i *Inventory) changedPod(p *pod) {
	if key, ok := i.workloadOf(p); ok {
		i.Changed(key)
	}
}

// workloadOf returns the workload that a pod belongs to.
func (i *Inventory) workloadOf(p *pod) (Key, bool) {
	if p.set != "" {
		return Key{kindStatefulSet, p.namespace, p.set}, true
	}
	rs := i.replicaSets[p.owner]
	if rs == nil || rs.deployment == "" {
		return Key{}, false
	}
	return rs.owner, true
}

// roomOnSpot reports whether a usable spot node has room for another pod of this size, according to
// requests.
func (i *Inventory) roomOnSpot(p *pod) bool {
	for name, n := range i.nodes {
		if n.kind != split.Spot || !n.usable {
			continue
		}
		if n.allocatable.less(i.used[name]).holds(p.requests) {
			return true
		}
	}
	return false
}
