package reconcile

import (
	"maps"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// noteTaints updates taints in the status as its live writer would for the declared ones: a taint
// that the status does not have yet starts now, and one that is no longer declared is removed.
// rewritten says that the cluster replaces another version.
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

// noteAmounts updates the status as its live writer would for a new spec: a change of the amounts
// in use is a capacity report. was is the previous version, or nil.
func noteAmounts(c, was *api.Cluster, now time.Time) {
	if was == nil || len(c.Spec.Allocated) == 0 {
		return
	}
	c.Status.ObservedGeneration = c.Metadata.Generation
	if !maps.Equal(c.Spec.Allocated, was.Spec.Allocated) {
		c.Status.CapacityReportedAt = &now
		c.Status.Allocated = nil // values from heartbeats are older
	}
}
