package division

import (
	"errors"
	"slices"
	"testing"
)

// TestZeroReplicas checks that a workload without replicas keeps its clusters, with 0 each, and that a policy that
// cannot be satisfied fails as it would with replicas.
func TestZeroReplicas(t *testing.T) {
	const none = int64(-1)
	regions := &Groups{Names: []string{"eu", "us"}, Of: []int32{0, 1, 1, -1}}
	by := func(least, most int64, groups *Groups) []Constraint {
		return []Constraint{{By: "x", Min: least, Max: most, Groups: groups}}
	}
	for _, tt := range []struct {
		name    string
		request Request
		present []int
		tiers   []int32
		want    []int64 // nil = no selection
	}{
		{"new", Request{Mode: Dynamic}, nil, nil, []int64{none, none, none, none}},
		{"new, on all clusters", Request{Mode: Dynamic, Empty: true}, nil, nil, []int64{0, 0, 0, 0}},
		{"no resource requests", Request{Mode: Dynamic, Bare: true}, nil, nil, []int64{0, 0, 0, 0}},
		{"no resource requests, keeps its clusters", Request{Mode: Dynamic, Bare: true}, []int{1}, nil, []int64{none, 0, none, none}},
		{"keeps its clusters", Request{Mode: Dynamic}, []int{1, 3}, nil, []int64{none, 0, none, 0}},
		{"by static weights", Request{Mode: Static}, []int{1, 3}, nil, []int64{none, 0, none, 0}},
		{"aggregated", Request{Mode: Aggregate}, []int{2}, nil, []int64{none, none, 0, none}},
		{"duplicated", Request{Mode: Duplicate}, []int{0, 1}, nil, []int64{0, 0, none, none}},
		{"fresh division", Request{Mode: Dynamic, Fresh: true}, []int{1}, nil, []int64{none, 0, none, none}},
		{"limited by the maximum of clusters", Request{Mode: Dynamic, Constraints: by(1, 1, nil)}, []int{1, 3}, nil, []int64{none, 0, none, none}},
		{"more groups required than exist", Request{Mode: Dynamic, Constraints: by(3, 3, regions)}, []int{1}, nil, nil},
		{"more clusters required than exist", Request{Mode: Dynamic, Constraints: by(5, 5, nil)}, nil, nil, nil},
		{"overflow tiers stay unused", Request{Mode: Dynamic, Empty: true}, nil, []int32{0, 0, 1, 1}, []int64{0, 0, none, none}},
		{"overflow tier in use is kept", Request{Mode: Dynamic, Empty: true}, []int{3}, []int32{0, 0, 1, 1}, []int64{0, 0, none, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var candidates []Candidate
			for i := range 4 {
				c := Candidate{Row: int32(i), Rank: int32(i), Free: 3, Weight: 1, Max: Unlimited, Present: slices.Contains(tt.present, i)}
				if c.Present {
					c.Assigned = 2
				}
				if tt.tiers != nil {
					c.Tier = tt.tiers[i]
				}
				candidates = append(candidates, c)
			}
			tt.request.Replicated = true
			var d Divider
			res, err := d.Divide(&tt.request, candidates)
			if tt.want == nil {
				if err == nil {
					t.Errorf("got %v, want an error", shares(res, 4))
				}
				return
			}
			if err != nil || !slices.Equal(shares(res, 4), tt.want) {
				t.Errorf("got %v, %v, want %v", shares(res, 4), err, tt.want)
			}
			for i := range candidates {
				if candidates[i].Present && res.Reason(&candidates[i]) == "" {
					t.Errorf("no reason why cluster %d has no replicas", i)
				}
			}
		})
	}
	var d Divider
	var nobody *NoCandidatesError
	if _, err := d.Divide(&Request{Replicated: true, Mode: Dynamic}, nil); !errors.As(err, &nobody) {
		t.Errorf("no candidates: %v", err)
	}
}
