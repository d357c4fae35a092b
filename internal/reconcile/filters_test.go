package reconcile

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestDecisionsFollowWhatFiltersRead: what a filter reads wakes the decisions that
// it has a part in, and a simulation and an explanation say the same as the
// decision.
func TestDecisionsFollowWhatFiltersRead(t *testing.T) {
	for name, tt := range map[string]struct {
		asks         func(s *api.PlacementSpec)
		change       *api.Cluster
		filter, on   string   // the nearest miss before the change
		before, then []string // the decision
	}{
		"a name, of a cluster that appears": {
			asks:   func(s *api.PlacementSpec) { s.ClusterNames = []string{"b", "new"} },
			change: cluster("new", nil), filter: "cluster_names", on: "cluster_names",
			before: []string{"b"}, then: []string{"b", "new"},
		},
		"a name that is excluded, of a cluster that appears": {
			asks:   func(s *api.PlacementSpec) { s.ExcludeClusters = []string{"b", "new"} },
			change: cluster("new", nil), filter: "cluster_names", on: "exclude_clusters",
			before: []string{"a"}, then: []string{"a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, p := newWorld(), newPlanner(discard())
			for _, object := range []api.Object{cluster("a", nil), cluster("b", nil), placement("web", -1, tt.asks)} {
				w.write(p, object)
			}
			pass := func(now time.Time, want []string) {
				t.Helper()
				p.pass(now)
				if got := slices.Sorted(slices.Values(webOf(p).status.Clusters)); !slices.Equal(got, want) {
					t.Errorf("decided %v, want %v", got, want)
				}
				checkSettled(t, p, now)
				request := api.Simulation{Base: "empty", Now: &now}
				for key, object := range w.objects {
					text, err := json.Marshal(object)
					if err != nil {
						t.Fatalf("%s: %v", key, err)
					}
					request.Objects = append(request.Objects, text)
				}
				result, err := SimulateFile(t.Context(), request, nil, now)
				if err != nil {
					t.Fatal(err)
				}
				for _, object := range result.Objects {
					if o, ok := object.(*api.Placement); ok && !slices.Equal(slices.Sorted(slices.Values(o.Status.Clusters)), want) {
						t.Errorf("simulated %v, want %v", o.Status.Clusters, want)
					}
				}
				if miss := result.Explanations[0].NearestMiss; miss == nil || miss.Filter != tt.filter || miss.On != tt.on {
					t.Errorf("nearest miss %+v, want %s on %s", miss, tt.filter, tt.on)
				}
			}
			pass(epoch, tt.before)
			w.write(p, tt.change)
			pass(epoch.Add(time.Second), tt.then)
		})
	}
}
