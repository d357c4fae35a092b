package columns

import (
	"maps"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Knows reports whether the cluster's last capacity report contains what was
// decided at a moment. Where there is none, and nothing is declared to be in use,
// it contains nothing.
func (r *Row) Knows(since time.Time) bool {
	if r.reportedAt.IsZero() && len(r.cluster.Spec.Allocated) == 0 && len(r.cluster.Status.Allocated) == 0 {
		return false
	}
	return !since.After(r.reportedAt)
}

// capacityReport is the moment of the cluster's last capacity report. A report
// that is declared in the spec shows there at once, and in the status only when
// its writer has seen the spec: until then the new amounts would be charged
// together with the reservations that they contain. Where a heartbeat has given
// amounts, those count until the status is written, and so do the reservations.
func capacityReport(before *Row, c *api.Cluster) time.Time {
	var at time.Time
	if t := c.Status.CapacityReportedAt; t != nil {
		at = *t
	}
	modified := c.Metadata.ModifiedAt
	if c.Status.ObservedGeneration >= c.Metadata.Generation || len(c.Spec.Allocated) == 0 || len(c.Status.Allocated) > 0 || modified == nil {
		return at
	}
	if before != nil {
		at = later(at, before.reportedAt)
		if maps.Equal(before.cluster.Spec.Allocated, c.Spec.Allocated) {
			return at
		}
	}
	return later(at, *modified)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
