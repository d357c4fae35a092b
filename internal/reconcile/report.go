package reconcile

import (
	"context"
	"fmt"
	"time"
)

// report is something that somebody has seen of workloads, on its way to Run.
type report struct {
	// takeIn tells the planner. Its error says that the report is wrong.
	takeIn func(p *planner, now time.Time) error
	done   chan error // gets one value, once what follows is durable
}

// maxReports is how many reports are taken in before what follows is written.
const maxReports = 1000

// tell hands a report to Run, and returns when what follows is durable and in the
// fleet. The error is that of the report, or that of ctx, which says what was to be
// done.
func (r *Reconciler) tell(ctx context.Context, what string, takeIn func(p *planner, now time.Time) error) error {
	sent := report{takeIn, make(chan error, 1)}
	select {
	case r.reports <- sent:
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	select {
	case err := <-sent.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%s: wait for what follows: %w", what, ctx.Err())
	}
}

// takeInReports gives the planner a report and those that wait behind it. It
// answers those that are wrong, and returns the others for when what follows is
// durable.
func (r *Reconciler) takeInReports(first report) (taken []report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for next, n := first, 1; ; n++ {
		if err := next.takeIn(r.planner, r.now()); err != nil {
			next.done <- err
		} else {
			taken = append(taken, next)
		}
		if n == maxReports {
			return taken
		}
		select {
		case next = <-r.reports:
		default:
			return taken
		}
	}
}
