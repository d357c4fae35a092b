package division

import (
	"fmt"
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
