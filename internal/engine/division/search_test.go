package division

import (
	"fmt"
	"slices"
	"testing"
)

// TestSearchFindsTheOnlyChoice: cases in which choosing for one constraint after
// the other goes wrong.
func TestSearchFindsTheOnlyChoice(t *testing.T) {
	// The first cluster shares its region with the second and its provider with the
	// third, so that it takes part in no choice of two.
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
		{"few clusters with all replicas each", Request{Replicas: 4, Mode: Duplicate, Constraints: []Constraint{region, provider, clusters}}, three,
			"[{1 1 4} {2 2 4}]"},
		{"few replicas", Request{Replicas: 2, Mode: Dynamic, Constraints: []Constraint{region, provider}}, three,
			"[{1 1 1} {2 2 1}]"},
		{"one replica in two zones", Request{Replicas: 1, Mode: Dynamic, Constraints: []Constraint{{By: "zone", Min: 2, Max: 2, Groups: overlapping}}}, three,
			"[{2 2 1}]"},
		{"a lower bound on one of two", Request{Replicas: 2, Mode: Dynamic, Constraints: []Constraint{{By: "cluster", Min: 2, Max: 4}}},
			[]Candidate{{Rank: 1, Free: 5, Max: Unlimited}, {Row: 1, Free: 3, Min: 2, Max: Unlimited}},
			"[] no division of 2 replicas holds all spread constraints at once"},
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
			g.Of[i] = int32((i*7919 + i*i%104729*seed) >> 3 % groups)
		}
		return g
	}
	candidates := make([]Candidate, n)
	for i := range candidates {
		candidates[i] = Candidate{Row: int32(i), Rank: int32(i), Free: int64(10 + i*7919%90), Max: Unlimited}
	}
	for _, bb := range []struct {
		name                       string
		regions, zones, providers  *Groups
		least, most, clusters, all int64
		held, tiers                int
	}{
		{"thousand classes, no room", scattered(10, 3), scattered(10, 5), scattered(10, 7), 2, 3, Unlimited, 80_000, 0, 1},
		{"thousand classes, no room, held, tiers", scattered(10, 3), scattered(10, 5), scattered(10, 7), 2, 3, Unlimited, 80_000, 2, 3},
		{"as many classes as clusters, no room", scattered(50, 3), scattered(50, 5), scattered(50, 7), 2, 10, Unlimited, 80_000, 0, 1},
		{"as many classes as clusters, no room on few", scattered(50, 3), scattered(50, 5), scattered(50, 7), 2, 10, 1000, 80_000, 0, 1},
		{"groups that contradict others", regionsOf(n, 5000), regionsOf(n, 2500), regionsOf(n, 8), 9, 9, 18, 100, 0, 1},
		{"groups that contradict others, held, tiers", regionsOf(n, 5000), regionsOf(n, 2500), regionsOf(n, 8), 9, 9, 18, 100, 2, 3},
	} {
		candidates := slices.Clone(candidates)
		for i := range candidates {
			candidates[i].Tier = int32(i % bb.tiers)
			candidates[i].Present = i < bb.held
			candidates[i].Held = int64(max(0, bb.held-i))
		}
		r := &Request{Replicas: bb.all, Replicated: true, Mode: Dynamic, Constraints: []Constraint{
			{By: "region", Min: bb.least, Max: bb.most, Groups: bb.regions},
			{By: "zone", Min: bb.least, Max: bb.most, Groups: bb.zones},
			{By: "provider", Min: bb.least, Max: bb.most, Groups: bb.providers},
			{By: "cluster", Min: 1, Max: bb.clusters},
		}}
		b.Run(bb.name, func(b *testing.B) {
			var d Divider
			measure(b, func() {
				if _, err := d.Divide(r, candidates); err == nil {
					b.Fatal("there is a choice")
				}
			})
			b.ReportMetric(float64(d.searchSteps), "steps")
		})
	}
}
