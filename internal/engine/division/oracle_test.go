package division

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// naive follows the documented rules, without constraints and minimum replicas: replica by replica, tier by tier.
func naive(r *Request, candidates []Candidate) (map[int32]int64, bool) {
	replicas := map[int32]int64{}
	weighted := slices.ContainsFunc(candidates, func(c Candidate) bool { return r.Mode == Static && c.Weight > 0 })
	free := func(c Candidate) int64 {
		if c.Free == Unknown {
			return r.Replicas
		}
		return c.Free
	}
	most := func(c Candidate) int64 {
		switch {
		case weighted && c.Weight == 0:
			return 0
		case c.Free == Unknown:
			return c.Max
		}
		return min(c.Max, c.Assigned+c.Free)
	}
	usable := slices.DeleteFunc(slices.Clone(candidates), func(c Candidate) bool { return most(c) == 0 })
	slices.SortFunc(usable, func(a, b Candidate) int { return cmp.Compare(a.Rank, b.Rank) })
	held, left := int64(0), r.Replicas
	anew := r.Fresh || r.Mode == Static
	for _, c := range usable {
		if !anew {
			held += min(c.Assigned, most(c))
		}
	}
	webster := func(n int64, of []Candidate, votes, start, upper func(c Candidate) int64) map[int32]int64 {
		var parties []party
		for i, c := range of {
			one := party{votes: votes(c), replicas: start(c), upper: upper(c), rank: c.Rank, place: int32(i)}
			if r.Mode == Static {
				one.held = c.Assigned
			}
			parties = append(parties, one)
		}
		naiveApportion(parties, n, r.Descending)
		got := map[int32]int64{}
		for _, c := range parties {
			got[of[c.place].Row] = c.replicas
		}
		return got
	}
	none := func(Candidate) int64 { return 0 }
	kept := func(c Candidate) int64 {
		if anew {
			return 0
		}
		return min(c.Assigned, most(c))
	}
	weight := func(c Candidate) int64 {
		if weighted {
			return c.Weight
		}
		return 1
	}
	for tier := int32(0); tier <= 2; tier++ {
		of := slices.DeleteFunc(slices.Clone(usable), func(c Candidate) bool { return c.Tier != tier })
		var here int64
		for _, c := range of {
			here += kept(c)
		}
		switch {
		case held >= r.Replicas:
			// Only the surplus is removed, from the last tier first.
			here = min(here, left)
			if r.Mode == Aggregate {
				slices.SortStableFunc(of, func(a, b Candidate) int { return cmp.Compare(kept(b), kept(a)) })
				var sum int64
				for i, c := range of {
					if sum >= here {
						of = of[:i]
						break
					}
					sum += kept(c)
				}
			}
			maps.Copy(replicas, webster(here, of, kept, none, kept))
			left -= here
			continue
		case tier == 0:
			left -= held
		}
		if r.Mode == Static {
			maps.Copy(replicas, webster(left, of, weight, kept, most))
			continue
		}
		room := func(c Candidate) int64 { return most(c) - kept(c) }
		votes := free
		if r.Fresh {
			votes = func(c Candidate) int64 { return c.Assigned + free(c) }
		}
		for _, c := range of {
			replicas[c.Row] = kept(c)
		}
		if r.Mode == Aggregate {
			slices.SortStableFunc(of, func(a, b Candidate) int {
				if kept(a) > 0 || kept(b) > 0 {
					return cmp.Or(cmp.Compare(kept(b), kept(a)), cmp.Compare(votes(b), votes(a)))
				}
				return cmp.Compare(votes(b), votes(a))
			})
			var sum int64
			var rest []Candidate
			for i, c := range of {
				if sum >= left {
					of, rest = of[:i], of[i:]
					break
				}
				sum += min(room(c), r.Replicas)
			}
			// When everything is divided again, running clusters are preferred among equals.
			slices.SortStableFunc(rest, func(a, b Candidate) int {
				return cmp.Or(cmp.Compare(b.Assigned, a.Assigned), cmp.Compare(votes(b), votes(a)), cmp.Compare(a.Rank, b.Rank))
			})
			for _, c := range rest {
				for i := len(of) - 1; r.Fresh && c.Assigned > 0 && i >= 0; i-- {
					if of[i].Assigned > 0 {
						continue
					}
					if with := sum - min(room(of[i]), r.Replicas) + min(room(c), r.Replicas); with >= left {
						sum, of[i] = with, c
					}
					break
				}
			}
		}
		for row, n := range webster(left, of, votes, none, room) {
			replicas[row] += n
			left -= n
		}
	}
	var sum int64
	for row, n := range replicas {
		sum += n
		if n == 0 {
			delete(replicas, row)
		}
	}
	return replicas, sum == r.Replicas
}

// TestDivideEqualsNaive compares with the naive implementation.
func TestDivideEqualsNaive(t *testing.T) {
	var d Divider
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, rapid.SampledFrom([]shape{{candidates: 30, replicas: 80}, {candidates: 80, replicas: 15}}).Draw(t, "shape"))
		r := &w.request
		r.Constraints, r.Empty, r.Replicated = nil, false, true
		r.Mode = max(r.Mode, Static)
		for i := range w.candidates {
			if rapid.IntRange(0, 5).Draw(t, "limited") == 0 {
				w.candidates[i].Max = rapid.Int64Range(1, 6).Draw(t, "max")
			}
		}
		want, ok := naive(r, w.candidates)
		res, err := d.Divide(r, w.candidates)
		if (err == nil) != ok {
			t.Fatalf("Divide() error %v disagrees with the naive division\n%v%v", err, w, want)
		}
		if err != nil {
			return
		}
		got := map[int32]int64{}
		for _, s := range res.Shares {
			got[s.Row] = s.Replicas
		}
		if !maps.Equal(got, want) {
			t.Fatalf("got %v, want %v\n%v", got, want, w)
		}
	})
}

// hold returns the candidates after a division.
func hold(candidates []Candidate, shares []Share) []Candidate {
	after := slices.Clone(candidates)
	for i := range after {
		c := &after[i]
		was := c.Assigned
		c.Assigned, c.Present = 0, false
		for _, s := range shares {
			if s.Row == c.Row {
				c.Assigned, c.Present = s.Replicas, true
			}
		}
		if c.Free != Unknown {
			c.Free += was - c.Assigned
		}
	}
	return after
}

// TestStaticScalesAsIfDividedAnew: the method of Webster is house monotone, so that
// scaling up and down ends where dividing anew does.
func TestStaticScalesAsIfDividedAnew(t *testing.T) {
	var d Divider
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, shape{candidates: 9, replicas: 40})
		r := &w.request
		r.Mode, r.Constraints, r.Replicated, r.Empty = Static, nil, true, false
		for i := range w.candidates {
			c := &w.candidates[i]
			c.Assigned, c.Present, c.Tier = 0, false, 0
		}
		candidates := w.candidates
		for range 4 {
			r.Replicas = rapid.Int64Range(1, 40).Draw(t, "replicas")
			anew, err := d.Divide(r, w.candidates)
			if err != nil {
				continue
			}
			steady := *r
			steady.Fresh = false
			got, err := d.Divide(&steady, candidates)
			if err != nil || !slices.Equal(got.Shares, anew.Shares) {
				t.Fatalf("error %v, shares %+v, want %+v as in a fresh division", err, got.Shares, anew.Shares)
			}
			candidates = hold(candidates, got.Shares)
		}
	})
}

// TestDivideAgainChangesNothing checks that a division stays the same while nothing else changes.
func TestDivideAgainChangesNothing(t *testing.T) {
	var d Divider
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, shape{candidates: 9, replicas: 20, constraints: 2, several: true, minima: true})
		first, err := d.Divide(&w.request, w.candidates)
		if err != nil {
			return
		}
		again := w.request
		again.Fresh = false
		second, err := d.Divide(&again, hold(w.candidates, first.Shares))
		if err != nil || !slices.Equal(first.Shares, second.Shares) {
			t.Fatalf("repeated with error %v: %+v, want %+v\n%v", err, second.Shares, first.Shares, w)
		}
	})
}

// TestScaleDownTakesOnlyTheSurplus checks that no cluster gains replicas when a workload is scaled down, unless static
// weights divide all replicas again.
func TestScaleDownTakesOnlyTheSurplus(t *testing.T) {
	var d Divider
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, shape{candidates: 9, replicas: 40})
		r := &w.request
		r.Constraints, r.Fresh, r.Replicated = nil, false, true
		r.Mode = max(r.Mode, Dynamic)
		var held int64
		for i := range w.candidates {
			w.candidates[i].Weight = 1
			held += w.candidates[i].Assigned
		}
		if held == 0 {
			return
		}
		r.Replicas = rapid.Int64Range(1, held).Draw(t, "fewer")
		res, err := d.Divide(r, w.candidates)
		if err != nil {
			t.Fatalf("%v\n%v", err, w)
		}
		for _, s := range res.Shares {
			for _, c := range w.candidates {
				if c.Row == s.Row && s.Replicas > c.Assigned {
					t.Fatalf("cluster %d gains replicas in a scale-down: %+v\n%v", c.Row, res.Shares, w)
				}
			}
		}
	})
}

// TestErrorsStateTheShortage checks that each kind of failure has its own error, with numbers.
func TestErrorsStateTheShortage(t *testing.T) {
	regions := &Groups{Names: []string{"eu", "us"}, Of: []int32{0, 1, 1, -1}}
	some := []Candidate{{Row: 0, Free: 3, Max: Unlimited}, {Row: 1, Rank: 1, Free: 4, Max: Unlimited}, {Row: 2, Rank: 2, Free: 5, Max: Unlimited}}
	for _, tt := range []struct {
		name       string
		request    Request
		candidates []Candidate
		want       string
	}{
		{"no candidates", Request{Replicas: 1, Mode: Dynamic}, nil, "no cluster to choose from"},
		{"no candidate in a group", Request{Replicas: 1, Mode: Dynamic, Constraints: []Constraint{{By: "region", Min: 1, Max: 2, Groups: regions}}},
			[]Candidate{{Row: 3, Free: 9, Max: Unlimited}}, "no cluster to choose from has a region"},
		{"not enough room", Request{Replicas: 13, Mode: Dynamic}, some, "has room for 12 of 13 replicas"},
		{"not enough room on one cluster for all replicas", Request{Replicas: 6}, some, "has room for 5 of 6 replicas"},
		{"not enough room with the maximum of clusters", Request{Replicas: 10, Mode: Dynamic, Constraints: []Constraint{{By: "cluster", Min: 1, Max: 2}}}, some,
			"has room for 9 of 10 replicas on as many clusters as max_groups of cluster allows"},
		{"not enough room in one region", Request{Replicas: 10, Mode: Dynamic, Constraints: []Constraint{{By: "region", Min: 1, Max: 1, Groups: regions}}}, some,
			"has room for 9 of 10 replicas on as many clusters as max_groups of region allows"},
		{"too few regions", Request{Replicas: 3, Mode: Dynamic, Constraints: []Constraint{{By: "region", Min: 3, Max: 3, Groups: regions}}}, some,
			"region: min_groups is 3, candidates are in 2"},
		{"too few clusters", Request{Replicas: 6, Mode: Dynamic, Constraints: []Constraint{{By: "cluster", Min: 4, Max: 4}}}, some,
			"cluster: min_groups is 4, candidates are in 3"},
		{"too few replicas", Request{Replicas: 1, Mode: Dynamic, Constraints: []Constraint{{By: "region", Min: 2, Max: 2, Groups: regions}}}, some,
			"1 replicas cannot be in the 2 groups that min_groups of region asks for"},
		{"lower bounds", Request{Replicas: 1, Mode: Dynamic}, []Candidate{{Free: 9, Min: 2, Max: Unlimited}},
			"1 replicas are fewer than the 2 that every cluster must have at least"},
		{"gap between bounds", Request{Replicas: 7, Mode: Dynamic}, []Candidate{{Free: 9, Min: 5, Max: 6}, {Row: 1, Rank: 1, Free: 9, Min: 5, Max: 6}},
			"no division of 7 replicas satisfies the limits of every cluster that is used"},
		{"incompatible regions and clusters", Request{Constraints: []Constraint{
			{By: "region", Min: 2, Max: 2, Groups: regions}, {By: "cluster", Min: 1, Max: 1}}}, some,
			"no choice of the candidates satisfies all spread constraints at once"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var d Divider
			tt.request.Replicated = tt.request.Replicas > 0
			_, err := d.Divide(&tt.request, tt.candidates)
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}
