package amount

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// TestColumnKeepsAmounts checks that a column has what was set, however large, and that copies are
// independent.
func TestColumnKeepsAmounts(t *testing.T) {
	if n := (*Column)(nil).Len(); n != 0 {
		t.Errorf("the nil Column has %d rows", n)
	}
	rapid.Check(t, func(t *rapid.T) {
		further := rapid.SampledFrom([]Milli{{}, Unreported}).Draw(t, "further")
		column := (*Column)(nil).Copy(4, further)
		want := []Milli{further, further, further, further}
		bits := rapid.SampledFrom([]int{50, 63, 126}).Draw(t, "bits")
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				row, to := rapid.IntRange(0, len(want)-1).Draw(t, "row"), draw(t, bits, "amount")
				if rapid.Bool().Draw(t, "negative") {
					to = Milli{}.Minus(to)
				}
				column.Set(row, to)
				want[row] = to
			},
			"copy": func(t *rapid.T) {
				before := column
				column = column.Copy(rapid.IntRange(0, 8).Draw(t, "rows"), further)
				for len(want) < column.Len() {
					want = append(want, further)
				}
				before.Set(0, Of(7))
			},
			"": func(t *rapid.T) {
				small, ok := column.Small()
				for row, a := range want {
					if column.At(row) != a {
						t.Fatalf("row %d has %s, want %s", row, column.At(row), a)
					}
					n, fits := a.Small()
					if fits && big.NewInt(n).Cmp(bigOf(a)) != 0 || ok && (!fits || small[row] != n) {
						t.Fatalf("row %d has %s, which is small: %t, and %d", row, a, fits, n)
					}
				}
			},
		})
	})
}
