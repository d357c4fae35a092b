package division

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// shares are replicas by row, none where a row has no share.
func shares(res Result, n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = -1
	}
	for _, s := range res.Shares {
		out[s.Row] = s.Replicas
	}
	return out
}

// TestStaticWeightsAreShares: static weights are divided anew whatever runs, and of
// equal claims those that run have the better.
func TestStaticWeightsAreShares(t *testing.T) {
	const none = int64(-1)
	for _, tt := range []struct {
		name          string
		replicas      int64
		weights, held []int64
		free          []int64 // nil = unknown
		descending    bool
		want          []int64
	}{
		{"uneven", 10, []int64{1, 1}, []int64{9, 1}, nil, false, []int64{5, 5}},
		{"weights edited to the second alone", 10, []int64{0, 1}, []int64{5, 5}, nil, false, []int64{none, 10}},
		{"weights edited from all to one that runs nothing", 4, []int64{0, 1}, []int64{4, 0}, nil, false, []int64{none, 4}},
		{"scaled up", 12, []int64{2, 1}, []int64{9, 0}, nil, false, []int64{8, 4}},
		{"scaled down", 3, []int64{2, 1}, []int64{0, 6}, nil, false, []int64{2, 1}},
		{"of a tie the one that runs", 3, []int64{1, 1}, []int64{1, 2}, nil, false, []int64{1, 2}},
		{"of a tie the one that runs, by name descending", 3, []int64{1, 1}, []int64{2, 1}, nil, true, []int64{2, 1}},
		{"of a tie the one that runs, though the other has fewer", 2, []int64{1, 3}, []int64{0, 2}, nil, false, []int64{none, 2}},
		{"nothing to choose between, none runs", 3, []int64{1, 1}, []int64{0, 0}, nil, false, []int64{2, 1}},
		{"no more than there is room for", 10, []int64{1, 1}, []int64{9, 1}, []int64{0, 2}, false, []int64{7, 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var candidates []Candidate
			for i := range tt.weights {
				c := Candidate{Row: int32(i), Rank: int32(i), Weight: tt.weights[i], Assigned: tt.held[i], Present: tt.held[i] > 0, Free: Unknown, Max: Unlimited}
				if tt.free != nil {
					c.Free = tt.free[i]
				}
				candidates = append(candidates, c)
			}
			var d Divider
			res, err := d.Divide(&Request{Replicas: tt.replicas, Replicated: true, Mode: Static, Descending: tt.descending}, candidates)
			if err != nil || !slices.Equal(shares(res, len(candidates)), tt.want) {
				t.Errorf("got %v, %v, want %v", shares(res, len(candidates)), err, tt.want)
			}
		})
	}
}

// TestStaticFollowsEveryChange lets weights, room, replicas and clusters change. The
// shares are always those of the method of Webster, replica by replica, for the weights
// as they are, and nothing moves that does not have to.
func TestStaticFollowsEveryChange(t *testing.T) {
	var d Divider
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, shape{candidates: 7, replicas: 30})
		r := &w.request
		r.Mode, r.Constraints, r.Replicated, r.Empty, r.Fresh = Static, nil, true, false, false
		for range 5 {
			switch i := rapid.IntRange(0, len(w.candidates)-1).Draw(t, "which"); rapid.IntRange(0, 3).Draw(t, "change") {
			case 0:
				r.Replicas = rapid.Int64Range(1, 30).Draw(t, "replicas")
			case 1:
				w.candidates[i].Weight = rapid.Int64Range(0, 3).Draw(t, "weight")
			case 2:
				w.candidates[i].Free = rapid.Int64Range(-1, 9).Draw(t, "free")
			case 3:
				if len(w.candidates) > 1 {
					w.candidates = slices.Delete(w.candidates, i, i+1)
				}
			}
			for i := range w.candidates {
				w.candidates[i].Tier = 0
			}
			res, err := d.Divide(r, w.candidates)
			if err != nil {
				if w.solvable(false) {
					t.Fatalf("%v\n%v", err, w)
				}
				continue
			}
			w.checkStatic(t, res)
			w.candidates = hold(w.candidates, res.Shares)
			again, err := d.Divide(r, w.candidates)
			if err != nil || !slices.Equal(again.Shares, res.Shares) {
				t.Fatalf("%v: %+v, before %+v\n%v", err, again.Shares, res.Shares, w)
			}
		}
	})
}

// checkStatic demands shares by the method of Webster: no replica would go to another
// who can still take one, and none that ties with one that would run is given away.
func (w *world) checkStatic(t *rapid.T, res Result) {
	if err := w.check(res); err != nil {
		t.Fatalf("%v\n%v%+v", err, w, res.Shares)
	}
	weighted := slices.ContainsFunc(w.candidates, func(c Candidate) bool { return c.Weight > 0 })
	got := map[int32]int64{}
	for _, s := range res.Shares {
		got[s.Row] = s.Replicas
	}
	weight := func(c *Candidate) int64 {
		if !weighted {
			return 1
		}
		return c.Weight
	}
	for i := range w.candidates {
		for j := range w.candidates {
			a, b := &w.candidates[i], &w.candidates[j]
			have, give := got[a.Row], got[b.Row]
			if give == 0 || have >= w.fits(a) || a == b {
				continue
			}
			// The next replica of a against the last of b: weight / (2 replicas + 1).
			next, last := weight(a)*(2*give-1), weight(b)*(2*have+1)
			if next > last || next == last && have < a.Assigned && give > b.Assigned {
				t.Fatalf("%d has %d and %d has %d\n%v", a.Row, have, b.Row, give, w)
			}
		}
	}
}
