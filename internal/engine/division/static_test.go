package division

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// shares returns the replicas of each row, 0 for rows without a share.
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

// TestStaticWeightsAreShares checks that static weights divide all replicas again, whatever runs where, and that
// running clusters win ties.
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
		{"all weight moved to the second cluster", 10, []int64{0, 1}, []int64{5, 5}, nil, false, []int64{none, 10}},
		{"all weight moved to a cluster without replicas", 4, []int64{0, 1}, []int64{4, 0}, nil, false, []int64{none, 4}},
		{"scaled up", 12, []int64{2, 1}, []int64{9, 0}, nil, false, []int64{8, 4}},
		{"scaled down", 3, []int64{2, 1}, []int64{0, 6}, nil, false, []int64{2, 1}},
		{"tie goes to the cluster in use", 3, []int64{1, 1}, []int64{1, 2}, nil, false, []int64{1, 2}},
		{"tie goes to the cluster in use, names descending", 3, []int64{1, 1}, []int64{2, 1}, nil, true, []int64{2, 1}},
		{"tie goes to the cluster in use, not to the one with fewer", 2, []int64{1, 3}, []int64{0, 2}, nil, false, []int64{none, 2}},
		{"tie without clusters in use", 3, []int64{1, 1}, []int64{0, 0}, nil, false, []int64{2, 1}},
		{"limited by room", 10, []int64{1, 1}, []int64{9, 1}, []int64{0, 2}, false, []int64{7, 3}},
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

// TestStaticFollowsEveryChange changes weights, capacity, replicas and clusters. The shares always equal those of
// Webster's method for the present weights, and no more replicas move than necessary.
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
					t.Fatalf("Divide() error %v, but there is a solution\n%v", err, w)
				}
				continue
			}
			w.checkStatic(t, res)
			w.candidates = hold(w.candidates, res.Shares)
			again, err := d.Divide(r, w.candidates)
			if err != nil || !slices.Equal(again.Shares, res.Shares) {
				t.Fatalf("repeated with error %v: %+v, want %+v\n%v", err, again.Shares, res.Shares, w)
			}
		}
	})
}

// checkStatic checks the shares against Webster's method: moving a replica to another cluster that has capacity would
// never be better, and running replicas are not moved for a tie.
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
			// Compare the next replica of a with the last of b: weight / (2 replicas + 1).
			next, last := weight(a)*(2*give-1), weight(b)*(2*have+1)
			if next > last || next == last && have < a.Assigned && give > b.Assigned {
				t.Fatalf("cluster %d has %d replicas, and cluster %d has %d, against their weights\n%v", a.Row, have, b.Row, give, w)
			}
		}
	}
}
