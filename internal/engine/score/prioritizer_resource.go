package score

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// allocatable rates the allocatable amount of a resource relative to the lowest and highest among
// the candidates.
type allocatable struct {
	builtin
	resource string
}

// Reads implements prioritizer.
func (allocatable) Reads() columns.Aspects { return columns.Amounts }

// Lookup implements columnar.
func (a allocatable) Lookup(f *columns.Fleet) lookup {
	return lookup{amounts: f.Allocatable(a.resource)}
}

// Amount implements comparing.
func (allocatable) Amount(r *Rating, i, row int) amount.Milli { return r.lookups[i].amount(row) }

// Rate implements rater.
func (a allocatable) Rate(r *Rating, i, row int) float64 {
	return r.spans[i].rate(a.Amount(r, i, row))
}

// Observe implements observable.
func (a allocatable) Observe(r *Rating, i, row int, _ bool) (float64, observation) {
	milli := a.Amount(r, i, row)
	if !milli.Reported() {
		return 0, observation{reason: "absent: the cluster's allocatable " + a.resource + " or its capacity is not known; counts as 0"}
	}
	return a.Rate(r, i, row), observation{raw: units(milli)}
}

// available rates what is left of the amount in the same way. On its own, it considers what no
// workload uses; Left also considers the reservations of others.
type available allocatable

// Reads implements prioritizer.
func (available) Reads() columns.Aspects { return columns.Amounts | columns.Reserved }

// Lookup implements columnar.
func (a available) Lookup(f *columns.Fleet) lookup {
	return lookup{amounts: f.Uncommitted()[a.resource]}
}

// Amount implements comparing.
func (available) Amount(r *Rating, i, row int) amount.Milli { return r.lookups[i].amount(row) }

// Rate implements rater.
func (a available) Rate(r *Rating, i, row int) float64 {
	return r.spans[i].rate(a.Amount(r, i, row))
}

// Left returns what reservations leave of the amount. The placement's own reservation counts as
// available.
func (a available) Left(r *Rating, i, row int) amount.Milli {
	milli := a.Amount(r, i, row)
	if !milli.Reported() {
		return amount.Unreported
	}
	milli = milli.Minus(ledger.At(r.Reserved.Column(a.resource), row))
	if r.mine != nil && r.mine.Has(row) {
		if h, ok := r.Reserved.Held(*r.Owner, r.Fleet.Name(row)); ok {
			milli = milli.Plus(h.Of(a.resource))
		}
	}
	return milli.Rest()
}

// Mind implements crossPlacement. If nobody has measured what is left, others do not count.
func (a available) Mind(r *Rating, i, row int) float64 {
	if r.left == nil {
		return 0
	}
	return r.left[i].rate(a.Left(r, i, row)) - a.Rate(r, i, row)
}

// Bounds implements crossPlacement.
func (available) Bounds(r *Rating) (least, most float64) {
	if r.left == nil {
		return 0, 0
	}
	return -200, 200
}

// Most implements crossPlacement: what others leave is measured for each decision.
func (available) Most(*Rating, int) (most float64, ok bool) { return 0, false }

// Observe implements observable.
func (a available) Observe(r *Rating, i, row int, _ bool) (float64, observation) {
	milli, scale := a.Amount(r, i, row), r.spans
	if r.left != nil {
		milli, scale = a.Left(r, i, row), r.left
	}
	if !milli.Reported() {
		return 0, observation{reason: "absent: the cluster's allocatable " + a.resource + " is not known; counts as 0"}
	}
	return scale[i].rate(milli), observation{raw: units(milli)}
}

// units converts an amount in thousandths to units.
func units(milli amount.Milli) *float64 {
	raw := milli.Float() / 1000
	return &raw
}

// span is the range of an amount over the candidates.
type span struct {
	low, high amount.Milli
	any       bool
}

func (s *span) cover(milli amount.Milli) {
	if !milli.Reported() {
		return
	}
	if !s.any {
		*s = span{milli, milli, true}
		return
	}
	s.low, s.high = amount.Min(s.low, milli), amount.Max(s.high, milli)
}

// rate maps an amount to -100 for the lowest and 100 for the highest of the candidates, truncated
// to an integer, or to 100 if all are equal:
//
//	int(((a - low) / (high - low) - 0.5) · 2 · 100)
//
// Example: 1, 2 and 4 rate -100, -33 and 100. This is what Open Cluster Management computes.
func (s *span) rate(milli amount.Milli) float64 {
	switch {
	case !milli.Reported():
		return 0
	case s.low == s.high:
		return 100
	}
	share := milli.Minus(s.low).Share(s.high.Minus(s.low))
	return float64(int64((share - 0.5) * 2 * 100))
}
