package division

import (
	"fmt"
	"slices"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/cputime"
)

// TestSearchFindsTheOnlyChoice covers cases in which satisfying one constraint after the other fails.
func TestSearchFindsTheOnlyChoice(t *testing.T) {
	// The first cluster shares its region with the second and its provider with the third, so that no valid pair
	// contains it.
	regions := &Groups{Names: []string{"ra", "rb"}, Of: []int32{0, 0, 1}}
	providers := &Groups{Names: []string{"p", "q"}, Of: []int32{0, 1, 0}}
	region := Constraint{By: "region", Min: 2, Max: 2, Groups: regions}
	provider := Constraint{By: "provider", Min: 2, Max: 2, Groups: providers}
	clusters := Constraint{By: "cluster", Min: 2, Max: 2}
	three := []Candidate{
		{Row: 0, Rank: 0, Free: 9, Max: Unlimited}, {Row: 1, Rank: 1, Free: 9, Max: Unlimited}, {Row: 2, Rank: 2, Free: 9, Max: Unlimited},
	}
	overlapping := &Groups{Names: []string{"z1", "z2"}, Of: []int32{0, 1, 0}, Several: map[int32][]int32{2: {0, 1}}}
	for _, tt := range []struct {
		name       string
		request    Request
		candidates []Candidate
		want       string
	}{
		{"few clusters", Request{Replicas: 4, Mode: Dynamic, Constraints: []Constraint{region, provider, clusters}}, three,
			"[{1 1 2} {2 2 2}]"},
		{"few clusters, duplicated", Request{Replicas: 4, Mode: Duplicate, Constraints: []Constraint{region, provider, clusters}}, three,
			"[{1 1 4} {2 2 4}]"},
		{"few replicas", Request{Replicas: 2, Mode: Dynamic, Constraints: []Constraint{region, provider}}, three,
			"[{1 1 1} {2 2 1}]"},
		{"one replica in two zones", Request{Replicas: 1, Mode: Dynamic, Constraints: []Constraint{{By: "zone", Min: 2, Max: 2, Groups: overlapping}}}, three,
			"[{2 2 1}]"},
		{"one new replica for the missing zone", Request{Replicas: 7, Mode: Dynamic, Constraints: []Constraint{{By: "zone", Min: 3, Max: 3,
			Groups: &Groups{Names: []string{"z1", "z2", "z3"}, Of: []int32{0, 1, 0, 2}, Several: map[int32][]int32{2: {0, 1}}}}}},
			[]Candidate{
				{Row: 0, Rank: 0, Present: true, Assigned: 3, Free: 4, Max: Unlimited}, {Row: 1, Rank: 1, Present: true, Assigned: 3, Free: 2, Max: Unlimited},
				{Row: 2, Rank: 2, Free: 9, Max: Unlimited}, {Row: 3, Rank: 3, Free: 6, Max: Unlimited},
			}, "[{0 0 3} {1 1 3} {3 3 1}]"},
		{"lower bound on one of two clusters", Request{Replicas: 2, Mode: Dynamic, Constraints: []Constraint{{By: "cluster", Min: 2, Max: 4}}},
			[]Candidate{{Rank: 1, Free: 5, Max: Unlimited}, {Row: 1, Free: 3, Min: 2, Max: Unlimited}},
			"[] no division of 2 replicas satisfies all spread constraints at once"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var d Divider
			tt.request.Replicated = true
			res, err := d.Divide(&tt.request, tt.candidates)
			got := fmt.Sprint(res.Shares)
			if err != nil {
				got += " " + err.Error()
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// BenchmarkSearchInVain is what is searched until the steps run out. A workload
// that waits is tried again and again. Target: 5 ms.
func BenchmarkSearchInVain(b *testing.B) {
	const n = 10_000
	scattered := func(groups, seed int) *Groups {
		g := regionsOf(n, groups)
		for i := range g.Of {
			g.Of[i] = int32((i*7919 + i*i%104729*seed) >> 3 % groups) // without a pattern
		}
		return g
	}
	candidates := make([]Candidate, n)
	for i := range candidates {
		candidates[i] = Candidate{Row: int32(i), Rank: int32(i), Free: int64(10 + i*7919%90), Max: Unlimited}
	}
	for _, bb := range []struct {
		name        string
		mode        Mode
		constraints []Constraint
		held, tiers int
	}{
		{"thousand classes, no room", Dynamic, []Constraint{
			{Min: 2, Max: 3, Groups: scattered(10, 3)}, {Min: 2, Max: 3, Groups: scattered(10, 5)}, {Min: 2, Max: 3, Groups: scattered(10, 7)},
		}, 0, 1},
		{"thousand classes, no room, held, tiers", Dynamic, []Constraint{
			{Min: 2, Max: 3, Groups: scattered(10, 3)}, {Min: 2, Max: 3, Groups: scattered(10, 5)}, {Min: 2, Max: 3, Groups: scattered(10, 7)},
		}, 2, 3},
		{"as many classes as clusters, no room", Dynamic, []Constraint{
			{Min: 2, Max: 10, Groups: scattered(50, 3)}, {Min: 2, Max: 10, Groups: scattered(50, 5)}, {Min: 2, Max: 10, Groups: scattered(50, 7)},
		}, 0, 1},
		{"more regions than zones", Dynamic, []Constraint{
			{Min: 10, Max: 10, Groups: regionsOf(n, 500)}, {Min: 2, Max: 9, Groups: regionsOf(n, 1000)}, {Min: 2, Max: 3, Groups: regionsOf(n, 7)},
		}, 0, 1},
		{"more regions than zones, all replicas each", Duplicate, []Constraint{
			{Min: 10, Max: 10, Groups: regionsOf(n, 20)}, {Min: 2, Max: 9, Groups: regionsOf(n, 40)}, {Min: 2, Max: 3, Groups: regionsOf(n, 7)},
		}, 0, 1},
	} {
		candidates := slices.Clone(candidates)
		for i := range candidates {
			candidates[i].Tier = int32(i % bb.tiers)
			candidates[i].Present = i < bb.held
			candidates[i].Assigned = int64(max(0, bb.held-i))
			if bb.mode == Duplicate {
				candidates[i].Free = Unknown
			}
		}
		r := &Request{Replicas: 80_000, Replicated: true, Mode: bb.mode, Constraints: bb.constraints}
		b.Run(bb.name, func(b *testing.B) {
			var d Divider
			cputime.Measure(b, func() {
				if _, err := d.Divide(r, candidates); err == nil {
					b.Fatal("Divide() succeeded, want an error")
				}
			})
			b.ReportMetric(float64(d.searchSteps), "steps")
		})
	}
}
