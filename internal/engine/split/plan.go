package split

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// LastCall is how long before its node ends a pod is replaced whatever else goes on:
// it has to be gone by then, and a pod takes half a minute to end by default.
const LastCall = 45 * time.Second

// Workload is what the rules look at of a Deployment or StatefulSet.
type Workload struct {
	Kind     string
	Replicas int64
	// Managed says that the pods are to be split, by Target.
	Managed bool
	Target  Target
	// Recreate says that pods that were split are replaced when they are not to be any
	// more.
	Recreate bool
	// Unsettled says what is going on with the workload, such as a rollout; "" is
	// nothing. Whether the pods are well, the rules see themselves.
	Unsettled string
	// Pods are those of its present revision.
	Pods []Pod
}

// Circumstances are what the rules look at besides the workload.
type Circumstances struct {
	Now time.Time
	// Hold says why new pods would not be split, "" where they would.
	Hold string
	// MayReturn reports whether there may be a spot node again for a pod that fell back.
	// Nil is for none.
	MayReturn func(*Pod) bool
}

// Reason is why a pod is replaced.
type Reason string

// The reasons to replace a pod.
const (
	// ReasonMismatch: there are too many pods of its type, and too few of the other.
	ReasonMismatch Reason = "Mismatch"
	// ReasonNodeEnds: its node has announced its end.
	ReasonNodeEnds Reason = "NodeEnds"
	// ReasonReturn: it is for spot nodes, and there are some again.
	reasonReturn Reason = "Return"
	// ReasonDisabled: the workload is not to be split any more.
	reasonDisabled Reason = "Disabled"
)

// Plan is what is to be done about a workload now.
type Plan struct {
	// Replace is the pod to replace, nil for none.
	Replace *Pod
	Reason  Reason
	// State and Message are how far the workload is from its split.
	State   api.DistributionState
	Message string
}

// Next says which pod of a workload is to be replaced now, if any. It is one pod at
// most, and only while all the others are well: its controller makes a new one, which
// gets the type that lacks. With 3 pods for spot and 2 for on-demand nodes, and 2 and
// 3 wanted, that is one spot pod; with 3 and 1 and one that is not ready it is none.
func (w *Workload) Next(c Circumstances) Plan {
	live := Live(w.Pods)
	unwell := w.unwell()
	if pod := w.ending(c, unwell == ""); pod != nil {
		return Plan{pod, ReasonNodeEnds, api.DistributionReplacing, fmt.Sprintf("node %s is about to terminate: pod %s is being replaced", pod.Node, pod.Name)}
	}
	pod, reason := w.wrong(live)
	switch {
	case !w.Managed && pod == nil:
		return Plan{State: api.DistributionUnmanaged}
	case pod == nil && unwell == "" && live == w.Target.Split:
		return w.whole(c)
	case unwell != "":
		return Plan{State: api.DistributionWaiting, Message: unwell}
	case pod == nil:
		return w.stuck(live)
	case c.Hold != "" && w.Managed:
		return Plan{State: api.DistributionBlocked, Message: c.Hold}
	case reason == ReasonMismatch && pod.Pinned:
		return Plan{State: api.DistributionBlocked, Message: fmt.Sprintf("the pods' own node selector or affinity allows only %s nodes", pod.capacityType())}
	}
	return Plan{pod, reason, api.DistributionReplacing, fmt.Sprintf("%s: pod %s is being replaced", w.counts(live), pod.Name)}
}

func (w *Workload) counts(live Split) string {
	return fmt.Sprintf("%d on-demand and %d spot of %d and %d", live.OnDemand, live.Spot, w.Target.OnDemand, w.Target.Spot)
}

// whole is the plan for a workload that has its split.
func (w *Workload) whole(c Circumstances) Plan {
	fallen := 0
	for i := range w.Pods {
		if w.Pods[i].FallenBack() {
			fallen++
		}
	}
	if fallen == 0 {
		return Plan{State: api.DistributionConverged}
	}
	if c.MayReturn != nil && c.Hold == "" {
		if back := w.first(func(p *Pod) bool { return p.FallenBack() && c.MayReturn(p) }); back != nil {
			return Plan{back, reasonReturn, api.DistributionReplacing, fmt.Sprintf("spot nodes are available again: pod %s is being replaced", back.Name)}
		}
	}
	return Plan{State: api.DistributionDegraded, Message: fmt.Sprintf("%d pods for spot nodes run on on-demand nodes", fallen)}
}

// stuck is the plan where the split is off and replacing a pod would not help.
func (w *Workload) stuck(live Split) Plan {
	return Plan{State: api.DistributionWaiting, Message: w.counts(live) + ": the workload is being scaled"}
}

// wrong finds the pod that should not be what it is: one of which there are too many
// while the other type has too few; one that nothing is known of while a type has too
// few; or, where there is to be no split any more, one that has one. Too many of one
// type alone are left to the controller, which is making the workload smaller.
func (w *Workload) wrong(live Split) (*Pod, Reason) {
	if !w.Managed {
		if !w.Recreate {
			return nil, ""
		}
		return w.first(func(p *Pod) bool { return p.For != Unset }), reasonDisabled
	}
	lacksOnDemand, lacksSpot := live.OnDemand < w.Target.OnDemand, live.Spot < w.Target.Spot
	surplus := Unset
	switch {
	case lacksOnDemand && live.Spot > w.Target.Spot:
		surplus = Spot
	case lacksSpot && live.OnDemand > w.Target.OnDemand:
		surplus = OnDemand
	case !lacksOnDemand && !lacksSpot:
		return nil, ""
	}
	return w.first(func(p *Pod) bool { return p.capacityType() == surplus }), ReasonMismatch
}

// first is the pod to go first of those that match. One that is free to become
// another goes before one that is not.
func (w *Workload) first(match func(*Pod) bool) *Pod {
	var best *Pod
	for i := range w.Pods {
		pod := &w.Pods[i]
		if pod.Terminating || !match(pod) {
			continue
		}
		if best == nil || best.Pinned && !pod.Pinned || best.Pinned == pod.Pinned && w.before(pod, best) {
			best = pod
		}
	}
	return best
}

// before is the order in which pods go: as their controllers take them, those that
// are not ready first, then the youngest; of a StatefulSet the highest ordinal.
func (w *Workload) before(a, b *Pod) bool {
	if w.Kind == api.KindStatefulSet {
		return a.Ordinal > b.Ordinal
	}
	if a.Ready != b.Ready {
		return b.Ready
	}
	return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.Name, b.Name)) < 0
}

// unwell says why no pod of the workload may be taken away, "" if one may.
func (w *Workload) unwell() string {
	if w.Unsettled != "" {
		return w.Unsettled
	}
	ready := int64(0)
	for i := range w.Pods {
		pod := &w.Pods[i]
		switch {
		case pod.Terminating:
			return fmt.Sprintf("pod %s is terminating", pod.Name)
		case !pod.Ready:
			return fmt.Sprintf("pod %s is not ready", pod.Name)
		}
		ready++
	}
	if ready != w.Replicas {
		return fmt.Sprintf("%d of %d pods are there", ready, w.Replicas)
	}
	return ""
}

// ending is the pod to replace because its node ends, nil where there is none or it
// has to wait for the others. Shortly before the end nothing waits any more.
func (w *Workload) ending(c Circumstances, well bool) *Pod {
	if !w.Managed {
		return nil
	}
	ends := make([]*Pod, 0, len(w.Pods))
	for i := range w.Pods {
		if pod := &w.Pods[i]; !pod.Ends.IsZero() && !pod.Terminating {
			ends = append(ends, pod)
		}
	}
	if len(ends) == 0 {
		return nil
	}
	first := slices.MinFunc(ends, func(a, b *Pod) int {
		switch {
		case !a.Ends.Equal(b.Ends):
			return a.Ends.Compare(b.Ends)
		case w.before(a, b):
			return -1
		}
		return 1
	})
	if well || !c.Now.Before(first.Ends.Add(-LastCall)) {
		return first
	}
	return nil
}
