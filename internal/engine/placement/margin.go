package placement

import (
	"math"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// margin returns how far the best cluster outside the decision is from being chosen. It returns nil
// if there is none, or if scores cannot be compared.
func (e *Explained) margin() *api.MoveMargin {
	q := e.pass.Query
	if !e.hasNext || len(e.Choices) == 0 || e.Worst.Scored != e.next.Scored || q.Spreads() {
		return nil // under spread constraints, it depends on the other clusters
	}
	f := e.pass.Fleet
	if q.Minds() && e.present.Answered && !e.present.Fresh {
		return e.marginBalanced()
	}
	return &api.MoveMargin{From: f.Name(e.worstRow), To: f.Name(e.nextRow), Margin: e.Worst.Score - e.next.Score}
}

// lost returns the scores by which a current cluster that could have been kept was left for another, or nil. Where own
// scores alone did not decide, as under spread constraints or by the decisions of other placements, the new one need not be
// better.
func (p *Pass) lost(s seating, present Present) *api.DecisionMargin {
	from := slices.IndexFunc(s.left(), func(c contender) bool { return c.current })
	if from < 0 {
		return nil
	}
	for _, to := range slices.Backward(s.seats) {
		if to.current {
			continue
		}
		left := s.left()[from]
		needed, is := p.ownOf(left, present.Fresh), p.ownOf(to, present.Fresh)
		if !needed.Less(is) || needed.Scored != is.Scored {
			return nil
		}
		return &api.DecisionMargin{
			From: p.Fleet.Name(left.row), To: p.Fleet.Name(to.row),
			Old: p.own(left.row, false).Score, New: is.Score, Needed: needed.Score,
		}
	}
	return nil
}

// standings is a cluster's own score and its total.
type standings struct {
	row        int
	own, total float64
}

// marginBalanced is margin for scores that include the decisions of others: a cluster is displaced
// only by one that is better both by its total and by its own score (see seatBalanced), so the
// larger of the two gaps counts.
//
// Only the Pareto fronts need to be compared: outside clusters that no other exceeds in both
// scores, and chosen ones that exceed no other in both. These are few.
func (e *Explained) marginBalanced() *api.MoveMargin {
	p := e.pass
	rate := func(row int, current bool) standings {
		return standings{row, p.own(row, current).Score, p.total(row, current).Score}
	}
	// With sign -1, the list contains the lowest.
	front := func(list []standings, r standings, sign float64) []standings {
		over := func(a, b standings) bool { return sign*a.own >= sign*b.own && sign*a.total >= sign*b.total }
		if slices.ContainsFunc(list, func(x standings) bool { return over(x, r) }) {
			return list
		}
		return append(slices.DeleteFunc(list, func(x standings) bool { return over(r, x) }), r)
	}
	chosen := columns.NewBitmap(p.Fleet.Slots())
	var staying, rivals []standings
	for i := range e.Choices {
		// Among equals the last is displaced, so check it first.
		row := e.Choices[len(e.Choices)-1-i].Row
		chosen.Set(row)
		staying = front(staying, rate(row, e.Current.Has(row)), -1)
	}
	// By name, so that among equals the first name is reported, regardless of rows.
	for _, at := range p.Fleet.ByName() {
		if row := int(at); e.Admitted.Has(row) && !chosen.Has(row) {
			rivals = front(rivals, rate(row, e.Current.Has(row)), 1)
		}
	}
	var best *api.MoveMargin
	for _, s := range staying {
		for _, r := range rivals {
			if gap := math.Max(s.own-r.own, s.total-r.total); best == nil || gap < best.Margin {
				best = &api.MoveMargin{From: p.Fleet.Name(s.row), To: p.Fleet.Name(r.row), Margin: gap}
			}
		}
	}
	return best
}
