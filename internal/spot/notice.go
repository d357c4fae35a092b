package spot

import (
	"slices"
	"strconv"
	"time"
)

// TaintInterruption is the taint with which this server marks a node that will be terminated; its
// value is the time as a Unix timestamp.
const TaintInterruption = "vacant.io/interruption"

// NoticeTime is how long in advance the termination of spot nodes is announced.
const NoticeTime = 2 * time.Minute

// Taint is a taint of a node.
type Taint struct {
	Key, Value string
	Added      time.Time // zero if unknown
}

// NodeCondition is a condition of a node that is true.
type NodeCondition struct {
	Type  string
	Since time.Time
}

// endingTaints are the taints with which providers, or their components in clusters, announce that
// a node will be terminated.
var endingTaints = []string{
	TaintInterruption,
	// AWS node termination handler.
	"aws-node-termination-handler/spot-itn",
	"aws-node-termination-handler/asg-lifecycle-termination",
	"aws-node-termination-handler/scheduled-maintenance",
	// Karpenter since version 1, and before.
	"karpenter.sh/disrupted",
	"karpenter.sh/disruption",
	// GKE.
	"cloud.google.com/impending-node-termination",
	// Cluster autoscaler.
	"ToBeDeletedByClusterAutoscaler",
	// Cloud controller managers, if the machine is shut down.
	"node.cloudprovider.kubernetes.io/shutdown",
}

// endingConditions are the node conditions with the same meaning: those of AKS.
var endingConditions = []string{"PreemptScheduled", "TerminateScheduled", "RedeployScheduled"}

// Ending determines from a node's taints and true conditions whether its termination has been
// announced, by what, and for when. seen is when the announcement was first seen.
func Ending(taints []Taint, conditions []NodeCondition, seen time.Time) (by string, ends time.Time, ending bool) {
	take := func(name string, at time.Time) {
		if !ending || at.Before(ends) {
			by, ends, ending = name, at, true
		}
	}
	after := func(since time.Time) time.Time {
		if since.IsZero() {
			since = seen
		}
		return since.Add(NoticeTime)
	}
	for _, t := range taints {
		if !slices.Contains(endingTaints, t.Key) {
			continue
		}
		if seconds, err := strconv.ParseInt(t.Value, 10, 64); err == nil && t.Key == TaintInterruption {
			take(t.Key, time.Unix(seconds, 0))
			continue
		}
		take(t.Key, after(t.Added))
	}
	for _, c := range conditions {
		if slices.Contains(endingConditions, c.Type) {
			take(c.Type, after(c.Since))
		}
	}
	return by, ends, ending
}
