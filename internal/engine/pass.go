package engine

import "time"

// Pass is one look at the fleet for one query: at who is admitted, and at how they
// are rated.
type Pass struct {
	Look
	query *Query

	// What scoring by prioritizers needs; see score_prioritizers.go.
	ranking *Ranking
	seen    seen
	mine    Bitmap // rows of the present decision, where its own use matters
	spans   []span // of the relative terms
	left    []span // of what reservations leave; nil where nothing asks
	// candidates are the rows a relative ranking has; nil where it has all.
	candidates Bitmap
	figures    []figures // by term, once resolved
	// settled: the decision answers its spec, and a wish to be elsewhere moves
	// nothing.
	settled bool
}

// passOf returns a pass that looks at single rows.
func passOf(f *Fleet, q *Query, reserved *Reservations) Pass {
	return Pass{Look: q.look(f, reserved), query: q}
}

// newPass returns a pass with scratch space for Apply.
func newPass(f *Fleet, q *Query, reserved *Reservations) *Pass {
	return &Pass{Look: newLook(f, q, reserved), query: q}
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
