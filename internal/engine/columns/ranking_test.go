package columns

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Rows that are sorted all at once are in the order in which two are compared.
func TestSortByRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scores := rapid.SliceOf(rapid.OneOf(
			rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, -1, 0.5, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1)}),
			rapid.Float64(),
		)).Draw(t, "scores")
		f := &Fleet{scored: NewBitmap(len(scores)), score: scores}
		rows := make([]int32, len(scores))
		for i := range rows {
			rows[i] = int32(i)
			if rapid.IntRange(0, 3).Draw(t, "scored") == 0 {
				scores[i] = 0
				continue
			}
			f.scored.Set(i)
		}
		rows = rapid.Permutation(rows).Draw(t, "rows")
		want := slices.SortedFunc(slices.Values(rows), f.compareRank)
		f.sortByRank(rows)
		if !slices.Equal(rows, want) {
			t.Fatalf("sorted %v, want %v", rows, want)
		}
	})
}
