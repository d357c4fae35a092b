package columns

import (
	"slices"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"pgregory.net/rapid"
)

// TestInNameOrder sorts names that share a prefix, or differ only in the last character.
func TestInNameOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`(cluster-)?(eu|us)?[0-9a-z]{0,9}(-long-and-equal)?[0-9]{0,2}`)
		changes := map[string]*api.Cluster{}
		for _, n := range rapid.SliceOfN(name, 0, 60).Draw(t, "names") {
			changes[n] = &api.Cluster{Metadata: api.Metadata{Name: n}}
		}
		got := inNameOrder(changes)
		if len(got) != len(changes) || !slices.IsSortedFunc(got, byChangedName) {
			t.Fatalf("names %v, want them sorted", got)
		}
		for _, c := range got {
			if c.cluster != changes[c.name] {
				t.Fatalf("%q has the cluster of another name", c.name)
			}
		}
	})
}

// TestLowTies checks the rows found by a limit on the hash: all rows whose hash is at most the limit, and otherwise
// only rows that differ from it in the lower bits.
func TestLowTies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 300).Draw(t, "rows")
		hashes := rapid.SliceOfN(rapid.Uint64(), rows, rows).Draw(t, "hashes")
		set := NewBitmap(rows)
		dense := rapid.Bool().Draw(t, "dense")
		for row := range rows {
			set.Assign(row, dense || rapid.Bool().Draw(t, "in"))
		}
		placement := rapid.Uint64().Draw(t, "placement")
		limit := TieHash(placement, rapid.SampledFrom(hashes).Draw(t, "limit"))
		if rapid.Bool().Draw(t, "by share") {
			limit = TieLimit(rapid.IntRange(1, 20).Draw(t, "n"), rows)
		}
		low := LowTies(nil, set, hashes, placement, limit)
		if !slices.IsSorted(low) {
			t.Fatalf("rows %v, want them sorted", low)
		}
		for row := range rows {
			hash, found := TieHash(placement, hashes[row]), slices.Contains(low, int32(row))
			if must := set.Has(row) && hash <= limit; must && !found {
				t.Fatalf("row %d with hash %x not found with limit %x", row, hash, limit)
			}
			if may := set.Has(row) && hash>>33 <= limit>>33; found && !may {
				t.Fatalf("row %d with hash %x found with limit %x", row, hash, limit)
			}
		}
	})
}
