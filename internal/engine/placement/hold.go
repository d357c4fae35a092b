package placement

import (
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/movement"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// hold takes back the moves of a seating that must not be made now. What takes the place of a
// cluster that no longer fits, and seats that the spec asks for and that are vacant, are no moves.
//
// Under spread constraints a decision moves as a whole, because a part of the moves may violate
// them.
func (p *Pass) hold(out *Outcome, s seating, v *View, current []contender, wanted int, present Present) seating {
	moves, leaving, gains := p.moves(s, current, wanted, present)
	if len(moves) == 0 {
		return s
	}
	made, held := present.Holding().Take(moves)
	if held == nil {
		out.Moved = movement.Count(moves, made)
		return s
	}
	would := slices.Clone(s.seats)
	p.sort(would)
	out.Held, held.Would = held, make([]string, len(would))
	for i, c := range would {
		out.Held.Would[i] = p.Fleet.Name(c.row)
	}
	if out.kept == "" {
		out.kept = KeptBy(held.By)
	}
	out.NextAt = filter.Sooner(out.NextAt, held.Again)
	if p.Query.Spreads() {
		if p.Query.Wanted == score.All {
			return seating{seats: slices.Clone(current)}
		}
		return p.seat(v, current, wanted, present, true)
	}
	out.Moved = movement.Count(moves, made)
	seats := slices.DeleteFunc(slices.Clone(s.seats), func(c contender) bool {
		return slices.ContainsFunc(gains, func(g contender) bool { return g.row == c.row })
	})
	for i := range moves {
		switch {
		case made[i] && i < len(gains):
			seats = append(seats, gains[i])
		case !made[i] && i < len(leaving):
			seats = append(seats, leaving[i])
		}
	}
	p.sort(seats)
	kept := seating{seats: seats}
	p.leaveBest(&kept, v, current, wanted)
	return kept
}

// moves returns the moves of a seating, the most valuable one first, with the clusters that they
// leave, worst first, and those that they take, best first. Those that are left are not more than
// those that are taken, unless nothing takes their place.
func (p *Pass) moves(s seating, current []contender, wanted int, present Present) (moves []movement.Move, leaving, gains []contender) {
	has, had := p.among(s.seats), p.among(current)
	for _, c := range current[:min(len(current), wanted)] {
		if !has.row(c.row) {
			leaving = append(leaving, c)
		}
	}
	for _, c := range s.seats {
		if !had.row(c.row) {
			gains = append(gains, c)
		}
	}
	slices.Reverse(leaving)
	p.sort(gains)
	if vacant := len(gains) - len(leaving); vacant > 0 && p.Query.Wanted != score.All {
		gains = gains[vacant:] // the best take the vacant seats
	}
	for i := range max(len(leaving), len(gains)) {
		m, from, to := movement.Move{}, -1, -1
		if i < len(leaving) {
			from = leaving[i].row
			m.From = p.Fleet.Cluster(from)
		}
		if i < len(gains) {
			to = gains[i].row
			m.To = []*api.Cluster{p.Fleet.Cluster(to)}
		}
		m.Reason = api.CauseReschedule
		if !present.Fresh {
			m.Reason = p.By.Reason(&p.Rating, from, to)
		}
		moves = append(moves, m)
	}
	return moves, leaving, gains
}
