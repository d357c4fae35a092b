package columns

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSortByHeadOfScore checks that sorting by the leading bits of the score gives the same order as comparing scores,
// for scores of either sign and for nearly equal ones.
func TestSortByHeadOfScore(t *testing.T) {
	type scored struct {
		score float64
		name  int
	}
	rapid.Check(t, func(t *rapid.T) {
		near := rapid.SampledFrom([]float64{0, 1, -1, 0.3, -100, 1e300, 5e-324}).Draw(t, "near")
		score := rapid.OneOf(
			rapid.Float64(),
			rapid.Float64Range(-1, 1),
			rapid.SampledFrom([]float64{near, -near, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.Nextafter(near, 2), math.Nextafter(near, -2)}),
		)
		scores := rapid.SliceOfN(score, 1, 3*fewToSort).Draw(t, "scores")
		if many := rapid.IntRange(0, 3*fewToCount).Draw(t, "many"); many > fewToCount {
			for i := range many {
				scores = append(scores, scores[i]/float64(1+i%7)+float64(i%5))
			}
		}
		list := make([]scored, len(scores))
		for i, s := range scores {
			list[i] = scored{s, len(scores) - i}
		}
		compare := func(x, y scored) int { return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(x.name, y.name)) }
		want := slices.SortedFunc(slices.Values(list), compare)
		got := SortByHead(list, func(x scored) uint64 { return HeadOfScore(x.score) }, compare)
		if !slices.Equal(got, want) {
			t.Fatalf("sorted %v, want %v", got, want)
		}
	})
}
