package division

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// naiveApportion gives one replica after the other, looking at all claims each time.
func naiveApportion(claims []claim, n int64, descending bool) int64 {
	for ; n > 0; n-- {
		best := -1
		for i := range claims {
			if claims[i].open() && (best < 0 || claims[i].precedes(&claims[best], descending)) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		claims[best].replicas++
	}
	return n
}

func byRank(a, b claim) int { return cmp.Compare(a.rank, b.rank) }

func drawClaims(t *rapid.T, most int) []claim {
	claims := make([]claim, rapid.IntRange(1, most).Draw(t, "claims"))
	largest := rapid.SampledFrom([]int64{3, 100, 1 << 31, maxVotes}).Draw(t, "largest")
	for i := range claims {
		c := &claims[i]
		c.rank, c.place = int32(i), int32(i)
		c.votes = rapid.Int64Range(0, largest).Draw(t, "votes")
		if rapid.Bool().Draw(t, "started") {
			c.replicas = rapid.Int64Range(0, 50).Draw(t, "replicas")
		}
		c.upper = math.MaxInt64
		if rapid.Bool().Draw(t, "bounded") {
			c.upper = c.replicas + rapid.Int64Range(0, 60).Draw(t, "more")
		}
	}
	return rapid.Permutation(claims).Draw(t, "order")
}

func TestApportionEqualsSeatBySeat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		claims := drawClaims(t, 20)
		n := rapid.Int64Range(0, 400).Draw(t, "n")
		descending := rapid.Bool().Draw(t, "descending")
		want := slices.Clone(claims)
		wantLeft := naiveApportion(want, n, descending)
		left := apportion(claims, n, descending)
		slices.SortFunc(want, byRank)
		slices.SortFunc(claims, byRank)
		if left != wantLeft || !slices.Equal(claims, want) {
			t.Fatalf("got %d left of\n%+v\nseat by replica %d of\n%+v", left, claims, wantLeft, want)
		}
	})
}

// TestApportionOfMany: no replica is with a claim that comes after one which could
// have had it. That defines the result, for numbers too large to go replica by replica.
func TestApportionOfMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		claims := drawClaims(t, 40)
		start := make([]int64, len(claims))
		for i := range claims {
			c := &claims[i]
			if rapid.IntRange(0, 3).Draw(t, "roomy") > 0 {
				c.upper = c.replicas + rapid.Int64Range(0, 1<<31).Draw(t, "upper")
			}
			start[c.place] = c.replicas
		}
		n := rapid.Int64Range(0, 1<<31).Draw(t, "n")
		descending := rapid.Bool().Draw(t, "descending")
		left := apportion(claims, n, descending)
		given := int64(0)
		for i := range claims {
			last := claims[i]
			given += last.replicas - start[last.place]
			if last.replicas > last.upper || last.replicas < start[last.place] {
				t.Fatalf("%+v began with %d", last, start[last.place])
			}
			if last.replicas == start[last.place] {
				continue
			}
			last.replicas--
			for j := range claims {
				if next := &claims[j]; j != i && next.open() && next.precedes(&last, descending) {
					t.Fatalf("%+v has a replica that is %+v's", claims[i], *next)
				}
			}
		}
		if given+left != n {
			t.Fatalf("%d replicas given and %d left of %d", given, left, n)
		}
		for i := range claims {
			if left > 0 && claims[i].open() {
				t.Fatalf("%d replicas are left, and %+v has none of them", left, claims[i])
			}
		}
	})
}
