package engine

import (
	"cmp"
	"slices"
)

// Ranking orders clusters by what a scorer says of them, whoever asks: best first
// and by name among equals. It is the same for all queries of a
// RankKey, so it is kept and only brought up to date. Like Reservations it is
// mutable and belongs to whoever decides.
type Ranking struct {
	score []float64 // by row
	order []int32
	names []int32 // byName of the fleet that it is of: same as long as no cluster comes or goes
	spans []span
	spare []int32 // the memory of the order before
}

// newRanking orders the clusters by the scorer of a look at the fleet; mask is who is
// admitted.
func newRanking(p *Rating, mask Bitmap) *Ranking {
	r := &Ranking{}
	r.build(p, mask)
	return r
}

// build orders everything anew.
func (r *Ranking) build(p *Rating, mask Bitmap) {
	p.ranking, r.names = nil, p.fleet.byName
	rows := p.fleet.live
	r.spans = nil
	if p.by.traits.Spans > 0 {
		rows = mask
		r.spans = p.measure(mask)
		p.spans = r.spans
	}
	r.score = make([]float64, p.fleet.Slots())
	if p.by.traits.Flat {
		r.order = slices.Clone(p.fleet.byName)
		return
	}
	type ranked struct {
		score float64
		rank  int32
		row   int32
	}
	list := make([]ranked, 0, rows.Count())
	rows.each(func(row int) {
		score := p.by.ranks.Base(p, row)
		r.score[row] = score
		list = append(list, ranked{score, p.fleet.nameRank[row], int32(row)})
	})
	slices.SortFunc(list, func(x, y ranked) int {
		switch {
		case x.score > y.score:
			return -1
		case x.score < y.score:
			return 1
		}
		return cmp.Compare(x.rank, y.rank)
	})
	r.order = make([]int32, len(list))
	for i, x := range list {
		r.order[i] = x.row
	}
}

// update follows a fleet to its next version, in which rows differ, and for a
// relative policy the mask along with it. all reports that the score of every
// cluster may have changed.
func (r *Ranking) update(p *Rating, mask Bitmap, rows []int) (all bool) {
	f, relative := p.fleet, p.by.traits.Spans > 0
	if relative {
		if spans := p.measure(mask); !slices.Equal(spans, r.spans) {
			r.build(p, mask)
			return true
		}
		p.spans = r.spans
	}
	if 4*len(rows) > len(r.order) {
		r.build(p, mask)
		return false
	}
	if slots := f.Slots(); len(r.score) < slots {
		r.score = append(r.score, make([]float64, slots-len(r.score))...)
	}
	before := func(x, y int32) int {
		switch a, b := r.score[x], r.score[y]; {
		case a > b:
			return -1
		case a < b:
			return 1
		}
		return cmp.Compare(f.nameRank[x], f.nameRank[y])
	}
	few := len(rows) <= fewRows && sameRows(r.names, f.byName)
	r.names = f.byName
	if few {
		// While the scores are those that they stand by.
		for _, row := range rows {
			r.order = takeRows(r.order, []int32{int32(row)}, before)
		}
	}
	moved := make([]int32, 0, len(rows))
	for _, row := range rows {
		if f.live.Has(row) && (!relative || mask.Has(row)) {
			r.score[row] = p.by.ranks.Base(p, row)
			moved = append(moved, int32(row))
		}
	}
	if few {
		r.order = putRows(r.order, moved, before)
		return false
	}
	out := newBitmap(f.Slots())
	for _, row := range rows {
		out.set(row)
	}
	slices.SortFunc(moved, before)
	order := mergeRows(slices.Grow(r.spare[:0], len(r.order)+len(moved)), r.order, moved, out, before)
	r.spare, r.order = r.order, order
	return false
}

// sameRows reports that two lists are one and the same.
func sameRows(a, b []int32) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
