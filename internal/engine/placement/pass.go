package placement

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// Pass is one evaluation of the fleet for one query: which clusters are admitted, and how they are
// rated.
type Pass struct {
	score.Rating
	Query *Query
}

// PassOf returns a Pass for single rows.
func PassOf(f *columns.Fleet, q *Query, reserved *ledger.Reservations) Pass {
	return Pass{Rating: score.Rating{Look: q.look(f, reserved), By: q.scoring}, Query: q}
}

// newPass returns a Pass with the scratch space that Apply needs.
func newPass(f *columns.Fleet, q *Query, reserved *ledger.Reservations) *Pass {
	return &Pass{Rating: score.Rating{Look: newLook(f, q, reserved), By: q.scoring}, Query: q}
}

func (p *Pass) mask() columns.Bitmap { return p.Query.Checks.Mask(&p.Look) }

// Admits reports whether the checks admit one row. current says that it is part of the current
// decision.
func (p *Pass) Admits(row int, current bool) bool {
	return p.Query.Checks.Admits(&p.Look, row, current)
}

// AdmitsMeant is Admits for a cluster that is meant. One that does not stand yet (awaited) must fit
// like a new one, but its amounts are reserved there already.
func (p *Pass) AdmitsMeant(row int, awaited bool) bool {
	if !awaited {
		return p.Admits(row, true)
	}
	for _, check := range p.Query.Checks.All {
		_, reserves := check.(filter.Reserving)
		if !check.Admits(&p.Look, row, reserves) {
			return false
		}
	}
	return true
}

// Evicts returns the check for which a cluster of the current decision must be left at once: it is
// offline, or has a taint that evicts. It returns nil if there is none.
func (p *Pass) Evicts(row int) filter.Evicting {
	for _, check := range p.Query.Checks.All {
		if check, ok := check.(filter.Evicting); ok && !check.Admits(&p.Look, row, true) {
			return check
		}
	}
	return nil
}

// Stays returns when a chosen row will first be rejected through the passing of time alone, or
// zero.
func (p *Pass) Stays(row int) time.Time { return p.Query.Checks.UntilOf(&p.Look, row, true) }

// admitted returns when an admitted row will first be rejected through the passing of time alone,
// or zero.
func (p *Pass) admitted(row int) time.Time { return p.Query.Checks.UntilOf(&p.Look, row, false) }

func (p *Pass) demotedRows() columns.Bitmap { return p.Query.tolerations.DemotedRows(p.Fleet) }

func (p *Pass) demoted(row int) bool { return p.Query.tolerations.Demoted(p.Fleet, row) }
