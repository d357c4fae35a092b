package score

import (
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// Rating is one look at the fleet to rate clusters: all that scorers see besides
// what they are made of.
type Rating struct {
	filter.Look
	By      *Scoring
	Ranking *Ranking // nil: nothing is known of the scores yet
	// candidates are the rows a relative ranking has; nil where it has all.
	candidates columns.Bitmap
	spans      []span // of what candidates are compared by
	// What others decided, without the present decision itself.
	Seen ledger.LoadSeen
	mine columns.Bitmap // rows of the present decision, where its own use matters
	left []span         // of what reservations leave; nil where nothing asks
	// settled: the decision answers its spec, and a wish to be elsewhere moves
	// nothing.
	Settled bool
	figures []figures // by term of a policy, once resolved
}

// See takes in what others decided, for a query whose own present decision has some
// rows.
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

// Use has the rating find scores in a ranking, which may be nil; mask is who is
// admitted.
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

// Widen measures what is compared with some rows that are no candidates of the
// ranking. Where that changes the scale, the ranking does not hold.
func (r *Rating) Widen(rows []int) {
	spans := slices.Clone(r.spans)
	for _, row := range rows {
		r.By.Ranks.Cover(r, spans, row)
	}
	if !slices.Equal(spans, r.spans) {
		r.spans, r.Ranking = spans, nil
	}
}

// MeasuresLeft reports that what others leave of an amount counts, which is measured
// for each decision.
func (r *Rating) MeasuresLeft() bool { return r.left != nil }

// base is Own of a row outside of the decision, from the ranking where that has it.
// The ranking of a relative scorer has only candidates; another has every cluster.
func (r *Rating) base(row int) float64 {
	if k := r.Ranking; k != nil && row < len(k.Score) && (r.candidates == nil || r.candidates.Has(row)) {
		return k.Score[row]
	}
	return r.By.Ranks.Base(r, row)
}

// ofCount is what the decisions of others add to the score of any outsider that some
// number of them chose; ok is false where more than the number counts.
func (r *Rating) ofCount(count int32) (add float64, ok bool) {
	if r.By.Minds == nil {
		return 0, true
	}
	return r.By.Minds.OfCount(r, count)
}

// MostOfOthers is the most that the decisions of others add to the score of any
// outsider.
func (r *Rating) MostOfOthers() float64 {
	if r.By.Minds == nil {
		return 0
	}
	return r.By.Minds.Most(r)
}

// measure finds the spans of what candidates are compared by.
func (r *Rating) measure(candidates columns.Bitmap) []span {
	spans := make([]span, r.By.Traits.spans)
	candidates.Each(func(row int) { r.By.Ranks.Cover(r, spans, row) })
	return spans
}

// MeasureLeft finds the spans of what reservations leave to compare by, over the
// clusters of a mask and the present ones.
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
