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

// View is what all queries of a Class have in common, as of a fleet: who is
// admitted, and in which order.
type View struct {
	// Mask is who is admitted, seen as clusters outside of a present decision.
	Mask columns.Bitmap
	// demoted are clusters that rank last among equals; nil where there are none.
	demoted columns.Bitmap
	// Ranking is the order by the scoring policy; nil where the query is not
	// Ranked.
	Ranking *score.Ranking
	// Ceiling is that of the scorer, nil where nobody keeps one. Like the ranking it
	// belongs to whoever decides.
	Ceiling *score.Ceiling
	// Until is when time alone takes a cluster out of the mask; zero if never.
	Until time.Time
	// Shared says that others read the bitmaps: Judge changes copies of them.
	Shared bool
}

// NewView looks at the fleet for a query. A ranking that is at hand is used, nil
// is made anew.
func NewView(f *columns.Fleet, q *Query, others ledger.Others, ranking *score.Ranking) *View {
	p := newPass(f, q, others.Reserved)
	v := &View{Mask: p.mask(), demoted: p.demotedRows(), Ranking: ranking}
	v.Until = p.Until
	if ranking == nil && q.Ranked() {
		v.Ranking = NewRanking(f, q, v.Mask)
	}
	return v
}

// Refresh brings the mask, and what follows from it, to the fleet's version, and
// returns the rows that the mask no longer has. The ranking is its owner's to
// update.
func (v *View) Refresh(f *columns.Fleet, q *Query, others ledger.Others) (gone []int) {
	p := newPass(f, q, others.Reserved)
	was := v.Mask
	v.Mask, v.demoted = p.mask(), p.demotedRows()
	v.Until = p.Until
	for i, w := range was {
		for w &^= v.Mask[i]; w != 0; w &= w - 1 {
			gone = append(gone, i<<6+bits.TrailingZeros64(w))
		}
	}
	return gone
}

// isDemoted reports whether a row ranks last among equals.
func (v *View) isDemoted(row int) bool {
	return v.demoted != nil && row>>6 < len(v.demoted) && v.demoted.Has(row)
}

// decision returns a pass for one query of the view: it sees the other
// placements without its own present decision.
func (v *View) decision(f *columns.Fleet, q *Query, others ledger.Others, present []int) Pass {
	p := v.rating(f, q, others)
	p.See(others.Load, present)
	return p
}

// rating returns a pass that rates clusters by the view's ranking, where it has
// one.
func (v *View) rating(f *columns.Fleet, q *Query, others ledger.Others) Pass {
	p := PassOf(f, q, others.Reserved)
	p.Use(v.Ranking, v.Mask)
	return p
}

// Judge brings one row to the fleet's version, and reports whether it is judged
// otherwise than before. What follows for the ranking is its owner's to do.
func (v *View) Judge(f *columns.Fleet, q *Query, others ledger.Others, row int) (changed bool) {
	p := PassOf(f, q, others.Reserved)
	is := p.Admits(row, false)
	// Also of a row that is not admitted: a present decision may stay there, and
	// ranks last among equals all the same.
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

// assign notes how a row is judged.
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

// Expired names a placement score that the query is rated by and that has
// expired on an admitted cluster; "" where none has.
func (v *View) Expired(f *columns.Fleet, q *Query) string { return v.expired(f, q, nil) }

// expired is Expired for a decision whose clusters need not be admitted: some
// may only stay.
func (v *View) expired(f *columns.Fleet, q *Query, choices []Choice) string {
	by := q.scoring.Perishes
	if by == nil || !q.UsesScores() {
		return ""
	}
	return by.Expired(f, func(expired *columns.RowSet) bool {
		return expired.Meets(v.Mask) || slices.ContainsFunc(choices, func(c Choice) bool { return expired.Has(c.Row) })
	})
}
