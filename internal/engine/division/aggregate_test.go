package division

import (
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestAggregateUsesFewClusters checks that replicas go to as few clusters as the constraints allow, and that the one
// with the most capacity gets the most.
func TestAggregateUsesFewClusters(t *testing.T) {
	const none = int64(-1)
	regions := func(of ...int32) []Constraint {
		return []Constraint{{By: "region", Min: 2, Max: 2, Groups: &Groups{Names: []string{"eu", "us"}, Of: of}}}
	}
	for _, tt := range []struct {
		name        string
		request     Request
		held, free  []int64
		tiers       []int32
		want        []int64
		constraints []Constraint
	}{
		{"scale-up goes to the cluster with the most replicas", Request{Replicas: 6}, []int64{1, 3}, []int64{9, 9}, nil, []int64{1, 5}, nil},
		{"even if another one has more room", Request{Replicas: 6}, []int64{1, 3}, []int64{9, 2}, nil, []int64{1, 5}, nil},
		{"tie goes to the cluster with more room", Request{Replicas: 8}, []int64{3, 3}, []int64{2, 9}, nil, []int64{3, 5}, nil},
		{"running replicas do not move to a cluster with more room", Request{Replicas: 1, Fresh: true}, []int64{0, 1}, []int64{9, 1}, nil, []int64{none, 1}, nil},
		{"the largest running share is kept", Request{Replicas: 4, Fresh: true}, []int64{1, 3, 0}, []int64{9, 1, 20}, nil, []int64{none, 4, none}, nil},
		{"a fresh division packs", Request{Replicas: 8, Fresh: true}, []int64{1, 0}, []int64{4, 10}, nil, []int64{none, 8}, nil},
		{"two regions", Request{Replicas: 6}, []int64{0, 0, 0}, []int64{4, 4, 4}, nil, []int64{3, none, 3}, regions(0, 0, 1)},
		{"two regions, the first has less", Request{Replicas: 6}, []int64{0, 0, 0}, []int64{5, 4, 2}, nil, []int64{4, none, 2}, regions(0, 0, 1)},
		{"two regions, scaled down", Request{Replicas: 6}, []int64{4, 4, 2}, []int64{0, 0, 0}, nil, []int64{4, none, 2}, regions(0, 0, 1)},
		{"two regions, scaled up", Request{Replicas: 8}, []int64{2, 0, 2}, []int64{1, 9, 9}, nil, []int64{2, none, 6}, regions(0, 0, 1)},
		{"at most two clusters", Request{Replicas: 3, Fresh: true}, []int64{1, 1, 0}, []int64{0, 0, 9}, nil, []int64{none, none, 3},
			[]Constraint{{By: "cluster", Min: 1, Max: 2}}},
		{"scale-down starts in the last tier", Request{Replicas: 5}, []int64{2, 2, 4}, []int64{0, 0, 9}, []int32{0, 0, 1}, []int64{2, 2, 1},
			[]Constraint{{By: "cluster", Min: 1, Max: 3}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var candidates []Candidate
			for i := range tt.held {
				c := Candidate{Row: int32(i), Rank: int32(i), Assigned: tt.held[i], Present: tt.held[i] > 0, Free: tt.free[i], Max: Unlimited}
				if tt.tiers != nil {
					c.Tier = tt.tiers[i]
				}
				candidates = append(candidates, c)
			}
			tt.request.Replicated, tt.request.Mode, tt.request.Constraints = true, Aggregate, tt.constraints
			var d Divider
			res, err := d.Divide(&tt.request, candidates)
			if got := shares(res, len(candidates)); err != nil || !slices.Equal(got, tt.want) {
				t.Fatalf("got %v, %v, want %v", got, err, tt.want)
			}
			for i := range candidates {
				if res.Reason(&candidates[i]) == "" {
					t.Errorf("no reason why cluster %d has %d replicas", i, tt.want[i])
				}
			}
		})
	}
}

// fewest returns the smallest possible number of clusters, found by trying all sets. If none of the current clusters
// has to be left, only sets that contain all of them count; if some must be left, only subsets of them; if everything
// is divided again, any set. It returns 0 if there is no such set.
func (w *world) fewest() int {
	r := &w.request
	var kept int64
	var holders uint
	for i := range w.candidates {
		c := &w.candidates[i]
		if n := min(c.Assigned, w.fits(c)); n > 0 && !r.Fresh {
			kept += min(c.Assigned, c.Max)
			holders |= 1 << i
		}
	}
	best := 0
	for set := uint(1); set < 1<<len(w.candidates); set++ {
		used := bits.OnesCount(set)
		if best > 0 && used >= best || kept <= r.Replicas && set&holders != holders || kept > r.Replicas && set&^holders != 0 {
			continue
		}
		var room int64
		var rows []int32
		for i := range w.candidates {
			c := &w.candidates[i]
			if set&(1<<i) == 0 {
				continue
			}
			n := w.fits(c)
			if kept > r.Replicas {
				n = min(c.Assigned, c.Max)
			}
			if n == 0 {
				room = -1 << 40
			}
			room += n
			rows = append(rows, c.Row)
		}
		others := int64(bits.OnesCount(set &^ holders))
		if kept <= r.Replicas && others > r.Replicas-kept || int64(used) > r.Replicas {
			continue // each of them needs a replica
		}
		if room >= r.Replicas && w.spreadHolds(rows) == nil {
			best = used
		}
	}
	return best
}

// TestAggregateIsMinimal compares with trying all sets of clusters, while replicas, capacity and clusters change.
func TestAggregateIsMinimal(t *testing.T) {
	var d Divider
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, rapid.SampledFrom([]shape{
			{candidates: 8, replicas: 25},
			{candidates: 8, replicas: 25, constraints: 1},
			{candidates: 7, replicas: 25, constraints: 2, several: true},
		}).Draw(t, "shape"))
		r := &w.request
		r.Mode, r.Replicated, r.Empty = Aggregate, true, false
		for i := range w.candidates {
			w.candidates[i].Tier = 0
		}
		for range 4 {
			switch i := rapid.IntRange(0, len(w.candidates)-1).Draw(t, "which"); rapid.IntRange(0, 2).Draw(t, "change") {
			case 0:
				r.Replicas = rapid.Int64Range(1, 25).Draw(t, "replicas")
			case 1:
				w.candidates[i].Free = rapid.Int64Range(-1, 9).Draw(t, "free")
			case 2:
				if len(w.candidates) > 1 {
					w.candidates = slices.Delete(w.candidates, i, i+1)
				}
			}
			res, err := d.Divide(r, w.candidates)
			if err != nil {
				if w.solvable(false) {
					t.Fatalf("Divide() error %v, but there is a solution\n%v", err, w)
				}
				continue
			}
			if err := w.check(res); err != nil {
				t.Fatalf("%v\n%v%+v", err, w, res.Shares)
			}
			if want := w.fewest(); want > 0 && len(res.Shares) != want {
				t.Fatalf("%d clusters used, want %d\n%v%+v", len(res.Shares), want, w, res.Shares)
			}
			w.checkLargestFirst(t, res)
			w.candidates = hold(w.candidates, res.Shares)
			r.Fresh = false
			again, err := d.Divide(r, w.candidates)
			if err != nil || !slices.Equal(again.Shares, res.Shares) {
				t.Fatalf("repeated with error %v: %+v, want %+v\n%v", err, again.Shares, res.Shares, w)
			}
		}
	})
}

// checkLargestFirst checks that, without constraints, a cluster gains replicas only if the clusters that held more
// cannot take all new replicas.
func (w *world) checkLargestFirst(t *rapid.T, res Result) {
	r := &w.request
	if r.Fresh || len(r.Constraints) > 0 {
		return
	}
	got := map[int32]int64{}
	for _, s := range res.Shares {
		got[s.Row] = s.Replicas
	}
	more := r.Replicas
	for i := range w.candidates {
		more -= w.candidates[i].Assigned
	}
	for i := range w.candidates {
		c := &w.candidates[i]
		if more <= 0 || got[c.Row] <= c.Assigned {
			continue
		}
		var room int64
		for j := range w.candidates {
			if o := &w.candidates[j]; o.Assigned > c.Assigned {
				room += w.fits(o) - o.Assigned
			}
		}
		if room >= more {
			t.Fatalf("cluster %d gains replicas although larger ones have room\n%v%+v", c.Row, w, res.Shares)
		}
	}
}
