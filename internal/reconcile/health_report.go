package reconcile

import (
	"context"
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// healthReport is a report on its way to Run.
type healthReport struct {
	key    api.Key
	report api.HealthReport
	done   chan error // gets one value, once what follows is durable
}

// maxReports is how many reports are taken in before what follows is written.
const maxReports = 1000

// ReportHealth takes in how a workload does on one of its clusters, and returns
// when what follows is durable and in the fleet, with the revision of that. The
// error is ErrNotFound, that of a report about a cluster that the workload does
// not run on (api.FieldErrors), or that of ctx.
func (r *Reconciler) ReportHealth(ctx context.Context, key api.Key, report api.HealthReport) (revision int64, err error) {
	sent := healthReport{key, report, make(chan error, 1)}
	select {
	case r.reports <- sent:
	case <-ctx.Done():
		return 0, fmt.Errorf("report the health of %s: %w", key, ctx.Err())
	}
	select {
	case err := <-sent.done:
		return r.options.Fleet.Snapshot().Revision(), err
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for what follows from the health of %s: %w", key, ctx.Err())
	}
}

// takeInReports gives the planner a report and those that wait behind it. It
// answers those that are wrong, and returns the others for when what follows is
// durable.
func (r *Reconciler) takeInReports(first healthReport) (taken []healthReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for report, n := first, 1; ; n++ {
		if err := r.takeInReport(report); err != nil {
			report.done <- err
		} else {
			taken = append(taken, report)
		}
		if n == maxReports {
			return taken
		}
		select {
		case report = <-r.reports:
		default:
			return taken
		}
	}
}

func (r *Reconciler) takeInReport(h healthReport) error {
	w, ok := r.planner.bindings.workloads[h.key]
	if !ok {
		return fmt.Errorf("%s: %w", h.key, ErrNotFound)
	}
	if _, runs := clustersOf(&w.status)[h.report.Cluster]; !runs {
		return api.FieldErrors{{Field: "cluster", Message: fmt.Sprintf("%s does not run on %q", h.key, h.report.Cluster)}}
	}
	r.planner.bindings.report(w, h.report, r.now())
	return nil
}
