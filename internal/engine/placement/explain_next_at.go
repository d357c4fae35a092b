package placement

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// nextAt is when time alone may change the decision. Besides what the outcome
// tells this is what the reconciler learns from the fleet and from the view: a
// score that counts expires, the last reading of a metric becomes too old, or a
// cluster leaves that others are compared with.
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
