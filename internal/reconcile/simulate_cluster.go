package reconcile

import (
	"maps"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// noteTaints is what the writer of the cluster's status would make of the taints
// that a cluster declares: one that the status does not show yet is there from
// now on, and one that is no longer declared is gone. rewritten says that the
// cluster takes the place of another version of it.
func noteTaints(c *api.Cluster, rewritten bool, now time.Time) {
	now = now.UTC()
	taints := c.Taints()
	for i := range taints {
		known := slices.ContainsFunc(c.Status.Taints, func(s api.ClusterTaint) bool {
			return s.Is(api.Taint{Key: taints[i].Key, Value: taints[i].Value, Effect: taints[i].Effect})
		})
		if taints[i].TimeAdded == nil || (rewritten && !known) {
			taints[i].TimeAdded = &now
		}
	}
	c.Status.Taints = taints
}

// noteAmounts is what the writer of the cluster's status would make of a new spec: a
// change of the amounts in use is a capacity report. was is the version before, or
// nil.
func noteAmounts(c, was *api.Cluster, now time.Time) {
	if was == nil || len(c.Spec.Allocated) == 0 {
		return
	}
	c.Status.ObservedGeneration = c.Metadata.Generation
	if !maps.Equal(c.Spec.Allocated, was.Spec.Allocated) {
		c.Status.CapacityReportedAt = &now
		c.Status.Allocated = nil // what a heartbeat gave is older
	}
}
