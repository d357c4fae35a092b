package placement

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// nextAt returns when the decision may change through the passing of time alone. In addition to the
// outcome, this covers what the reconciler learns from the fleet and the view: a score expires, the
// last reading of a metric becomes too old, or a cluster that others are compared with is no longer
// admitted.
func (e *Explained) nextAt() time.Time {
	p, next := e.pass, e.NextAt
	f, q := p.Fleet, p.Query
	sooner := func(at time.Time) {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if q.Relative() || q.Spreads() {
		sooner(e.view.Until)
	}
	if q.Reads().Any(columns.ScoreValues) {
		sooner(f.NextExpiry())
	}
	if by := q.scoring.Perishes; by != nil && q.UsesScores() {
		e.Admitted.Each(func(row int) { sooner(by.Until(f, row)) })
	}
	if len(f.Aging()) > 0 {
		e.Admitted.Each(func(row int) {
			for _, m := range f.Rows()[row].Metrics {
				sooner(f.MetricOf(row, m).StaleAt)
			}
		})
	}
	return next
}
