package division

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestAsMuchAsPossibleStays has replicas that cannot all stay where they run.
func TestAsMuchAsPossibleStays(t *testing.T) {
	const none = int64(-1)
	zones := func(of ...int32) *Groups { return &Groups{Names: []string{"z0", "z1", "z2"}, Of: of} }
	clusters := func(most int64) Constraint { return Constraint{By: "cluster", Min: 1, Max: most} }
	for _, tt := range []struct {
		name        string
		mode        Mode
		replicas    int64
		constraints []Constraint
		held, free  []int64
		want        []int64
	}{
		{"one of two clusters", Dynamic, 9, []Constraint{clusters(1)}, []int64{5, 4, 0}, []int64{4, 9, 20}, []int64{9, none, none}},
		{"the only one that has room for all", Dynamic, 9, []Constraint{clusters(1)}, []int64{5, 4, 0}, []int64{1, 5, 20}, []int64{none, 9, none}},
		{"a new cluster beside one that stays", Dynamic, 7, []Constraint{clusters(2)}, []int64{3, 3, 0}, []int64{0, 0, 9}, []int64{3, none, 4}},
		{"aggregated, beside a new cluster", Aggregate, 7, []Constraint{clusters(2)}, []int64{2, 4, 0}, []int64{0, 0, 9}, []int64{none, 4, 3}},
		{"nothing, if there is no room otherwise", Dynamic, 9, []Constraint{clusters(1)}, []int64{5, 4, 0}, []int64{0, 0, 9}, []int64{none, none, 9}},
		{"the zone that runs the most, not the cluster", Dynamic, 11, []Constraint{{By: "zone", Max: 1, Groups: zones(0, 1, 1)}},
			[]int64{5, 3, 3}, []int64{20, 20, 20}, []int64{none, 6, 5}},
		{"copies on the most clusters", Duplicate, 3, []Constraint{{By: "zone", Max: 1, Groups: zones(0, 1, 1, 0)}},
			[]int64{3, 3, 3, 0}, []int64{3, 3, 3, 3}, []int64{none, 3, 3, none}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var candidates []Candidate
			for i := range tt.held {
				candidates = append(candidates, Candidate{Row: int32(i), Rank: int32(i), Assigned: tt.held[i], Present: tt.held[i] > 0, Free: tt.free[i], Max: Unlimited})
			}
			var d Divider
			res, err := d.Divide(&Request{Replicas: tt.replicas, Replicated: true, Mode: tt.mode, Constraints: tt.constraints}, candidates)
			if got := shares(res, len(candidates)); err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %v, %v, want %v", got, err, tt.want)
			}
		})
	}
}

// TestGroupsThatAreNotLimited checks that a maximum which limits nothing, or none, leaves no group out.
func TestGroupsThatAreNotLimited(t *testing.T) {
	regions := &Groups{Names: []string{"a", "b", "c"}, Of: []int32{0, 1, 2}}
	for _, tt := range []struct {
		name     string
		mode     Mode
		min, max int64
		replicas int64
		weights  []int64
		want     []int64
	}{
		{"weights", Static, 1, 5, 9, []int64{1, 1, 1000}, []int64{-1, -1, 9}},
		{"equal weights", Static, 1, 3, 9, []int64{1, 1, 1}, []int64{3, 3, 3}},
		{"no weights", Static, 1, 3, 9, []int64{0, 0, 0}, []int64{3, 3, 3}},
		{"weights and a limit", Static, 1, 1, 9, []int64{1, 1, 1000}, []int64{-1, -1, 9}},
		{"as many groups as are allowed have a share", Static, 1, 2, 9, []int64{4, 1, 5}, []int64{4, -1, 5}},
		{"copies", Duplicate, 2, Unlimited, 4, []int64{0, 0, 0}, []int64{4, 4, 4}},
		{"by room", Dynamic, 2, Unlimited, 9, []int64{0, 0, 0}, []int64{3, 3, 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var candidates []Candidate
			for i := range tt.weights {
				candidates = append(candidates, Candidate{Row: int32(i), Rank: int32(i), Weight: tt.weights[i], Free: 20, Max: Unlimited})
			}
			r := Request{Replicas: tt.replicas, Replicated: true, Mode: tt.mode, Constraints: []Constraint{{By: "region", Min: tt.min, Max: tt.max, Groups: regions}}}
			var d Divider
			res, err := d.Divide(&r, candidates)
			if got := shares(res, len(candidates)); err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %v, %v, want %v", got, err, tt.want)
			}
		})
	}
}

// mostThatStays returns how many replicas, or copies, can stay at most, by trying all sets of clusters, or -1 if there
// is no solution.
func (w *world) mostThatStays() int64 {
	r := &w.request
	best := int64(-1)
	if w.waits() {
		return best
	}
	for set := range 1 << len(w.candidates) {
		var least, more, most, stays int64
		var rows []int32
		fits := true
		for i := range w.candidates {
			c := &w.candidates[i]
			if set&(1<<i) == 0 {
				continue
			}
			rows = append(rows, c.Row)
			if r.Mode == Duplicate {
				fits = fits && w.fits(c) == r.Replicas
				if c.Present {
					stays++
				}
				continue
			}
			room, lower := w.fits(c), max(c.Min, 1)
			fits = fits && room >= lower
			most += room
			stays += min(c.Assigned, room)
			least += lower
			more += max(lower-c.Assigned, 0)
		}
		if !fits || len(rows) == 0 || w.spreadHolds(rows) != nil {
			continue
		}
		if r.Mode != Duplicate {
			if most < r.Replicas || least > r.Replicas {
				continue
			}
			stays = min(stays, r.Replicas-more)
		}
		best = max(best, stays)
	}
	return best
}

// TestTheMostStays compares with trying all sets of clusters.
func TestTheMostStays(t *testing.T) {
	var d Divider
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, rapid.SampledFrom([]shape{
			{candidates: 8, replicas: 20, constraints: 1},
			{candidates: 8, replicas: 30, constraints: 2},
			{candidates: 8, replicas: 20, constraints: 2, few: true},
		}).Draw(t, "shape"))
		for i := range w.candidates {
			if c := &w.candidates[i]; !c.Present && rapid.Bool().Draw(t, "more holders") {
				c.Present, c.Assigned = true, rapid.Int64Range(1, 6).Draw(t, "holds")
			}
		}
		for i := range w.request.Constraints {
			c := &w.request.Constraints[i]
			c.Max = min(c.Max, max(c.Min, rapid.Int64Range(1, 3).Draw(t, "tight")))
		}
		r := &w.request
		r.Fresh, r.Replicated, r.Empty = false, true, false
		if r.Mode == Static {
			r.Mode = Dynamic
		}
		most := w.mostThatStays()
		res, err := d.Divide(r, w.candidates)
		if err != nil {
			if most >= 0 {
				t.Fatalf("%v\n%v", err, w)
			}
			return
		}
		var stays int64
		for _, s := range res.Shares {
			if c := w.candidates[s.Row]; r.Mode != Duplicate {
				stays += min(c.Assigned, s.Replicas)
			} else if c.Present {
				stays++
			}
		}
		if stays < most {
			t.Fatalf("%d stay, %d could\n%v%+v", stays, most, w, res.Shares)
		}
	})
}
