package score

import "github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"

// balancing prefers clusters that few decisions chose, whatever placement they
// belong to.
type balancing struct{ builtin }

// Reads implements prioritizer.
func (balancing) Reads() columns.Aspects { return columns.Chosen }

// Mind implements minding.
func (balancing) Mind(r *Rating, _, row int) float64 { return balanced(r.Seen.At(row), r.Seen.High) }

// OfCount implements counting.
func (balancing) OfCount(count, high int32) float64 { return balanced(count, high) }

// Bounds implements minding.
func (balancing) Bounds(r *Rating) (least, most float64) {
	return balanced(r.Seen.High, r.Seen.High), balanced(r.Seen.Low, r.Seen.High)
}

// Most implements minding: without the decision of who asks, the highest count may be
// less, and a row that it did not choose rates less then.
func (balancing) Most(r *Rating, row int) (most float64, ok bool) {
	return balanced(r.Seen.At(row), r.Seen.High), true
}

// Observe implements observable.
func (b balancing) Observe(r *Rating, i, row int, _ bool) (float64, observation) {
	count := float64(r.Seen.At(row))
	return b.Mind(r, i, row), observation{raw: &count}
}

// balanced rates a count of decisions between none and the highest:
//
//	2 · int(100 · (0.5 - count/high)), 100 where nothing is decided yet
//
// The whole number is that of Open Cluster Management, which cuts off before it
// doubles: of at most 3, the counts 0, 1, 2 and 3 rate 100, 32, -32 and -100.
func balanced(count, high int32) float64 {
	if high == 0 {
		return 100
	}
	return float64(2 * int64(100*(0.5-float64(count)/float64(high))))
}
