package decisiontable

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSortPart compares a part with that of everything sorted, with many equal values and in orders that are bad for the
// choice of a pivot.
func TestSortPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SampledFrom([]int{1, 3, 1000}).Draw(t, "values")
		rows := rapid.SliceOfN(rapid.IntRange(0, values), 0, 2000).Draw(t, "rows")
		switch rapid.IntRange(0, 3).Draw(t, "order") {
		case 0:
			slices.Sort(rows)
		case 1:
			slices.Sort(rows)
			slices.Reverse(rows)
		}
		from := rapid.IntRange(0, len(rows)).Draw(t, "from")
		to := rapid.IntRange(from, len(rows)).Draw(t, "to")
		want := slices.Sorted(slices.Values(rows))[from:to]
		if sortPart(rows, from, to, cmp.Compare[int]); !slices.Equal(rows[from:to], want) {
			t.Fatalf("rows %d to %d are %v, want %v", from, to, rows[from:to], want)
		}
	})
}
