package division

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestHardRequestsAreSeldomMissed measures where no fast way is known that finds
// every solution: several constraints on groups at once, groups that overlap, and
// lower bounds of clusters. An answer always holds; this is how often there is none
// although trying all sets of clusters finds one. Without lower bounds the search
// misses nothing among so few clusters.
func TestHardRequestsAreSeldomMissed(t *testing.T) {
	const worlds = 3000
	for _, tt := range []struct {
		name     string
		shape    shape
		perMille int
	}{
		{"one constraint", shape{candidates: 9, replicas: 30, constraints: 1}, 0},
		{"two constraints", shape{candidates: 9, replicas: 30, constraints: 2}, 0},
		{"three constraints", shape{candidates: 9, replicas: 30, constraints: 3}, 0},
		{"overlapping groups", shape{candidates: 9, replicas: 30, constraints: 1, several: true}, 0},
		{"two of overlapping groups", shape{candidates: 9, replicas: 30, constraints: 2, several: true}, 0},
		{"two constraints, few clusters", shape{candidates: 12, replicas: 30, constraints: 2, few: true}, 0},
		{"three constraints, few clusters", shape{candidates: 12, replicas: 30, constraints: 3, few: true}, 0},
		{"two of overlapping groups, few clusters", shape{candidates: 12, replicas: 30, constraints: 2, several: true, few: true}, 0},
		{"three constraints, few replicas", shape{candidates: 12, replicas: 4, constraints: 3, few: true}, 0},
		{"lower bounds and two constraints, few clusters", shape{candidates: 12, replicas: 30, constraints: 2, few: true, minima: true}, 6},
		{"lower bounds and two constraints, few replicas", shape{candidates: 12, replicas: 6, constraints: 2, few: true, minima: true}, 4},
		{"lower bounds", shape{candidates: 9, replicas: 30, minima: true}, 0},
		{"lower bounds and a constraint", shape{candidates: 9, replicas: 30, constraints: 1, minima: true}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var d Divider
			draw := rapid.Custom(func(t *rapid.T) *world { return drawWorld(t, tt.shape) })
			solvable, missed := 0, 0
			var example *world
			for i := range worlds {
				w := draw.Example(i)
				res, err := d.Divide(&w.request, w.candidates)
				if err == nil {
					if err := w.check(res); err != nil {
						t.Fatalf("%v\n%v%+v", err, w, res.Shares)
					}
				} else if !w.solvable(false) {
					continue
				}
				solvable++
				if err != nil {
					missed++
					example = w
				}
			}
			t.Logf("missed %d of %d", missed, solvable)
			if missed*1000 > solvable*tt.perMille {
				t.Errorf("missed %d of %d, want at most %d in 1000; such as\n%v", missed, solvable, tt.perMille, example)
			}
		})
	}
}

// TestRareSolutionsAreFound hides a few clusters that satisfy several constraints at once among many clusters, and
// requests the constraints that need exactly these few.
func TestRareSolutionsAreFound(t *testing.T) {
	var d Divider
	draw := rapid.Custom(drawNeedle)
	missed := 0
	for i := range 1000 {
		w := draw.Example(i)
		res, err := d.Divide(&w.request, w.candidates)
		if err != nil {
			missed++
			t.Log(err)
		} else if err := w.check(res); err != nil {
			t.Fatalf("%v\n%v%+v", err, w, res.Shares)
		}
	}
	if missed > 0 {
		t.Errorf("missed %d of 1000", missed)
	}
}

// drawNeedle draws a request that few of many candidates can satisfy.
func drawNeedle(t *rapid.T) *world {
	n := rapid.IntRange(65, 200).Draw(t, "candidates")
	w := &world{request: Request{Replicated: true, Mode: Dynamic}}
	for i, rank := range rapid.Permutation(upTo(n)).Draw(t, "ranks") {
		free := rapid.Int64Range(1, 9).Draw(t, "free")
		w.candidates = append(w.candidates, Candidate{Row: int32(i), Rank: int32(rank), Free: free, Max: Unlimited})
	}
	needle := w.candidates[:rapid.IntRange(2, 6).Draw(t, "needle")]
	for i := range rapid.IntRange(2, 3).Draw(t, "constraints") {
		g := &Groups{}
		for id := range rapid.IntRange(3, 12).Draw(t, "groups") {
			g.Names = append(g.Names, fmt.Sprint("g", id))
		}
		used := map[int32]bool{}
		for row := range n {
			// Most other clusters are in the first groups, so that the solution is rare.
			last := len(g.Names) - 1
			if row >= len(needle) && rapid.IntRange(0, 9).Draw(t, "common") > 0 {
				last /= 2
			}
			g.Of = append(g.Of, int32(rapid.IntRange(0, last).Draw(t, "group")))
			if row < len(needle) {
				used[g.Of[row]] = true
			}
		}
		groups := int64(len(used))
		w.request.Constraints = append(w.request.Constraints, Constraint{By: fmt.Sprint("field", i), Min: groups, Max: groups, Groups: g})
	}
	clusters := int64(len(needle))
	w.request.Constraints = append(w.request.Constraints, Constraint{By: "cluster", Min: clusters, Max: clusters})
	for _, c := range needle {
		w.request.Replicas += c.Free
	}
	w.request.Replicas = rapid.Int64Range(clusters, w.request.Replicas).Draw(t, "replicas")
	return w
}
