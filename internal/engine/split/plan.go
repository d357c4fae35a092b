package split

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// LastCall is how long before the end of its node a pod is replaced regardless of anything else. It
// must be gone by then, and the default termination grace period is 30 seconds.
const LastCall = 45 * time.Second

// Workload is what the rules use of a Deployment or StatefulSet.
type Workload struct {
	Kind     string
	Replicas int64
	// Managed says that the pods are split, according to Target.
	Managed bool
	Target  Target
	// Recreate says that pods that were split are replaced once the workload is no longer split.
	Recreate bool
	// Unsettled describes an ongoing operation on the workload, such as a rollout, or is "". It
	// does not cover the health of pods, which the rules check themselves.
	Unsettled string
	// Pods are the pods of its current revision.
	Pods []Pod
}

// Circumstances are what the rules use besides the workload.
type Circumstances struct {
	Now time.Time
	// Hold says why new pods would not be split, or is "".
	Hold string
	// MayReturn reports whether a spot node may be available again for a pod that fell back. If
	// nil, none is.
	MayReturn func(*Pod) bool
}

// Reason is why a pod is replaced.
type Reason string

// Reasons to replace a pod.
const (
	// ReasonMismatch: there are too many pods of its type, and too few of the other.
	ReasonMismatch Reason = "Mismatch"
	// ReasonNodeEnds: the end of its node has been announced.
	ReasonNodeEnds Reason = "NodeEnds"
	// reasonReturn: it is meant for spot nodes, and these are available again.
	reasonReturn Reason = "Return"
	// reasonDisabled: the workload is no longer split.
	reasonDisabled Reason = "Disabled"
)

// Plan is what to do about a workload now.
type Plan struct {
	// Replace is the pod to replace, or nil.
	Replace *Pod
	Reason  Reason
	// State and Message describe how far the workload is from its split.
	State   api.DistributionState
	Message string
}

// Next determines which pod of a workload to replace now, if any. It is at most one, and only while
// all others are healthy: the controller creates a new one, which gets the missing type. With 3
// spot and 2 on-demand pods, and targets of 2 and 3, a spot pod is replaced; with 3 and 1 and one
// pod that is not ready, none is.
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

// whole returns the plan for a workload whose split is right.
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

// stuck returns the plan if the split is wrong and replacing a pod would not help.
func (w *Workload) stuck(live Split) Plan {
	return Plan{State: api.DistributionWaiting, Message: w.counts(live) + ": the workload is being scaled"}
}

// wrong returns a pod with the wrong type: one of a type with too many pods while the other has too
// few; one of unknown type while a type has too few; or any split pod if the workload is no longer
// split. If only one type has too many, the controller is scaling down and removes them itself.
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

// first returns the first pod to replace among those that match. Pods that can become the other
// type come first.
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

// before is the order in which pods are replaced, which is that of their controllers: pods that are
// not ready first, then the youngest; for a StatefulSet the highest ordinal.
func (w *Workload) before(a, b *Pod) bool {
	if w.Kind == api.KindStatefulSet {
		return a.Ordinal > b.Ordinal
	}
	if a.Ready != b.Ready {
		return b.Ready
	}
	return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.Name, b.Name)) < 0
}

// unwell says why no pod of the workload may be removed, or returns "".
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

// ending returns the pod to replace because its node ends, or nil if there is none or it must wait
// for the others. Shortly before the end, it does not wait.
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
