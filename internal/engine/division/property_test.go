package division

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// world is a random request with its candidates.
type world struct {
	request    Request
	candidates []Candidate
}

// shape limits what is drawn.
type shape struct {
	candidates  int
	replicas    int64
	constraints int // maximum number of constraints on groups
	several     bool
	minima      bool
	few         bool // several constraints on groups, and only few clusters allowed
}

func drawGroups(t *rapid.T, n int, several bool) *Groups {
	g := &Groups{Of: make([]int32, n)}
	for i := range rapid.IntRange(1, 4).Draw(t, "groups") {
		g.Names = append(g.Names, fmt.Sprint("g", i))
	}
	last := int32(len(g.Names) - 1)
	for i := range g.Of {
		g.Of[i] = rapid.Int32Range(0, last).Draw(t, "group")
		if several && last > 0 && rapid.IntRange(0, 3).Draw(t, "several") == 0 {
			if g.Several == nil {
				g.Several = map[int32][]int32{}
			}
			g.Several[int32(i)] = []int32{g.Of[i], (g.Of[i] + 1) % (last + 1)}
		}
	}
	return g
}

func drawConstraint(t *rapid.T, most int64) Constraint {
	c := Constraint{Min: rapid.Int64Range(0, most).Draw(t, "min"), Max: Unlimited}
	if rapid.Bool().Draw(t, "bounded") {
		c.Max = max(1, c.Min+rapid.Int64Range(0, 2).Draw(t, "more"))
	}
	return c
}

func drawWorld(t *rapid.T, s shape) *world {
	n := rapid.IntRange(1, s.candidates).Draw(t, "candidates")
	w := &world{request: Request{
		Replicas:   rapid.Int64Range(1, s.replicas).Draw(t, "replicas"),
		Replicated: rapid.IntRange(0, 9).Draw(t, "replicated") > 0,
		Mode:       Mode(rapid.IntRange(0, 3).Draw(t, "mode")),
		Fresh:      rapid.IntRange(0, 3).Draw(t, "fresh") == 0,
		Descending: rapid.Bool().Draw(t, "descending"),
		Empty:      rapid.IntRange(0, 4).Draw(t, "empty") == 0,
	}}
	if rapid.Bool().Draw(t, "clusters") {
		c := drawConstraint(t, 4)
		c.By = "cluster"
		w.request.Constraints = append(w.request.Constraints, c)
	}
	least := 0
	if s.few {
		least = s.constraints
		c := Constraint{By: "cluster", Max: rapid.Int64Range(2, 4).Draw(t, "most clusters")}
		w.request.Constraints = []Constraint{c}
	}
	for i := range rapid.IntRange(least, s.constraints).Draw(t, "constraints") {
		c := drawConstraint(t, 3)
		if s.few {
			c.Min = rapid.Int64Range(2, 3).Draw(t, "least groups")
			c.Max = max(c.Min, c.Max)
		}
		c.By = fmt.Sprint("field", i)
		c.Groups = drawGroups(t, n, s.several)
		w.request.Constraints = append(w.request.Constraints, c)
	}
	tiers := w.request.Mode >= Dynamic && rapid.IntRange(0, 2).Draw(t, "tiers") == 0
	ranks := rapid.Permutation(upTo(n)).Draw(t, "ranks")
	for i := range n {
		c := Candidate{Row: int32(i), Rank: int32(ranks[i]), Max: Unlimited}
		c.Free = rapid.Int64Range(-1, 6).Draw(t, "free")
		if w.request.Mode == Static {
			c.Weight = rapid.Int64Range(0, 3).Draw(t, "weight")
		}
		if rapid.IntRange(0, 2).Draw(t, "present") == 0 {
			c.Present = true
			c.Assigned = rapid.Int64Range(1, 6).Draw(t, "held")
		}
		if tiers {
			c.Tier = rapid.Int32Range(0, 2).Draw(t, "tier")
		}
		if s.minima && rapid.IntRange(0, 2).Draw(t, "limited") == 0 {
			c.Min = rapid.Int64Range(0, 4).Draw(t, "min")
			if rapid.Bool().Draw(t, "max") {
				c.Max = max(c.Min, 1) + rapid.Int64Range(0, 4).Draw(t, "more")
			}
		}
		w.candidates = append(w.candidates, c)
	}
	return w
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// fits returns the maximum number of replicas that the rules allow on a candidate.
func (w *world) fits(c *Candidate) int64 {
	r := &w.request
	most := min(c.Max, r.Replicas)
	if c.Free != Unknown {
		most = min(most, c.Assigned+c.Free)
	}
	if r.Mode == Static && c.Weight == 0 {
		for i := range w.candidates {
			if w.candidates[i].Weight > 0 {
				return 0
			}
		}
	}
	return most
}

// spreadHolds returns an error if clusters, given by rows, violate a constraint.
func (w *world) spreadHolds(rows []int32) error {
	for _, c := range w.request.Constraints {
		groups := map[int32]bool{}
		for _, row := range rows {
			switch {
			case c.Groups == nil:
				groups[row] = true
			case c.Groups.Several[row] != nil:
				for _, g := range c.Groups.Several[row] {
					groups[g] = true
				}
			default:
				groups[c.Groups.Of[row]] = true
			}
		}
		if n := int64(len(groups)); n < c.Min || n > c.Max {
			return fmt.Errorf("%d groups of %s, want %d to %d", n, c.By, c.Min, c.Max)
		}
	}
	return nil
}

// check returns an error if a result violates a rule.
func (w *world) check(res Result) error {
	r := &w.request
	byRow := map[int32]*Candidate{}
	for i := range w.candidates {
		byRow[w.candidates[i].Row] = &w.candidates[i]
	}
	var sum int64
	var used []int32
	last := int32(-1)
	for _, s := range res.Shares {
		c := byRow[s.Row]
		if c == nil || c.Rank != s.Rank || s.Rank <= last {
			return fmt.Errorf("share %+v is not for a candidate, or out of order", s)
		}
		last = s.Rank
		sum += s.Replicas
		switch {
		case !r.Replicated:
			if s.Replicas != 0 {
				return fmt.Errorf("%+v: want no replicas", s)
			}
		case s.Replicas == 0 && r.Empty && r.Mode != Duplicate:
			continue
		case s.Replicas < max(1, c.Min) || s.Replicas > w.fits(c):
			return fmt.Errorf("%+v: want %d to %d replicas", s, max(1, c.Min), w.fits(c))
		case r.Mode == Duplicate && s.Replicas != r.Replicas:
			return fmt.Errorf("%+v: want all replicas", s)
		}
		used = append(used, s.Row)
	}
	if r.Replicated && r.Mode != Duplicate && sum != r.Replicas {
		return fmt.Errorf("%d replicas, want %d", sum, r.Replicas)
	}
	if len(used) == 0 {
		return errors.New("nobody is chosen")
	}
	return w.spreadHolds(used)
}

// waits reports whether a copy has no room to grow.
func (w *world) waits() bool {
	r := &w.request
	return r.Mode == Duplicate && r.Replicated && !r.Fresh && slices.ContainsFunc(w.candidates, func(c Candidate) bool {
		return c.Free != Unknown && c.Assigned > 0 && c.Assigned < r.Replicas && c.Assigned+c.Free < r.Replicas
	})
}

// solvable reports whether there is a solution, by trying all sets of clusters. With keep, no cluster may lose
// replicas.
func (w *world) solvable(keep bool) bool {
	r := &w.request
	if w.waits() {
		return false
	}
sets:
	for set := uint(1); set < 1<<len(w.candidates); set++ {
		var least, most int64
		var rows []int32
		for i := range w.candidates {
			c := &w.candidates[i]
			if set&(1<<i) == 0 {
				if keep && c.Assigned > 0 {
					continue sets
				}
				continue
			}
			fits := w.fits(c)
			if r.Replicated {
				lower := max(1, c.Min)
				if r.Mode == Duplicate {
					lower = max(r.Replicas, c.Min)
				} else if keep {
					lower = max(lower, c.Assigned)
				}
				if lower > fits {
					continue sets
				}
				least += lower
				most += fits
			}
			rows = append(rows, c.Row)
		}
		divided := r.Replicated && r.Mode != Duplicate
		if divided && (least > r.Replicas || most < r.Replicas) || w.spreadHolds(rows) != nil {
			continue
		}
		return true
	}
	return false
}

func (w *world) String() string {
	s := fmt.Sprintf("%+v\n", w.request)
	for _, c := range w.request.Constraints {
		s += fmt.Sprintf("  %s %d..%d %+v\n", c.By, c.Min, c.Max, c.Groups)
	}
	for _, c := range w.candidates {
		s += fmt.Sprintf("  %+v\n", c)
	}
	return s
}

// TestDivideSatisfiesAllRules checks that every result satisfies the request and fits the candidates.
func TestDivideSatisfiesAllRules(t *testing.T) {
	var d Divider
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, shape{candidates: 9, replicas: 20, constraints: 3, several: true, minima: true})
		res, err := d.Divide(&w.request, w.candidates)
		if err != nil {
			return
		}
		if err := w.check(res); err != nil {
			t.Fatalf("%v\n%v%+v", err, w, res.Shares)
		}
	})
}

// TestDivideFindsEverySolution checks that, without minimum replicas per cluster, an error means that there is no
// solution.
func TestDivideFindsEverySolution(t *testing.T) {
	var d Divider
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, rapid.SampledFrom([]shape{
			{candidates: 8, replicas: 20, constraints: 1},
			{candidates: 8, replicas: 10, constraints: 3, several: true},
			{candidates: 8, replicas: 10, constraints: 2, several: true, few: true},
		}).Draw(t, "shape"))
		if _, err := d.Divide(&w.request, w.candidates); err != nil && w.solvable(false) {
			t.Fatalf("%v\n%v", err, w)
		}
	})
}

// TestScaleUpMovesNoReplica checks that nothing moves if there is a solution that moves nothing, unless static weights
// divide all replicas again.
func TestScaleUpMovesNoReplica(t *testing.T) {
	var d Divider
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, shape{candidates: 8, replicas: 20, constraints: 1})
		w.request.Fresh = false
		if w.request.Mode <= Static || !w.request.Replicated {
			w.request.Mode, w.request.Replicated = Dynamic, true
		}
		if !w.solvable(true) {
			return
		}
		res, err := d.Divide(&w.request, w.candidates)
		if err != nil {
			t.Fatalf("%v\n%v", err, w)
		}
		for _, c := range w.candidates {
			i := slices.IndexFunc(res.Shares, func(s Share) bool { return s.Row == c.Row })
			if c.Assigned > 0 && (i < 0 || res.Shares[i].Replicas < c.Assigned) {
				t.Fatalf("cluster %d loses replicas\n%v%+v", c.Row, w, res.Shares)
			}
		}
	})
}

// TestDivideIgnoresTheOrderOfCandidates checks that the result depends neither on the order of the candidates nor on
// what the divider was used for before.
func TestDivideIgnoresTheOrderOfCandidates(t *testing.T) {
	var d Divider
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, shape{candidates: 9, replicas: 20, constraints: 2, several: true, minima: true})
		want, wantErr := d.Divide(&w.request, w.candidates)
		got, err := new(Divider).Divide(&w.request, rapid.Permutation(w.candidates).Draw(t, "order"))
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || !slices.Equal(got.Shares, want.Shares) {
			t.Fatalf("%v\n%+v %v\n%+v %v", w, got.Shares, err, want.Shares, wantErr)
		}
	})
}

// paths returns all combinations of groups that the search for the best ones chooses from, in the order in which it
// finds them.
func paths(groups []group, least, most, target int64) []uint {
	var all []uint
	var walk func(set uint, from int, count, value int64)
	walk = func(set uint, from int, count, value int64) {
		if count >= least && value >= target {
			all = append(all, set)
			return
		}
		if count == most {
			return
		}
		for i := from; i < len(groups); i++ {
			walk(set|1<<i, i+1, count+1, value+groups[i].value)
		}
	}
	walk(0, 0, 0, 0)
	return all
}

// TestPathSearchEqualsTryingAllPaths compares the search with trying all combinations.
func TestPathSearchEqualsTryingAllPaths(t *testing.T) {
	var s pathSearch
	rapid.Check(t, func(t *rapid.T) {
		var groups []group
		var names []string
		for i := range rapid.IntRange(1, 9).Draw(t, "groups") {
			names = append(names, fmt.Sprint("g", i))
			groups = append(groups, group{
				id:     int32(i),
				value:  rapid.Int64Range(1, 4).Draw(t, "value"),
				weight: rapid.Int64Range(0, 5).Draw(t, "weight"),
			})
		}
		least := rapid.Int64Range(1, 5).Draw(t, "least")
		most := least + rapid.Int64Range(0, 4).Draw(t, "more")
		if rapid.Bool().Draw(t, "unlimited") {
			most = Unlimited
		}
		target := rapid.Int64Range(0, 12).Draw(t, "target")
		found := s.choose(groups, names, least, most, target) // sorts the groups
		all := paths(groups, least, most, target)
		if found != (len(all) > 0) {
			t.Fatalf("found = %v, but there are %d paths", found, len(all))
		}
		if !found {
			return
		}
		sum := func(set uint) (weight, value int64) {
			for i := range groups {
				if set&(1<<i) != 0 {
					weight += groups[i].weight
					value += groups[i].value
				}
			}
			return weight, value
		}
		best := all[0]
		for _, p := range all {
			w, v := sum(p)
			if bw, bv := sum(best); w > bw || w == bw && v > bv {
				best = p
			}
		}
		// The shortest prefix of the combination, by descending weight, that is a valid one.
		order := upTo(len(groups))
		slices.SortFunc(order, func(i, j int) int {
			return int(groups[j].weight-groups[i].weight)*100 + int(groups[i].id-groups[j].id)
		})
		part := uint(0)
		for _, i := range order {
			part |= best & (1 << i)
			if slices.Contains(all, part) {
				break
			}
		}
		var got uint
		for i := range groups {
			if groups[i].picked {
				got |= 1 << i
			}
		}
		if got != part {
			t.Fatalf("picked %b, want %b of best %b: %+v, %d groups, %d to %d, target %d",
				got, part, best, groups, bits.OnesCount(got), least, most, target)
		}
	})
}
