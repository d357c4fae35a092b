package engine

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestLowTies: the rows that are found by a limit are those of which the hash is at
// most that, and of others only such that differ in the lower bits.
func TestLowTies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 300).Draw(t, "rows")
		hashes := rapid.SliceOfN(rapid.Uint64(), rows, rows).Draw(t, "hashes")
		set := newBitmap(rows)
		dense := rapid.Bool().Draw(t, "dense")
		for row := range rows {
			set.Assign(row, dense || rapid.Bool().Draw(t, "in"))
		}
		placement := rapid.Uint64().Draw(t, "placement")
		limit := tieHash(placement, rapid.SampledFrom(hashes).Draw(t, "limit"))
		if rapid.Bool().Draw(t, "by share") {
			limit = tieLimit(rapid.IntRange(1, 20).Draw(t, "n"), rows)
		}
		low := lowTies(nil, set, hashes, placement, limit)
		if !slices.IsSorted(low) {
			t.Fatalf("the rows %v are not in order", low)
		}
		for row := range rows {
			hash, found := tieHash(placement, hashes[row]), slices.Contains(low, int32(row))
			if must := set.Has(row) && hash <= limit; must && !found {
				t.Fatalf("row %d with the hash %x is not found by %x", row, hash, limit)
			}
			if may := set.Has(row) && hash>>33 <= limit>>33; found && !may {
				t.Fatalf("row %d with the hash %x is found by %x", row, hash, limit)
			}
		}
	})
}

// TestTiesFollowTheHash compares the choice among equals with a sort of them all:
// those that are not demoted first, then by hash.
func TestTiesFollowTheHash(t *testing.T) {
	fleets := map[int]*Fleet{}
	for _, n := range []int{1, 63, 64, 65, 300} {
		fleets[n] = benchWorld(n, true).fleet()
		// A few clusters with metrics come before all others.
		w := benchWorld(n, true)
		for name, c := range benchWorld(n, false).clusters {
			if hashText(name)%8 == 0 {
				w.clusters[name] = c
			}
		}
		fleets[-n] = w.fleet()
	}
	rapid.Check(t, func(t *rapid.T) {
		f := fleets[rapid.SampledFrom([]int{1, 63, 64, 65, 300, -64, -300}).Draw(t, "clusters")]
		p := benchPlacement(nil, int64(rapid.IntRange(1, 2*f.Len()).Draw(t, "wanted")))
		p.Metadata.Name = fmt.Sprint(rapid.Int().Draw(t, "name"))
		q := compile(t, p)
		v := &View{Mask: Mask(f, q, nil)}
		share := rapid.IntRange(1, 4).Draw(t, "one in")
		for row := range f.Len() {
			v.Mask.Assign(row, rapid.IntRange(1, share).Draw(t, "admitted") == 1)
		}
		if rapid.Bool().Draw(t, "with demoted") {
			v.Demoted = newBitmap(f.Len())
			for row := range f.Len() {
				v.Demoted.Assign(row, rapid.IntRange(0, 2).Draw(t, "demoted") > 0)
			}
		}
		want := v.Mask.rows()
		slices.SortFunc(want, func(x, y int) int {
			switch a, b := f.standing(x), f.standing(y); {
			case b.less(a):
				return -1
			case a.less(b):
				return 1
			case v.isDemoted(x) != v.isDemoted(y):
				return first(v.isDemoted(y))
			}
			return first(tieHash(q.seed, f.nameHash[x]) < tieHash(q.seed, f.nameHash[y]))
		})
		want = want[:min(len(want), q.Wanted)]
		var got []int
		for _, c := range Decide(f, q, v, Others{}, Present{}, epoch).Choices {
			got = append(got, c.Row)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("chosen are the rows %v, want %v", got, want)
		}
	})
}
