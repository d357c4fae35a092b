package score

import "github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"

// balancing prefers clusters that few decisions of any placement chose.
type balancing struct{ builtin }

// Reads implements prioritizer.
func (balancing) Reads() columns.Aspects { return columns.Chosen }

// Mind implements crossPlacement.
func (balancing) Mind(r *Rating, _, row int) float64 { return balanced(r.Seen.At(row), r.Seen.High) }

// OfCount implements counting.
func (balancing) OfCount(count, high int32) float64 { return balanced(count, high) }

// Bounds implements crossPlacement.
func (balancing) Bounds(r *Rating) (least, most float64) {
	return balanced(r.Seen.High, r.Seen.High), balanced(r.Seen.Low, r.Seen.High)
}

// Most implements crossPlacement: without the asking placement's own decision, the highest count may be
// lower, and a row that it did not choose then rates lower.
func (balancing) Most(r *Rating, row int) (most float64, ok bool) {
	return balanced(r.Seen.At(row), r.Seen.High), true
}

// Observe implements observable.
func (b balancing) Observe(r *Rating, i, row int, _ bool) (float64, observation) {
	count := float64(r.Seen.At(row))
	return b.Mind(r, i, row), observation{raw: &count}
}

// balanced rates a count of decisions between 0 and the highest:
//
//	2 · int(100 · (0.5 - count/high)), or 100 if there are no decisions yet
//
// The result is that of Open Cluster Management, which truncates before it doubles: with a highest
// count of 3, the counts 0, 1, 2 and 3 rate 100, 32, -32 and -100.
func balanced(count, high int32) float64 {
	if high == 0 {
		return 100
	}
	return float64(2 * int64(100*(0.5-float64(count)/float64(high))))
}
