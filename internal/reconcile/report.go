package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// report is an observation about workloads on the way to Run.
type report struct {
	// takeIn passes the report to the planner. It returns an error if the report is invalid.
	takeIn func(p *planner, now time.Time) error
	done   chan error // receives one value, once the consequences are durable
}

// maxReports is how many reports are applied before their consequences are written.
const maxReports = 1000

// tell passes a report to Run, and returns when its consequences are durable and in the fleet. The
// error is that of the report, or that of ctx with what was to be done.
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
		return fmt.Errorf("%s: wait for the resulting decisions: %w", what, ctx.Err())
	}
}

// takeInReports passes reports, including those already queued, to the planner. It answers invalid
// ones, and keeps the others until their consequences are durable. The error is that of plan.
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
