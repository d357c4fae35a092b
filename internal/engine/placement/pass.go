package placement

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
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
	return Pass{Rating: score.Rating{Evaluation: q.evaluation(f, reserved), By: q.scoring}, Query: q}
}

// newPass returns a Pass with the scratch space that Apply needs.
func newPass(f *columns.Fleet, q *Query, reserved *ledger.Reservations) *Pass {
	return &Pass{Rating: score.Rating{Evaluation: newEvaluation(f, q, reserved), By: q.scoring}, Query: q}
}

func (p *Pass) mask() columns.Bitmap { return p.Query.Checks.Mask(&p.Evaluation) }

// Admits reports whether the checks admit one row. current says that it is part of the current
// decision.
func (p *Pass) Admits(row int, current bool) bool {
	return p.Query.Checks.Admits(&p.Evaluation, row, current)
}

// Stays returns when a chosen row will first be rejected through the passing of time alone, or
// zero.
func (p *Pass) Stays(row int) time.Time { return p.Query.Checks.UntilOf(&p.Evaluation, row, true) }

// admitted returns when an admitted row will first be rejected through the passing of time alone,
// or zero.
func (p *Pass) admitted(row int) time.Time { return p.Query.Checks.UntilOf(&p.Evaluation, row, false) }

func (p *Pass) demotedRows() columns.Bitmap { return p.Query.tolerations.DemotedRows(p.Fleet) }

func (p *Pass) demoted(row int) bool { return p.Query.tolerations.Demoted(p.Fleet, row) }
