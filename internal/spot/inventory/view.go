package inventory

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// retryReturn is how long a pod that found no spot node stays where it is before it is retried
// although no spot node was added.
const retryReturn = 2 * time.Hour

// View is a workload for the rules.
type View struct {
	split.Workload
	UID    types.UID
	Source api.DistributionSource
	// Invalid says what is wrong with the labels of the workload, Barred why it is never split.
	Invalid, Barred string
	// Wanted says that a split was requested, whether or not it is possible.
	Wanted bool
	// Until is when the last reservation of an admitted pod that has not been seen expires; zero if
	// there is none.
	Until time.Time
	// CostsOwn says that the pods have their own deletion cost.
	CostsOwn bool
	// Costs are the deletion costs of the pods by name, "" for none.
	Costs map[string]string
}

// View returns the current state of a workload; false if the cluster has none. recreate says that
// pods are replaced when they are no longer split.
func (i *Inventory) View(key Key, recreate bool) (View, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	w := i.workloads[key]
	if w == nil || w.deleting {
		return View{}, false
	}
	d, source, managed := i.rule(w)
	_, asked := i.asked[key]
	v := View{
		Wanted: asked || w.settings.Enabled != nil && *w.settings.Enabled,
		Workload: split.Workload{
			Kind: key.Kind, Replicas: w.replicas, Managed: managed, Recreate: recreate, Target: split.Targets(key.Kind, w.replicas, d),
		},
		UID: w.uid, Source: source, Invalid: w.invalid, Barred: i.barred(w), CostsOwn: w.ownCost, Costs: map[string]string{},
	}
	controller, old := w.uid, 0
	if key.Kind == kindDeployment {
		rs := i.current(w)
		if rs == nil {
			v.Unsettled = "the deployment has no replica set yet"
			return v, true
		}
		controller = rs.uid
		for uid := range i.setsOf[w.uid] {
			if uid != controller {
				old += i.running(uid)
			}
		}
	}
	for _, p := range i.podsOf[controller] {
		switch {
		case p.ended:
		case w.revision != "" && p.revision != w.revision:
			old++
		default:
			v.Pods = append(v.Pods, i.show(p, w))
			v.Costs[p.name] = p.cost
		}
	}
	slices.SortFunc(v.Pods, func(a, b split.Pod) int { return a.Created.Compare(b.Created) })
	if v.Unsettled = unsettled(w, len(v.Pods), old); v.Unsettled == "" {
		// The place is counted when the next pod is assigned a type.
		var kept int
		if kept, v.Until = i.kept(controller); kept > 0 {
			v.Unsettled = fmt.Sprintf("%d pods were admitted and have not appeared yet", kept)
		}
	}
	return v, true
}

func (i *index) running(controller types.UID) (n int) {
	for _, p := range i.podsOf[controller] {
		if !p.ended {
			n++
		}
	}
	return n
}

func (i *index) show(p *pod, w *workload) split.Pod {
	out := split.Pod{
		Name: p.name, UID: string(p.uid), For: p.kind, Node: p.node, Ready: p.ready, Terminating: p.terminating,
		Created: p.created, Ordinal: p.ordinal, Pinned: w.pinned != split.Unset,
	}
	if n := i.nodes[p.node]; n != nil {
		out.On, out.Ends = n.kind, n.ends
	}
	return out
}

// unsettled describes an ongoing operation on a workload, apart from the state of its pods.
func unsettled(w *workload, pods, old int) string {
	switch {
	case w.paused:
		return "its rollout is paused"
	case !w.observed:
		return "its controller has not seen its present spec yet"
	case w.partial && old > 0:
		return fmt.Sprintf("%d pods have an older revision, which its update strategy keeps", old)
	case old > 0:
		return fmt.Sprintf("a rollout is in progress: %d pods have an older revision", old)
	case w.key.Kind == kindDeployment && w.updated < w.replicas:
		return fmt.Sprintf("a rollout is in progress: %d of %d pods are updated", w.updated, w.replicas)
	case int64(pods) != w.replicas:
		return fmt.Sprintf("it is being scaled: %d of %d pods exist", pods, w.replicas)
	case w.available < w.replicas:
		return fmt.Sprintf("%d of %d pods are available", w.available, w.replicas)
	}
	return ""
}

// MayReturn reports whether a pod for spot nodes that runs on an on-demand node should be retried
// now; at is when it may be, zero for as soon as something changes. There must be room for it, and
// either a spot node must have been added some time ago after the pod was created, or the pod must
// have been there for a long time.
func (i *Inventory) MayReturn(uid string) (may bool, at time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	p := i.pods[types.UID(uid)]
	if p == nil || i.spotGrown.IsZero() {
		return false, time.Time{}
	}
	at = p.created.Add(retryReturn)
	if grown := i.spotGrown.Add(i.ReturnAfter); p.created.Before(i.spotGrown) && grown.Before(at) {
		at = grown
	}
	if i.Now().Before(at) {
		return false, at
	}
	return i.roomOnSpot(p), time.Time{}
}

// Keys returns the workloads that may need work: those that are split or requested, or have pods
// that were split.
func (i *Inventory) Keys() []Key {
	i.mu.Lock()
	defer i.mu.Unlock()
	keys := map[Key]struct{}{}
	for key := range i.asked {
		keys[key] = struct{}{}
	}
	for key, w := range i.workloads {
		if w.invalid != "" || w.settings.Enabled != nil && *w.settings.Enabled {
			keys[key] = struct{}{}
		}
	}
	for _, p := range i.pods {
		if p.kind == split.Unset {
			continue
		}
		if key, ok := i.workloadOf(p); ok {
			keys[key] = struct{}{}
		}
	}
	return slices.Collect(maps.Keys(keys))
}

// Nodes counts the usable nodes by type, and those that will be terminated.
func (i *Inventory) Nodes() (usable split.Split, ending int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, n := range i.nodes {
		if n.usable {
			usable = usable.Plus(n.kind)
		}
		if n.by != "" {
			ending++
		}
	}
	return usable, ending
}

// Unfenced returns the nodes whose termination was announced and that still accept pods.
func (i *Inventory) Unfenced() map[string]time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := map[string]time.Time{}
	for name, n := range i.nodes {
		if n.by != "" && !n.fenced {
			out[name] = n.ends
		}
	}
	return out
}

// CostOf returns a deletion cost in the form of its annotation.
func CostOf(cost int32) string {
	if cost == 0 {
		return "" // the default
	}
	return strconv.FormatInt(int64(cost), 10)
}

// Outlived returns the nodes that have our taint and still exist some time after their announced
// termination. If somebody else announces it too, our taint stays, because it would be added again
// at once.
func (i *Inventory) Outlived(by time.Duration) (names []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for name, n := range i.nodes {
		if n.by == spot.TaintInterruption && !n.others && i.Now().After(n.ends.Add(by)) {
			names = append(names, name)
		}
	}
	return names
}

// IsAsked reports whether a workload object of the server requests a split.
func (i *Inventory) IsAsked(key Key) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, ok := i.asked[key]
	return ok
}

// Labelled reports whether there are pods that were created for a node type.
func (i *Inventory) Labelled() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, p := range i.pods {
		if p.kind != split.Unset && !p.ended {
			return true
		}
	}
	return false
}
