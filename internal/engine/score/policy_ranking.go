package score

import (
	"cmp"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// Ranking orders clusters by their base score, best first and by name among equals. It is the same
// for all queries with one RankKey, so it is kept and updated incrementally. Like Reservations, it
// is mutable and belongs to the goroutine that decides.
type Ranking struct {
	Score []float64 // by row
	Order []int32
	names []int32 // byName of its fleet: unchanged as long as no cluster is added or removed
	spans []span
	spare []int32 // the previous order, whose memory is reused
	// version changes with every Update.
	version int
}

// NewRanking orders the clusters by the scorer of a Rating; mask contains the admitted clusters.
func NewRanking(p *Rating, mask columns.Bitmap) *Ranking {
	r := &Ranking{}
	r.build(p, mask)
	return r
}

// build computes the order from scratch.
func (r *Ranking) build(p *Rating, mask columns.Bitmap) {
	p.Ranking, r.names = nil, p.Fleet.ByName()
	rows := p.Fleet.Live()
	r.spans = nil
	if p.By.Relative() {
		rows = mask
		r.spans = p.measure(mask)
		p.spans = r.spans
	}
	r.Score = make([]float64, p.Fleet.Slots())
	if p.By.Traits.flat {
		r.Order = slices.Clone(p.Fleet.ByName())
		return
	}
	type ranked struct {
		score float64
		rank  int32
		row   int32
	}
	list := make([]ranked, 0, rows.Count())
	rows.Each(func(row int) {
		score := p.By.Ranks.Base(p, row)
		r.Score[row] = score
		list = append(list, ranked{score, p.Fleet.NameRank()[row], int32(row)})
	})
	head := func(x ranked) uint64 { return columns.HeadOfScore(x.score) }
	list = columns.SortByHead(list, head, func(x, y ranked) int {
		switch {
		case x.score > y.score:
			return -1
		case x.score < y.score:
			return 1
		}
		return cmp.Compare(x.rank, y.rank)
	})
	r.Order = make([]int32, len(list))
	for i, x := range list {
		r.Order[i] = x.row
	}
}

// Update applies a new version of the fleet in which the given rows changed and, for a relative
// policy, a new mask. all reports that the score of every cluster may have changed.
func (r *Ranking) Update(p *Rating, mask columns.Bitmap, rows []int) (all bool) {
	f, relative := p.Fleet, p.By.Relative()
	r.version++
	if relative {
		if spans := p.measure(mask); !slices.Equal(spans, r.spans) {
			r.build(p, mask)
			return true
		}
		p.spans = r.spans
	}
	if 4*len(rows) > len(r.Order) {
		r.build(p, mask)
		return false
	}
	if slots := f.Slots(); len(r.Score) < slots {
		r.Score = append(r.Score, make([]float64, slots-len(r.Score))...)
	}
	before := func(x, y int32) int {
		switch a, b := r.Score[x], r.Score[y]; {
		case a > b:
			return -1
		case a < b:
			return 1
		}
		return cmp.Compare(f.NameRank()[x], f.NameRank()[y])
	}
	few := len(rows) <= columns.FewRows && sameRows(r.names, f.ByName())
	r.names = f.ByName()
	if few {
		// The scores must still be those by which the rows are ordered.
		for _, row := range rows {
			r.Order = columns.TakeRows(r.Order, []int32{int32(row)}, before)
		}
	}
	moved := make([]int32, 0, len(rows))
	for _, row := range rows {
		if f.Live().Has(row) && (!relative || mask.Has(row)) {
			r.Score[row] = p.By.Ranks.Base(p, row)
			moved = append(moved, int32(row))
		}
	}
	if few {
		r.Order = columns.PutRows(r.Order, moved, before)
		return false
	}
	out := columns.NewBitmap(f.Slots())
	for _, row := range rows {
		out.Set(row)
	}
	slices.SortFunc(moved, before)
	order := columns.MergeRows(slices.Grow(r.spare[:0], len(r.Order)+len(moved)), r.Order, moved, out, before)
	r.spare, r.Order = r.Order, order
	return false
}

// sameRows reports whether two slices are the same.
func sameRows(a, b []int32) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
