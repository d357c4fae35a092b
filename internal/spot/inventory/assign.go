package inventory

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/webhook"
)

// reservedFor is how long a place is kept for a pod that was admitted but has not been seen: the
// API server may still reject it, for example because of a quota, without notice.
const reservedFor = 10 * time.Second

// createdWithin is how long after its admission a created pod appears in lists.
const createdWithin = 3 * time.Second

// reservation is the place of a pod that was admitted but has not been seen yet. Many pods are
// admitted at the same time, and none of them is in a list before it is created.
type reservation struct {
	admission types.UID
	name      string // of a StatefulSet's pod
	kind      split.NodeType
	at        time.Time
}

// Assign returns the node type of a new pod, and reserves its place. A pod that belongs to no split
// workload gets no type. If the inventory seems to be behind, it queries the cluster.
func (i *Inventory) Assign(ctx context.Context, c webhook.Creation) webhook.Assignment {
	a := webhook.Assignment{Label: i.Label}
	w, ok := i.owner(ctx, c)
	if !ok {
		return a
	}
	now := i.Now()
	i.mu.Lock()
	defer i.mu.Unlock()
	target, managed := i.target(w)
	if !managed {
		return a
	}
	live := i.live(c, now)
	if live.Total() >= target.Total() {
		// More pods than there should be: most likely a deletion or scaling has not been seen yet.
		target, live = i.ask(ctx, w, c, target, now)
	}
	if a.Type = c.Pinned(i.Label); a.Type == split.Unset {
		a.Type = split.Next(target, live)
	}
	if w.key.Kind == kindDeployment && !w.ownCost && a.Type == split.OnDemand {
		cost, _ := split.DeletionCosts(target, live)
		a.Cost = &cost
	}
	if !c.DryRun {
		i.reservations[c.Owner.UID] = append(i.unmet(c, now), reservation{c.UID, c.Name, a.Type, now})
	}
	return a
}

func (i *Inventory) target(w *workload) (split.Target, bool) {
	d, _, managed := i.rule(w)
	return split.Targets(w.key.Kind, w.replicas, d), managed
}

// live returns the pods of the new pod's controller, including those about to be created. A pod
// with the name of the new one, or of one about to be created, must be terminating.
func (i *Inventory) live(c webhook.Creation, now time.Time) split.Split {
	var s split.Split
	replaced := map[string]bool{c.Name: true} // matches no pod if the name is ""
	for _, r := range i.unmet(c, now) {
		s = s.Plus(r.kind)
		replaced[r.name] = true
	}
	for _, p := range i.podsOf[c.Owner.UID] {
		if !p.terminating && !p.ended && !replaced[p.name] {
			s = s.Plus(i.typeOfPod(p))
		}
	}
	return s
}

// typeOfPod returns the type that a pod counts as.
func (i *Inventory) typeOfPod(p *pod) split.NodeType {
	if p.kind != split.Unset {
		return p.kind
	}
	return i.typeOf(p.node)
}

// unmet returns the valid reservations of the new pod's controller. A second attempt to create a
// pod with the same name replaces the first.
func (i *Inventory) unmet(c webhook.Creation, now time.Time) []reservation {
	kept := i.reservations[c.Owner.UID][:0:0]
	for _, r := range i.reservations[c.Owner.UID] {
		if now.Sub(r.at) < reservedFor && (c.Name == "" || r.name != c.Name) {
			kept = append(kept, r)
		}
	}
	return kept
}

// kept returns the number of places reserved for pods of a controller, and when the last of them
// expires.
func (i *Inventory) kept(controller types.UID) (n int, until time.Time) {
	now := i.Now()
	for _, r := range i.reservations[controller] {
		if end := r.at.Add(reservedFor); now.Before(end) {
			n++
			if end.After(until) {
				until = end
			}
		}
	}
	return n, until
}

// fulfil ends the reservation of a pod that has been seen.
func (i *Inventory) fulfil(controller, admission types.UID) {
	list := i.reservations[controller]
	for n, r := range list {
		if r.admission == admission {
			i.reservations[controller] = append(list[:n:n], list[n+1:]...)
			break
		}
	}
	if len(i.reservations[controller]) == 0 {
		delete(i.reservations, controller)
	}
}

// owner returns the workload that a new pod belongs to. A workload and its first pods are created
// within moments, so an unknown workload is read from the cluster.
func (i *Inventory) owner(ctx context.Context, c webhook.Creation) (*workload, bool) {
	key := Key{c.Owner.Kind, c.Namespace, c.Owner.Name}
	uid := c.Owner.UID
	switch c.Owner.Kind {
	default:
		return nil, false
	case kindStatefulSet:
	case kindReplicaSet:
		i.mu.Lock()
		rs := i.replicaSets[c.Owner.UID]
		i.mu.Unlock()
		if rs == nil {
			found, err := i.Client.AppsV1().ReplicaSets(c.Namespace).Get(ctx, c.Owner.Name, metav1.GetOptions{})
			if err != nil || found.UID != c.Owner.UID {
				return nil, false
			}
			rs = replicaSetOf(found)
		}
		if rs.deployment == "" {
			return nil, false
		}
		key, uid = rs.owner, rs.deployment
	}
	i.mu.Lock()
	w := i.workloads[key]
	i.mu.Unlock()
	if w == nil || w.uid != uid {
		var err error
		if w, err = i.get(ctx, key); err != nil || w.uid != uid {
			return nil, false
		}
	}
	return w, true
}

// get reads a workload from the cluster.
func (i *Inventory) get(ctx context.Context, key Key) (*workload, error) {
	switch key.Kind {
	case kindDeployment:
		o, err := i.Client.AppsV1().Deployments(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return i.deploymentOf(o), nil
	case kindStatefulSet:
		o, err := i.Client.AppsV1().StatefulSets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return i.statefulSetOf(o), nil
	}
	return nil, fmt.Errorf("%s is not a kind of workload", key.Kind)
}

// podTemplateHash is the label that the pods of one ReplicaSet share.
const podTemplateHash = "pod-template-hash"

// ask returns the target and the live pods of the new pod's workload according to the cluster
// itself, as far as it responds: the size of the workload and, if the new pod is still one too
// many, the existing pods. The caller holds the lock, which is released during requests.
func (i *Inventory) ask(ctx context.Context, w *workload, c webhook.Creation, target split.Target, now time.Time) (split.Target, split.Split) {
	i.mu.Unlock()
	told, err := i.get(ctx, w.key)
	i.mu.Lock()
	if err == nil {
		i.learn(told)
		if t, managed := i.target(told); managed {
			target = t
		}
	}
	live := i.live(c, now)
	hash, ok := c.Labels[podTemplateHash]
	if live.Total() < target.Total() || c.Owner.Kind != kindReplicaSet || !ok {
		return target, live
	}
	asked := i.seen
	i.mu.Unlock()
	list, err := i.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: podTemplateHash + "=" + hash})
	i.mu.Lock()
	if err != nil {
		return target, i.live(c, now)
	}
	return target, i.liveOf(list, asked, c, now)
}

// liveOf returns the live pods of the new pod's controller from a list. Pods created after the list
// was requested are known from the watch.
func (i *Inventory) liveOf(list *corev1.PodList, asked uint64, c webhook.Creation, now time.Time) split.Split {
	var live split.Split
	listed, admitted := map[types.UID]bool{}, map[types.UID]bool{}
	for n := range list.Items {
		p := podOf(&list.Items[n])
		if p.owner != c.Owner.UID {
			continue
		}
		listed[p.uid], admitted[p.admission] = true, true
		if !p.terminating && !p.ended {
			live = live.Plus(i.typeOfPod(p))
		}
	}
	for _, p := range i.podsOf[c.Owner.UID] {
		if p.seen > asked && !listed[p.uid] && !p.terminating && !p.ended {
			live = live.Plus(i.typeOfPod(p))
		}
	}
	for _, r := range i.unmet(c, now) {
		if !admitted[r.admission] && now.Sub(r.at) < createdWithin {
			live = live.Plus(r.kind)
		}
	}
	return live
}
