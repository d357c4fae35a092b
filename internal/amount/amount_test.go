package amount

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// bigOf returns an amount as a big integer.
func bigOf(a Milli) *big.Int {
	n := new(big.Int).Lsh(big.NewInt(a.high), 64)
	return n.Add(n, new(big.Int).SetUint64(a.low))
}

// draw returns an amount of any magnitude below 2^bits.
func draw(t *rapid.T, bits int, name string) Milli {
	n := rapid.IntRange(0, bits).Draw(t, name+" bits")
	a := Milli{int64(rapid.Uint64().Draw(t, name+" high") >> 1), rapid.Uint64().Draw(t, name+" low")}
	switch {
	case n <= 64:
		a.high = 0
		if a.low >>= 64 - n; n == 0 {
			a.low = 0
		}
	default:
		a.high >>= 127 - n
	}
	if rapid.Bool().Draw(t, name+" round") {
		a.low = a.low / 1000 * 1000
	}
	return a
}

// TestMatchesBigIntegers compares every operation with big integers.
func TestMatchesBigIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t, 126, "a"), draw(t, 126, "b")
		if rapid.Bool().Draw(t, "close") {
			b = a.Plus(Of(rapid.Int64Range(-2, 2).Draw(t, "by")))
		}
		if rapid.Bool().Draw(t, "negative") {
			a = Milli{}.Minus(a)
		}
		x, y := bigOf(a), bigOf(b)
		check := func(what string, got Milli, want *big.Int) {
			if bigOf(got).Cmp(want) != 0 || got.String() != want.String() {
				t.Fatalf("%s of %s and %s is %s, want %s", what, x, y, got, want)
			}
		}
		check("the sum", a.Plus(b), new(big.Int).Add(x, y))
		if d := new(big.Int).Sub(x, y); d.BitLen() < 127 {
			check("the difference", a.Minus(b), d)
		}
		smaller, larger := x, y
		if x.Cmp(y) > 0 {
			smaller, larger = y, x
		}
		check("the smaller", Min(a, b), smaller)
		check("the larger", Max(a, b), larger)
		if a.Less(b) != (x.Cmp(y) < 0) || a.Sign() != x.Sign() || a.Positive() != (x.Sign() > 0) || (a == b) != (x.Cmp(y) == 0) {
			t.Fatalf("%s and %s compare differently", a, b)
		}
		rest := x
		if x.Sign() < 0 {
			rest = new(big.Int)
		}
		check("the rest", a.Rest(), rest)

		n := rapid.Int64Range(-1<<40, 1<<40).Draw(t, "n")
		if product := new(big.Int).Mul(x, big.NewInt(n)); product.BitLen() < 127 {
			check("the product", a.Times(n), product)
		}
		if f, _ := new(big.Float).SetInt(x).Float64(); a.Float() != f && math.Abs(a.Float()-f) > math.Abs(f)*0x1p-51 {
			t.Fatalf("%s is %v, want %v", a, a.Float(), f)
		}

		if y.Sign() > 0 {
			fits := new(big.Int).Quo(rest, y)
			if fits.Cmp(big.NewInt(Most)) > 0 {
				fits = big.NewInt(Most)
			}
			if got := a.Fits(b); got != fits.Int64() {
				t.Fatalf("%s fits into %s %d times, want %s", b, a, got, fits)
			}
		}
		if units := new(big.Int).Quo(rest, big.NewInt(1000)); units.IsInt64() && a.Rest().Units() != units.Int64() {
			t.Fatalf("%s has %d whole units, want %s", a, a.Rest().Units(), units)
		}
	})
}

// TestSumsAreWideEnough adds up the largest amounts that can be written.
func TestSumsAreWideEnough(t *testing.T) {
	held := Largest.Times(math.MaxInt32) // of the workload with the most replicas
	want := new(big.Int).Mul(bigOf(Largest), big.NewInt(math.MaxInt32))
	sum, wanted := Milli{}, new(big.Int)
	for range 100_000 {
		sum, wanted = sum.Plus(held), wanted.Add(wanted, want)
	}
	if bigOf(sum).Cmp(wanted) != 0 {
		t.Errorf("the sum is %s, want %s", sum, wanted)
	}
}
