package division

import "testing"

// TestReasons checks the short reason that each candidate gets for its share.
func TestReasons(t *testing.T) {
	regions := &Groups{Names: []string{"eu", "us", "ap"}, Of: []int32{0, 0, 1, 2, -1}}
	clusters := func(least, most int64) Constraint { return Constraint{By: "cluster", Min: least, Max: most} }
	for _, tt := range []struct {
		name       string
		request    Request
		candidates []Candidate
		want       []string
	}{
		{"static weights", Request{Replicas: 14, Mode: Static}, []Candidate{
			{Free: Unknown, Weight: 3, Max: Unlimited}, {Free: Unknown, Weight: 2, Max: Unlimited},
			{Free: Unknown, Weight: 1, Max: Unlimited}, {Free: Unknown, Max: Unlimited},
		}, []string{"7 of 14 by weight 3 of 6", "5 of 14 by weight 2 of 6", "2 of 14 by weight 1 of 6", "has no weight"}},
		{"equal weights", Request{Replicas: 3, Mode: Static}, []Candidate{{Free: 9, Max: Unlimited}, {Free: 9, Max: Unlimited}, {Free: 0, Max: Unlimited}},
			[]string{"2 of 3 by equal weights of 2", "1 of 3 by equal weights of 2", "is full: has room for 0 of 3 replicas"}},
		{"scale-up by room", Request{Replicas: 12, Mode: Dynamic}, []Candidate{
			{Present: true, Assigned: 4, Free: 10, Max: Unlimited}, {Present: true, Assigned: 2, Free: 30, Max: 3}, {Free: 60, Max: Unlimited},
			{Free: Unknown, Max: 1},
		}, []string{
			"keeps 4, gets 1 of 6 new ones by room for 10 of 112", "keeps 2, gets 1 of 6 new ones by room for 30 of 112, at most 3",
			"gets 3 of 6 new ones by room for 60 of 112", "gets 1 of 6 new ones, with room for anything, at most 1",
		}},
		{"share rounded to 0", Request{Replicas: 2, Mode: Dynamic}, []Candidate{{Free: 20, Max: Unlimited}, {Free: 1, Max: Unlimited}},
			[]string{"2 of 2 by room for 20 of 21", "0 of 2 by room for 1 of 21"}},
		{"clusters full afterwards", Request{Replicas: 10, Mode: Dynamic}, []Candidate{{Free: 9, Max: Unlimited}, {Free: 1, Max: Unlimited}},
			[]string{"9 of 10 by room for 9 of 10, and is full", "1 of 10 by room for 1 of 10, and is full"}},
		{"unchanged", Request{Replicas: 6, Mode: Dynamic}, []Candidate{{Present: true, Assigned: 6, Free: 1, Max: Unlimited}, {Free: 60, Max: Unlimited}},
			[]string{"keeps its 6 of 6", "no replica has to move"}},
		{"scale-down", Request{Replicas: 6, Mode: Aggregate}, []Candidate{
			{Present: true, Assigned: 8, Free: 1, Max: Unlimited}, {Present: true, Assigned: 4, Free: 60, Max: Unlimited}},
			[]string{"keeps 6 of its 8: 6 of all 12 go", "its 4 replicas are part of the surplus of 6"}},
		{"aggregated", Request{Replicas: 6, Mode: Aggregate}, []Candidate{{Free: 8, Max: Unlimited}, {Free: 7, Max: Unlimited}},
			[]string{"6 of 6 on the fewest clusters with room", "fewer clusters have room enough"}},
		{"overflow", Request{Replicas: 6, Mode: Dynamic}, []Candidate{{Free: 8, Max: Unlimited}, {Tier: 1, Free: 7, Max: Unlimited}},
			[]string{"6 of 6 by room for 8 of 15", "the clusters before it have room enough"}},
		{"duplicated", Request{Replicas: 10}, []Candidate{
			{Free: 10, Max: Unlimited}, {Free: 3, Max: Unlimited}, {Free: 30, Max: 5}, {Free: 30, Min: 11, Max: Unlimited}},
			[]string{"gets all 10 replicas", "is full: has room for 3 of 10 replicas", "may have at most 5 of 10 replicas", "takes at least 11 replicas of 10"}},
		{"maximum of clusters", Request{Replicas: 4, Mode: Dynamic, Constraints: []Constraint{clusters(1, 1)}},
			[]Candidate{{Free: 8, Max: Unlimited}, {Free: 7, Max: Unlimited}},
			[]string{"4 of 4 by room for 8 of 8", "max_groups 1 of cluster are chosen without it"}},
		{"minimum of clusters", Request{Replicas: 4, Mode: Aggregate, Constraints: []Constraint{clusters(2, Unlimited)}},
			[]Candidate{{Free: 8, Max: Unlimited}, {Free: 7, Max: Unlimited}},
			[]string{"3 of 4 on the fewest clusters with room", "1 of 4 on the fewest clusters with room, as min_groups asks for"}},
		{"regions", Request{Constraints: []Constraint{{By: "region", Min: 1, Max: 2, Groups: regions}, clusters(3, 3)}},
			[]Candidate{{}, {}, {}, {}, {}},
			[]string{"is chosen", "is chosen", "region us is not among the 2 chosen", "is chosen", "has no region"}},
		{"lower bounds", Request{Replicas: 5, Mode: Dynamic}, []Candidate{{Free: 8, Min: 3, Max: Unlimited}, {Free: 7, Min: 3, Max: Unlimited}, {Free: 2, Min: 3, Max: Unlimited}},
			[]string{"5 of 5 by room for 8 of 15", "takes at least 3 replicas, and fewer are left", "takes at least 3 replicas, and has room for 2"}},
		{"not enough room", Request{Replicas: 20, Mode: Dynamic}, []Candidate{{Free: 8, Max: Unlimited}, {Free: 0, Max: Unlimited}},
			[]string{"has room for 8 of 20 replicas", "is full: has room for 0 of 20 replicas"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.request.Replicated = tt.request.Replicas > 0
			for i := range tt.candidates {
				tt.candidates[i].Row, tt.candidates[i].Rank = int32(i), int32(i)
			}
			var d Divider
			res, err := d.Divide(&tt.request, tt.candidates)
			for i := range tt.candidates {
				if got := res.Reason(&tt.candidates[i]); got != tt.want[i] {
					t.Errorf("%d: got %q, want %q (%+v, %v)", i, got, tt.want[i], res.Shares, err)
				}
			}
		})
	}
}
