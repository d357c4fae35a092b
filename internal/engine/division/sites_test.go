package division

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// at returns a site by its position, with its score and capacity.
func at(i int32, score, held, free int64) Candidate {
	return Candidate{Row: i, Rank: i, Present: held > 0, Assigned: held, Free: free, Weight: score, Max: Unlimited}
}

func TestSites(t *testing.T) {
	two := &Groups{Names: []string{"East", "West"}, Of: []int32{0, 0, 1, 1}}
	for _, tt := range []struct {
		name     string
		mode     Mode
		replicas int64
		fresh    bool
		regions  *Groups
		sites    []Candidate
		want     map[int32]int64
		err      string
	}{
		{name: "best site first", mode: Centralize, replicas: 5, sites: []Candidate{at(0, 1, 0, 9), at(1, 2, 0, 3)}, want: map[int32]int64{1: 3, 0: 2}},
		{name: "tie goes to a site in use", mode: Centralize, replicas: 3, sites: []Candidate{at(0, 1, 0, 9), at(1, 1, 1, 1)}, want: map[int32]int64{1: 2, 0: 1}},
		{name: "tie goes to the first name", mode: Centralize, replicas: 2, sites: []Candidate{at(0, 1, 0, 9), at(1, 1, 0, 9)}, want: map[int32]int64{0: 2}},
		{name: "running replicas stay although a better site has room", mode: Centralize, replicas: 4, sites: []Candidate{at(0, 9, 0, 9), at(1, 1, 3, 5)}, want: map[int32]int64{0: 1, 1: 3}},
		{name: "a fresh division moves running replicas", mode: Centralize, replicas: 4, fresh: true, sites: []Candidate{at(0, 9, 0, 9), at(1, 1, 3, 5)}, want: map[int32]int64{0: 4}},
		{name: "surplus is taken from the worst site", mode: Centralize, replicas: 4, sites: []Candidate{at(0, 1, 3, 0), at(1, 2, 3, 0)}, want: map[int32]int64{0: 1, 1: 3}},
		{name: "unknown room is enough", mode: Centralize, replicas: 7, sites: []Candidate{at(0, 1, 0, Unknown)}, want: map[int32]int64{0: 7}},
		{name: "not enough room", mode: Centralize, replicas: 6, sites: []Candidate{at(0, 1, 0, 3), at(1, 1, 2, 0)}, err: "has room for 5 of 6 replicas"},

		{name: "in proportion to room", mode: Discrete, replicas: 6, sites: []Candidate{at(0, 1, 0, 4), at(1, 1, 0, 8)}, want: map[int32]int64{0: 2, 1: 4}},
		{name: "the largest remainder", mode: Discrete, replicas: 3, sites: []Candidate{at(0, 1, 0, 10), at(1, 9, 0, 1), at(2, 9, 0, 1)}, want: map[int32]int64{0: 3}},
		{name: "single replica goes to the best site", mode: Discrete, replicas: 1, sites: []Candidate{at(0, 1, 0, 10), at(1, 9, 0, 1), at(2, 5, 0, 5)}, want: map[int32]int64{1: 1}},
		{name: "single replica stays", mode: Discrete, replicas: 1, sites: []Candidate{at(0, 1, 1, 10), at(1, 9, 0, 1)}, want: map[int32]int64{0: 1}},
		{name: "equal remainders, best site", mode: Discrete, replicas: 4, sites: []Candidate{at(0, 1, 0, 5), at(1, 9, 0, 5), at(2, 5, 0, 5)}, want: map[int32]int64{0: 1, 1: 2, 2: 1}},
		{name: "new replicas in proportion to free room", mode: Discrete, replicas: 6, sites: []Candidate{at(0, 1, 4, 0), at(1, 1, 0, 6)}, want: map[int32]int64{0: 4, 1: 2}},
		{name: "surplus taken in proportion", mode: Discrete, replicas: 3, sites: []Candidate{at(0, 1, 2, 9), at(1, 1, 4, 9)}, want: map[int32]int64{0: 1, 1: 2}},
		{name: "nothing moves without a change", mode: Discrete, replicas: 6, sites: []Candidate{at(0, 1, 5, 0), at(1, 9, 1, 9)}, want: map[int32]int64{0: 5, 1: 1}},

		{name: "region with the most room", mode: Discrete, replicas: 4, regions: two, sites: []Candidate{at(0, 9, 0, 2), at(1, 9, 0, 2), at(2, 1, 0, 3), at(3, 1, 0, 3)}, want: map[int32]int64{2: 2, 3: 2}},
		{name: "equal regions, region of the best site", mode: Centralize, replicas: 4, regions: two, sites: []Candidate{at(0, 1, 0, 3), at(1, 1, 0, 3), at(2, 1, 0, 1), at(3, 9, 0, 5)}, want: map[int32]int64{3: 4}},
		{name: "no region has enough room", mode: Discrete, replicas: 6, regions: two, sites: []Candidate{at(0, 9, 0, 2), at(1, 9, 0, 2), at(2, 1, 0, 3), at(3, 1, 0, 2)}, err: "has room for 5 of 6 replicas in one region"},
		{name: "scale-up stays in the region", mode: Discrete, replicas: 3, regions: two, sites: []Candidate{at(0, 1, 2, 1), at(2, 1, 0, 9)}, want: map[int32]int64{0: 3}},
		{name: "scale-up waits for room in the region", mode: Discrete, replicas: 4, regions: two, sites: []Candidate{at(0, 1, 2, 1), at(2, 1, 0, 9)}, err: "has room for 3 of 4 replicas in region East, where it runs"},
		{name: "a fresh division may leave the region", mode: Discrete, replicas: 4, fresh: true, regions: two, sites: []Candidate{at(0, 1, 2, 1), at(2, 1, 0, 9)}, want: map[int32]int64{2: 4}},
		{name: "replicas in several regions move to the one with most of them", mode: Discrete, replicas: 3, regions: two, sites: []Candidate{at(0, 1, 2, 2), at(2, 1, 1, 9)}, want: map[int32]int64{0: 3}},
		{name: "replicas in several regions stay if no region has enough room", mode: Discrete, replicas: 3, regions: two, sites: []Candidate{at(0, 1, 2, 0), at(2, 1, 1, 9)}, want: map[int32]int64{2: 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var d Divider
			res, err := d.Divide(&Request{Replicas: tt.replicas, Replicated: true, Mode: tt.mode, Fresh: tt.fresh, Regions: tt.regions}, tt.sites)
			if text := fmt.Sprint(err); tt.err != "" && text != tt.err || tt.err == "" && err != nil {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if got := sharesOf(&res); tt.err == "" && !maps.Equal(got, tt.want) {
				t.Errorf("shares %v, want %v", got, tt.want)
			}
			if tt.err != "" && len(res.Shares) > 0 {
				t.Errorf("shares %v with error %v, want none", res.Shares, err)
			}
		})
	}
}

func sharesOf(res *Result) map[int32]int64 {
	out := map[int32]int64{}
	for _, s := range res.Shares {
		out[s.Row] = s.Replicas
	}
	return out
}

func drawSites(t *rapid.T) []Candidate {
	sites := make([]Candidate, rapid.IntRange(1, 8).Draw(t, "sites"))
	for i := range sites {
		held := max(rapid.Int64Range(-3, 5).Draw(t, "held"), 0)
		sites[i] = at(int32(i), rapid.Int64Range(0, 3).Draw(t, "score"), held, rapid.Int64Range(0, 6).Draw(t, "free"))
	}
	return sites
}

// TestSiteInvariants checks that all replicas are placed or none, that no site gets more than fits, that running
// replicas stay unless fewer are wanted, that the order of the sites does not matter, and that dividing again changes
// nothing.
func TestSiteInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sites := drawSites(t)
		regions := &Groups{Names: []string{"East", "North", "West"}, Of: make([]int32, len(sites))}
		for i := range regions.Of {
			regions.Of[i] = rapid.Int32Range(0, 2).Draw(t, "region")
		}
		r := &Request{
			Replicas: rapid.Int64Range(1, 25).Draw(t, "replicas"), Replicated: true,
			Mode: rapid.SampledFrom([]Mode{Centralize, Discrete}).Draw(t, "mode"), Fresh: rapid.Bool().Draw(t, "fresh"),
		}
		if rapid.Bool().Draw(t, "alone") {
			r.Regions = regions
		}
		var d Divider
		res, err := d.Divide(r, sites)
		shuffled := rapid.Permutation(sites).Draw(t, "order")
		again, errAgain := d.Divide(r, shuffled)
		if fmt.Sprint(err) != fmt.Sprint(errAgain) || !slices.Equal(res.Shares, again.Shares) {
			t.Fatalf("%v, error %v; with the sites in another order %v, error %v", res.Shares, err, again.Shares, errAgain)
		}
		room, kept, used := int64(0), int64(0), map[int32]int64{}
		for _, c := range sites {
			room += c.Assigned + c.Free
			kept += c.Assigned
			if !r.Fresh && c.Assigned > 0 {
				used[regions.Of[c.Row]] += c.Assigned
			}
		}
		var full *NoRoomError
		if errors.As(err, &full) {
			if len(res.Shares) > 0 || r.Regions == nil && room >= r.Replicas || full.Room >= r.Replicas {
				t.Fatalf("shares %v, error %v, although there is room for %d", res.Shares, err, room)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		got, sum, in := sharesOf(&res), int64(0), map[int32]bool{}
		for _, c := range sites {
			n := got[c.Row]
			sum += n
			if n > 0 {
				in[regions.Of[c.Row]] = true
			}
			if n > c.Assigned+c.Free {
				t.Fatalf("site %d has %d replicas, but room for %d", c.Row, n, c.Assigned+c.Free)
			}
			if !r.Fresh && kept <= r.Replicas && n < c.Assigned && (r.Regions == nil || len(used) == 1) {
				t.Fatalf("site %d goes from %d to %d replicas, %d in total", c.Row, c.Assigned, n, r.Replicas)
			}
		}
		if sum != r.Replicas {
			t.Fatalf("%d replicas assigned, want %d", sum, r.Replicas)
		}
		if r.Regions != nil && len(in) != 1 {
			t.Fatalf("regions %v, want one", in)
		}
		// A division stays as it is.
		for i := range sites {
			c := &sites[i]
			n := got[c.Row]
			c.Free += c.Assigned - n
			c.Assigned, c.Present = n, n > 0
		}
		r.Fresh = false
		if stays, err := d.Divide(r, sites); err != nil || !maps.Equal(sharesOf(&stays), got) {
			t.Fatalf("repeated, %v becomes %v, error %v", got, stays.Shares, err)
		}
	})
}

// naiveQuotas divides n replicas by votes with the largest remainder method: whole quotas first, then one replica each
// by the largest fraction.
func naiveQuotas(n int64, votes map[int32]int64, before func(a, b int32) int) map[int32]int64 {
	sum := int64(0)
	for _, v := range votes {
		sum += v
	}
	out, left := map[int32]int64{}, n
	rest := map[int32]*big.Rat{}
	for row, v := range votes {
		quota := big.NewRat(n*v, sum)
		whole := new(big.Int).Quo(quota.Num(), quota.Denom())
		out[row] = whole.Int64()
		left -= whole.Int64()
		rest[row] = quota.Sub(quota, new(big.Rat).SetInt(whole))
	}
	for ; left > 0; left-- {
		best := slices.MinFunc(slices.Collect(maps.Keys(rest)), func(a, b int32) int {
			if c := rest[b].Cmp(rest[a]); c != 0 {
				return c
			}
			return before(a, b)
		})
		out[best]++
		delete(rest, best)
	}
	maps.DeleteFunc(out, func(_ int32, n int64) bool { return n == 0 })
	return out
}

// TestLargestRemainder compares the division of new replicas, and of the rest of a surplus, with the documented rule. A
// single new replica is not divided.
func TestLargestRemainder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sites := drawSites(t)
		sites[0] = at(0, sites[0].Weight, max(sites[0].Assigned, 1), max(sites[0].Free, 1)) // so that there is something to divide
		fewer := rapid.Bool().Draw(t, "fewer")
		votes, kept := map[int32]int64{}, int64(0)
		for i := range sites {
			c := &sites[i]
			if !fewer {
				c.Assigned, c.Present = 0, false
			}
			votes[c.Row] = c.Free
			if fewer {
				votes[c.Row] = c.Assigned
			}
			kept += votes[c.Row]
		}
		n := rapid.Int64Range(1, kept).Draw(t, "replicas")
		var d Divider
		res, err := d.Divide(&Request{Replicas: n, Replicated: true, Mode: Discrete}, sites)
		if err != nil {
			t.Fatal(err)
		}
		before := func(a, b int32) int {
			x, y := &sites[a], &sites[b]
			present := func(c *Candidate) int64 { return min(c.Assigned, 1) }
			return cmp.Or(cmp.Compare(y.Weight, x.Weight), cmp.Compare(present(y), present(x)), cmp.Compare(a, b))
		}
		want := naiveQuotas(n, votes, before)
		if !fewer && n == 1 {
			maps.DeleteFunc(votes, func(_ int32, free int64) bool { return free == 0 })
			want = map[int32]int64{slices.MinFunc(slices.Collect(maps.Keys(votes)), before): 1}
		}
		if got := sharesOf(&res); !maps.Equal(got, want) {
			t.Fatalf("shares %v, want %v", got, want)
		}
	})
}
