package columns

import (
	"maps"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Knows reports whether the cluster's last capacity report contains decisions made at the given
// time. Without a report, and without declared use, it does not.
func (r *Row) Knows(since time.Time) bool {
	if r.reportedAt.IsZero() && len(r.cluster.Spec.Allocated) == 0 && len(r.cluster.Status.Allocated) == 0 {
		return false
	}
	return !since.After(r.reportedAt)
}

// capacityReport returns the time of the cluster's last capacity report. Amounts declared in a spec
// are visible at once, but their time appears in the status only after the writer of the status has
// seen the spec. Until then, reservations contained in the new amounts would be counted twice. If a
// heartbeat has reported amounts, those amounts and the reservations count until the status is
// written.
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
