package engine

import "time"

// nextAt is when time alone may change the decision. Besides what the outcome
// tells this is what the reconciler learns from the fleet and from the view: a
// score that counts expires, the last reading of a metric becomes too old, or a
// cluster leaves that others are compared with.
func (e *Explained) nextAt() time.Time {
	p, next := e.pass, e.NextAt
	f, q := p.fleet, p.query
	sooner := func(at time.Time) {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if q.Relative() || q.Spreads() {
		sooner(e.view.Until)
	}
	if q.Reads().Any(ScoreValues) {
		sooner(f.nextExpiry())
	}
	if by := q.scoring.perishes; by != nil && q.UsesScores() {
		e.Admitted.each(func(row int) { sooner(by.Until(f, row)) })
	}
	if len(f.aging) > 0 {
		e.Admitted.each(func(row int) {
			for _, m := range f.rows[row].metrics {
				sooner(f.metrics[m.id].staleAt)
			}
		})
	}
	return next
}
