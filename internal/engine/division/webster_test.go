package division

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// naiveApportion assigns one replica after the other, and compares all parties each time.
func naiveApportion(parties []party, n int64, descending bool) int64 {
	for ; n > 0; n-- {
		best := -1
		for i := range parties {
			if parties[i].open() && (best < 0 || parties[i].precedes(&parties[best], descending)) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		parties[best].replicas++
	}
	return n
}

func byRank(a, b party) int { return cmp.Compare(a.rank, b.rank) }

func drawParties(t *rapid.T, most int) []party {
	parties := make([]party, rapid.IntRange(1, most).Draw(t, "parties"))
	largest := rapid.SampledFrom([]int64{3, 100, 1 << 31, maxVotes}).Draw(t, "largest")
	for i := range parties {
		c := &parties[i]
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
	return rapid.Permutation(parties).Draw(t, "order")
}

func TestApportionEqualsSeatBySeat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parties := drawParties(t, 20)
		n := rapid.Int64Range(0, 400).Draw(t, "n")
		descending := rapid.Bool().Draw(t, "descending")
		want := slices.Clone(parties)
		wantLeft := naiveApportion(want, n, descending)
		left := apportion(parties, n, descending)
		slices.SortFunc(want, byRank)
		slices.SortFunc(parties, byRank)
		if left != wantLeft || !slices.Equal(parties, want) {
			t.Fatalf("got %d left of\n%+v\nwant, replica by replica, %d left of\n%+v", left, parties, wantLeft, want)
		}
	})
}

// TestApportionOfMany: no replica is with a party that comes after one which could
// have had it. That defines the result, for numbers too large to go replica by replica.
func TestApportionOfMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parties := drawParties(t, 40)
		start := make([]int64, len(parties))
		for i := range parties {
			c := &parties[i]
			if rapid.IntRange(0, 3).Draw(t, "roomy") > 0 {
				c.upper = c.replicas + rapid.Int64Range(0, 1<<31).Draw(t, "upper")
			}
			start[c.place] = c.replicas
		}
		n := rapid.Int64Range(0, 1<<31).Draw(t, "n")
		descending := rapid.Bool().Draw(t, "descending")
		left := apportion(parties, n, descending)
		given := int64(0)
		for i := range parties {
			last := parties[i]
			given += last.replicas - start[last.place]
			if last.replicas > last.upper || last.replicas < start[last.place] {
				t.Fatalf("%+v is outside of its bounds, from %d", last, start[last.place])
			}
			if last.replicas == start[last.place] {
				continue
			}
			last.replicas--
			for j := range parties {
				if next := &parties[j]; j != i && next.open() && next.precedes(&last, descending) {
					t.Fatalf("%+v has a replica that belongs to %+v", parties[i], *next)
				}
			}
		}
		if given+left != n {
			t.Fatalf("%d replicas given and %d left of %d", given, left, n)
		}
		for i := range parties {
			if left > 0 && parties[i].open() {
				t.Fatalf("%d replicas are left although %+v can take one", left, parties[i])
			}
		}
	})
}
