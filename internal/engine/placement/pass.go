package placement

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// Pass is one look at the fleet for one query: at who is admitted, and at how they
// are rated.
type Pass struct {
	score.Rating
	Query *Query
}

// PassOf returns a pass that looks at single rows.
func PassOf(f *columns.Fleet, q *Query, reserved *ledger.Reservations) Pass {
	return Pass{Rating: score.Rating{Look: q.look(f, reserved), By: q.scoring}, Query: q}
}

// newPass returns a pass with scratch space for Apply.
func newPass(f *columns.Fleet, q *Query, reserved *ledger.Reservations) *Pass {
	return &Pass{Rating: score.Rating{Look: newLook(f, q, reserved), By: q.scoring}, Query: q}
}

func (p *Pass) mask() columns.Bitmap { return p.Query.Checks.Mask(&p.Look) }

// Admits reports whether the checks admit one row. current says that it is part of the
// present decision.
func (p *Pass) Admits(row int, current bool) bool {
	return p.Query.Checks.Admits(&p.Look, row, current)
}

// Stays is the first moment at which time alone takes out a chosen row, zero if
// none does.
func (p *Pass) Stays(row int) time.Time { return p.Query.Checks.UntilOf(&p.Look, row, true) }

// admitted is the first moment at which time alone takes out a row that is
// admitted, zero if none does.
func (p *Pass) admitted(row int) time.Time { return p.Query.Checks.UntilOf(&p.Look, row, false) }

func (p *Pass) demotedRows() columns.Bitmap { return p.Query.tolerations.DemotedRows(p.Fleet) }

func (p *Pass) demoted(row int) bool { return p.Query.tolerations.Demoted(p.Fleet, row) }
