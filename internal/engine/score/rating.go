package score

import (
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// Rating is what scorers rate clusters by: one version of the fleet, with the decisions of others.
type Rating struct {
	filter.Evaluation
	By      *Scoring
	Ranking *Ranking // nil if no ranking is available
	// candidates are the rows of a relative ranking; nil if it has all.
	candidates columns.Bitmap
	spans      []span // of the amounts that candidates are compared by
	// What others decided, without the current decision itself.
	Seen ledger.LoadSeen
	mine columns.Bitmap // rows of the current decision, if its own use matters
	left []span         // spans of what reservations leave; nil if not needed
	// Settled says that the decision meets its spec, so that a negative steady weight does not move
	// it.
	Settled bool
	lookups []lookup // by term of a policy, once resolved
}

// See sets the decisions of others, for a query whose own current decision has the given rows.
func (r *Rating) See(load *ledger.Load, present []int) {
	reads := r.By.Traits.Reads
	if reads.Any(columns.Chosen) {
		r.Seen = load.Without(present, r.Fleet.Slots())
	}
	if reads.Any(columns.Reserved) && len(present) > 0 {
		r.mine = columns.NewBitmap(r.Fleet.Slots())
		for _, row := range present {
			r.mine.Set(row)
		}
	}
}

// Use makes the rating look up scores in a ranking, which may be nil; mask contains the admitted
// clusters.
func (r *Rating) Use(ranking *Ranking, mask columns.Bitmap) {
	r.Ranking = ranking
	if ranking == nil {
		return
	}
	r.spans = ranking.spans
	if r.By.Relative() {
		r.candidates = mask
	}
}

// Widen includes rows that are not candidates of the ranking in the comparison. If that changes the
// scale, the ranking is not used.
func (r *Rating) Widen(rows []int) {
	spans := slices.Clone(r.spans)
	for _, row := range rows {
		r.By.Ranks.Cover(r, spans, row)
	}
	if !slices.Equal(spans, r.spans) {
		r.spans, r.Ranking = spans, nil
	}
}

// MeasuresLeft reports whether what others leave of an amount counts, which is measured for each
// decision.
func (r *Rating) MeasuresLeft() bool { return r.left != nil }

// base returns Own of a row outside the decision, from the ranking if it has the row. The ranking
// of a relative scorer has only candidates; others have every cluster.
func (r *Rating) base(row int) float64 {
	if k := r.Ranking; k != nil && row < len(k.Score) && (r.candidates == nil || r.candidates.Has(row)) {
		return k.Score[row]
	}
	return r.By.Ranks.Base(r, row)
}

// ofCount returns what the decisions of others add to the score of a cluster outside the decision
// that count of them chose. ok is false if more than the count matters.
func (r *Rating) ofCount(count int32) (add float64, ok bool) {
	if r.By.Minds == nil {
		return 0, true
	}
	return r.By.Minds.OfCount(r, count)
}

// MostOfOthers returns the maximum that the decisions of others add to the score of any cluster
// outside the decision.
func (r *Rating) MostOfOthers() float64 {
	if r.By.Minds == nil {
		return 0
	}
	return r.By.Minds.Most(r)
}

// measure computes the spans of the amounts that candidates are compared by.
func (r *Rating) measure(candidates columns.Bitmap) []span {
	spans := make([]span, r.By.Traits.spans)
	candidates.Each(func(row int) { r.By.Ranks.Cover(r, spans, row) })
	return spans
}

// MeasureLeft computes the spans of what reservations leave, over the clusters in mask and the
// current ones.
func (r *Rating) MeasureLeft(mask columns.Bitmap, present []int) {
	if r.By.Minds == nil || !r.By.Traits.Reads.Any(columns.Reserved) {
		return
	}
	r.left = make([]span, r.By.Traits.spans)
	mask.Each(func(row int) { r.By.Minds.CoverLeft(r, r.left, row) })
	for _, row := range present {
		r.By.Minds.CoverLeft(r, r.left, row)
	}
}
