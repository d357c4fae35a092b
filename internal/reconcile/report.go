package reconcile

import (
	"cmp"
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

// takeInReports gives the planner some reports and those that wait behind them. It
// answers those that are wrong, and keeps the others for when what follows is
// durable. The error is that of plan.
func (r *loop) takeInReports(first ...report) error {
	for n := 0; ; n++ {
		var next report
		if n < len(first) {
			next = first[n]
		} else if n >= maxReports {
			return nil
		} else {
			select {
			case next = <-r.reports:
			default:
				return nil
			}
		}
		var wrong error
		err := r.plan(func(p *planner) { wrong = next.takeIn(p, r.now()) })
		if wrong = cmp.Or(wrong, err); wrong != nil {
			next.done <- wrong
		} else {
			r.unanswered = append(r.unanswered, next)
		}
		if err != nil {
			r.unanswered = append(r.unanswered, first[min(n+1, len(first)):]...)
			return err
		}
	}
}
