package reconcile

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestDecisionsFollowWhatFiltersRead checks that a change in what a filter reads causes new decisions where the filter
// is used, and that simulations and explanations agree with the decision.
func TestDecisionsFollowWhatFiltersRead(t *testing.T) {
	for name, tt := range map[string]struct {
		asks         func(s *api.PlacementSpec)
		has, change  *api.Cluster // added to a and b, or replaces one of them; has may be nil
		filter, on   string       // the nearest miss before the change
		before, then []string     // the decision
	}{
		"version becomes known": {
			asks:   func(s *api.PlacementSpec) { s.KubernetesVersion = ">= 1.33, < 2" },
			change: versioned("b", "v1.33.1+k3s1"), filter: "kubernetes_version", on: ">= 1.33, < 2",
			then: []string{"b"},
		},
		"version no longer matches": {
			asks:   func(s *api.PlacementSpec) { s.KubernetesVersion = "< 1.33" },
			has:    versioned("b", "v1.32.9-eks-4f2e1a"),
			change: versioned("b", "v1.33.0-eks-4f2e1a"), filter: "kubernetes_version", on: "< 1.33",
			before: []string{"b"},
		},
		"named cluster appears": {
			asks:   func(s *api.PlacementSpec) { s.ClusterNames = []string{"b", "new"} },
			change: cluster("new", nil), filter: "cluster_names", on: "cluster_names",
			before: []string{"b"}, then: []string{"b", "new"},
		},
		"excluded cluster appears": {
			asks:   func(s *api.PlacementSpec) { s.ExcludeClusters = []string{"b", "new"} },
			change: cluster("new", nil), filter: "cluster_names", on: "exclude_clusters",
			before: []string{"a"}, then: []string{"a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, p := newWorld(), newPlanner(discard())
			for _, object := range []api.Object{cluster("a", nil), cluster("b", nil), newPlacement("web", -1, tt.asks)} {
				w.write(p, object)
			}
			if tt.has != nil {
				observe(w, p, tt.has)
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
			observe(w, p, tt.change)
			pass(epoch.Add(time.Second), tt.then)
		})
	}
}

// observe writes a new cluster, or only the status of an existing one.
func observe(w *world, p *planner, c *api.Cluster) {
	key := api.KeyOf(c)
	was, ok := w.objects[key].(*api.Cluster)
	if !ok {
		w.write(p, c)
		return
	}
	seen := *was
	seen.Status = c.Status
	w.objects[key] = &seen
	p.put(&seen, w.specs[key])
}

// versioned returns a cluster with a Kubernetes version.
func versioned(name, version string) *api.Cluster {
	c := cluster(name, nil)
	c.Status.KubernetesVersion = version
	return c
}
