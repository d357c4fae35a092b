package engine

import "time"

// Pass is one look at the fleet for one query: at who is admitted, and at how they
// are rated.
type Pass struct {
	Rating
	query *Query
}

// passOf returns a pass that looks at single rows.
func passOf(f *Fleet, q *Query, reserved *Reservations) Pass {
	return Pass{Rating: Rating{Look: q.look(f, reserved), by: q.scoring}, query: q}
}

// newPass returns a pass with scratch space for Apply.
func newPass(f *Fleet, q *Query, reserved *Reservations) *Pass {
	return &Pass{Rating: Rating{Look: newLook(f, q, reserved), by: q.scoring}, query: q}
}

func (p *Pass) mask() Bitmap { return p.query.checks.mask(&p.Look) }

func (p *Pass) admits(row int, current bool) bool {
	return p.query.checks.admits(&p.Look, row, current)
}

// stays is the first moment at which time alone takes out a chosen row, zero if
// none does.
func (p *Pass) stays(row int) time.Time { return p.query.checks.untilOf(&p.Look, row, true) }

// admitted is the first moment at which time alone takes out a row that is
// admitted, zero if none does.
func (p *Pass) admitted(row int) time.Time { return p.query.checks.untilOf(&p.Look, row, false) }

func (p *Pass) demotedRows() Bitmap { return p.query.tolerations.demotedRows(p.fleet) }

func (p *Pass) demoted(row int) bool { return p.query.tolerations.demoted(p.fleet, row) }
