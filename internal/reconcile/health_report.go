package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// ReportHealth applies a report about the health of a workload on one of its clusters, and returns
// when its consequences are durable and in the fleet, with their revision. The error is
// ErrNotFound, api.FieldErrors for a report about a cluster that the workload does not run on, or
// that of ctx.
func (r *Reconciler) ReportHealth(ctx context.Context, key api.Key, report api.HealthReport) (revision int64, err error) {
	err = r.tell(ctx, "report the health of "+key.String(), func(p *planner, now time.Time) error {
		return p.bindings.takeInHealth(key, report, now)
	})
	return r.options.Fleet.Snapshot().Revision(), err
}

func (b *workloadPlanner) takeInHealth(key api.Key, report api.HealthReport, now time.Time) error {
	b.focus(key)
	w, ok := b.workloads[key]
	if !ok {
		return fmt.Errorf("%s: %w", key, ErrNotFound)
	}
	if _, runs := clustersOf(&w.status)[report.Cluster]; !runs {
		return api.FieldErrors{{Field: "cluster", Message: fmt.Sprintf("%s does not run on %q", key, report.Cluster)}}
	}
	b.report(w, report, now)
	return nil
}
