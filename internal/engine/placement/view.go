package placement

import (
	"math/bits"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// View is what all queries of a Class share for one version of the fleet: which clusters are
// admitted, and in which order.
type View struct {
	// Mask contains the admitted clusters, treated as clusters outside a current decision.
	Mask columns.Bitmap
	// demoted are the clusters that rank last among equals; nil if there are none.
	demoted columns.Bitmap
	// Ranking is the order by the scoring policy; nil if the query is not Ranked.
	Ranking *score.Ranking
	// Ceiling is that of the scorer, or nil. Like the ranking, it belongs to the goroutine that
	// decides.
	Ceiling *score.Ceiling
	// Until is when a cluster in the mask will first be rejected through the passing of time alone;
	// zero if never.
	Until time.Time
	// Shared says that others read the bitmaps, so Judge modifies copies.
	Shared bool
}

// NewView evaluates the fleet for a query. If ranking is nil, it is computed.
func NewView(f *columns.Fleet, q *Query, others ledger.Others, ranking *score.Ranking) *View {
	p := newPass(f, q, others.Reserved)
	v := &View{Mask: p.mask(), demoted: p.demotedRows(), Ranking: ranking}
	v.Until = p.Until
	if ranking == nil && q.Ranked() {
		v.Ranking = NewRanking(f, q, v.Mask)
	}
	return v
}

// Refresh updates the mask and what depends on it to the version of the fleet, and returns the rows
// that were added to the mask or removed from it. The owner of the ranking updates that.
func (v *View) Refresh(f *columns.Fleet, q *Query, others ledger.Others) (differ []int) {
	p := newPass(f, q, others.Reserved)
	was := v.Mask
	v.Mask, v.demoted = p.mask(), p.demotedRows()
	v.Until = p.Until
	for i, w := range v.Mask {
		if i < len(was) { // the fleet may have grown
			w ^= was[i]
		}
		for ; w != 0; w &= w - 1 {
			differ = append(differ, i<<6+bits.TrailingZeros64(w))
		}
	}
	return differ
}

// isDemoted reports whether a row ranks last among equals.
func (v *View) isDemoted(row int) bool {
	return v.demoted != nil && row>>6 < len(v.demoted) && v.demoted.Has(row)
}

// decision returns a pass for one query of the view: it sees the other placements without its own
// current decision.
func (v *View) decision(f *columns.Fleet, q *Query, others ledger.Others, present []int) Pass {
	p := v.rating(f, q, others)
	p.See(others.Load, present)
	return p
}

// rating returns a pass that rates clusters by the view's ranking, if it has one.
func (v *View) rating(f *columns.Fleet, q *Query, others ledger.Others) Pass {
	p := PassOf(f, q, others.Reserved)
	p.Use(v.Ranking, v.Mask)
	return p
}

// Judge updates one row to the version of the fleet, and reports whether its result changed. The
// owner of the ranking updates that.
func (v *View) Judge(f *columns.Fleet, q *Query, others ledger.Others, row int) (changed bool) {
	p := PassOf(f, q, others.Reserved)
	is := p.Admits(row, false)
	// Also for a row that is not admitted: a current decision may keep it, and it then ranks last
	// among equals.
	demoted := f.Live().Has(row) && p.demoted(row)
	if is != v.Mask.Has(row) || demoted != v.isDemoted(row) {
		v.assign(row, is, demoted)
		changed = true
	}
	if !is {
		return changed
	}
	was := v.Until
	v.Until = filter.Sooner(was, p.admitted(row))
	return changed || !v.Until.Equal(was)
}

// assign records the result for a row.
func (v *View) assign(row int, is, demoted bool) {
	if v.Shared {
		v.Mask, v.demoted, v.Shared = slices.Clone(v.Mask), slices.Clone(v.demoted), false
	}
	v.Mask.Assign(row, is)
	if demoted || v.isDemoted(row) {
		for words := len(v.Mask); len(v.demoted) < words; {
			v.demoted = append(v.demoted, 0)
		}
		v.demoted.Assign(row, demoted)
	}
}

// Expired names a placement score that the query uses and that has expired on an admitted cluster,
// or returns "".
func (v *View) Expired(f *columns.Fleet, q *Query) string { return v.expired(f, q, nil) }

// expired is Expired for a decision with clusters that need not be admitted: some may only stay.
func (v *View) expired(f *columns.Fleet, q *Query, choices []Choice) string {
	by := q.scoring.Perishes
	if by == nil || !q.UsesScores() {
		return ""
	}
	return by.Expired(f, func(expired *columns.RowSet) bool {
		return expired.Meets(v.Mask) || slices.ContainsFunc(choices, func(c Choice) bool { return expired.Has(c.Row) })
	})
}
