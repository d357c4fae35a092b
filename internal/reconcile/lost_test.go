package reconcile

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Objects that cannot be read hold the decisions that depend on them, and no others, which still follow changes.
func TestLostObjectsHoldDependentDecisions(t *testing.T) {
	ref := func(name string) api.MetricRef { return api.MetricRef{Name: name} }
	of := func(m *api.Metric, provider string) *api.Metric {
		m.Spec.MetricsProvider.Name = provider
		return m
	}
	named := func(p *api.MetricsProvider, name string) *api.MetricsProvider {
		p.Metadata.Name = name
		return p
	}
	inheriting := func(name string) *api.Cluster {
		c := cluster(name, nil)
		c.Spec.InheritLabels = true
		c.Status.Cloud = "sky"
		return c
	}
	in := func(zone string) func(*api.PlacementSpec) {
		return func(s *api.PlacementSpec) { s.LabelConstraints = []string{"zone is " + zone} }
	}
	objects := func() []api.Object {
		return []api.Object{
			named(provider(), "pa"), named(provider(), "pb"),
			of(metric("ma", 0.9), "pa"), of(metric("mb", 0.9), "pb"), of(metric("mb2", 0.1), "pb"),
			cloud("sky", "", map[string]string{"zone": "c"}),
			cluster("a1", map[string]string{"zone": "a"}, ref("ma")), cluster("a2", map[string]string{"zone": "a"}, ref("mb2")),
			cluster("b1", map[string]string{"zone": "b"}, ref("mb")), cluster("b2", map[string]string{"zone": "b"}, ref("mb2")),
			inheriting("c1"),
			newPlacement("in-a", 1, in("a")), newPlacement("in-b", 1, in("b")), newPlacement("in-c", 1, in("c")),
		}
	}
	for _, test := range []struct {
		lost api.Key
		held []string // those of in-a, in-b and in-c that are held
	}{
		{key(api.KindCluster, "", "a1"), []string{"in-a"}},
		{key(api.KindMetric, "", "ma"), []string{"in-a"}},
		{key(api.KindMetricsProvider, "", "pa"), []string{"in-a"}},
		{key(api.KindCloud, "", "sky"), []string{"in-c"}},
		{key(api.KindClusterSet, "", "nobodys"), nil},
		{key(api.KindPlacementScore, "", "nobodys"), nil},
	} {
		t.Run(strings.ReplaceAll(test.lost.String(), "/", " "), func(t *testing.T) {
			w, p := newWorld(), newPlanner(discard())
			for _, object := range objects() {
				w.write(p, object)
			}
			p.pass(epoch)
			before := map[string][]string{}
			for k, placed := range p.placer.placements {
				before[k.Name] = placed.status.Clusters
			}
			for name, want := range map[string]string{"in-a": "a1", "in-b": "b1", "in-c": "c1"} {
				if !slices.Equal(before[name], []string{want}) {
					t.Fatalf("%s is on %v before the restart", name, before[name])
				}
			}

			restart := func(lost ...api.Key) *planner {
				again := newPlanner(discard())
				again.lose(lost)
				for k, object := range w.objects {
					if placed, ok := p.placer.placements[k]; ok {
						object = placed.result()
					}
					if k != test.lost {
						again.put(object, w.specs[k])
					}
				}
				again.pass(epoch)
				return again
			}
			moved := func(p *planner) (names []string) {
				for k, placed := range p.placer.placements {
					if !slices.Equal(placed.status.Clusters, before[k.Name]) {
						names = append(names, k.Name)
					}
				}
				slices.Sort(names)
				return names
			}
			if got := moved(restart()); !slices.Equal(got, test.held) {
				t.Fatalf("without the object %v move, so the test checks nothing", got)
			}
			// The server restarts and cannot read one object.
			again := restart(test.lost)
			if got := moved(again); len(got) > 0 {
				t.Errorf("%v moved, want none", got)
			}
			for k, placed := range again.placer.placements {
				held := api.FindCondition(*api.ConditionsOf(again.snapshot(nil).withMoveHeld(placed.result(), epoch)), api.ConditionMoveHeld)
				if (held != nil) != slices.Contains(test.held, k.Name) {
					t.Errorf("%s: unexpected condition MoveHeld %v", k.Name, held)
				}
				if held != nil && test.lost.Kind == api.KindCluster && !strings.Contains(held.Message, `cluster "a1"`) {
					t.Errorf("%s: message %q, want it to name cluster a1", k.Name, held.Message)
				}
			}
			// The others still follow changes.
			again.remove(key(api.KindCluster, "", "b1"))
			again.pass(epoch)
			if got := moved(again); !slices.Equal(got, []string{"in-b"}) {
				t.Errorf("%v moved after the deletion of b1, want in-b", got)
			}
			// The object is deleted, and all decisions follow changes again.
			again.lose(nil)
			again.pass(epoch)
			if got, want := moved(again), append(slices.Clone(test.held), "in-b"); len(got) != len(want) {
				t.Errorf("%v moved in the end, want %v", got, want)
			}
			checkSettled(t, again, epoch)
		})
	}
}

// TestLostScoreHoldsDependentDecisions covers dependence through a prioritizer, through an expression, and none.
func TestLostScoreHoldsDependentDecisions(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*api.PlacementSpec)
		held   bool
	}{
		"a prioritizer": {byScore, true},
		"CEL predicate about scores": {func(s *api.PlacementSpec) {
			s.Predicates = []api.Predicate{{CEL: []string{`cluster.scores("s").exists(x, x.name == "a" && x.value > 50)`}}}
		}, true},
		"CEL predicate about labels": {func(s *api.PlacementSpec) {
			s.Predicates = []api.Predicate{{CEL: []string{`"zone" in cluster.metadata.labels`}}}
		}, false},
		"balance": {func(s *api.PlacementSpec) { s.Strategy, s.Metrics = api.StrategyPrioritizers, nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlanner(discard())
			w := newWorld()
			for _, object := range []api.Object{
				cluster("c1", map[string]string{"zone": "a"}), newScore("c1", 90, time.Time{}), newPlacement("web", 1, test.change),
			} {
				w.write(p, object)
			}
			p.pass(epoch)
			wantClusters(t, p, "first", "c1")
			lost := api.Key{Kind: api.KindPlacementScore, Namespace: "c1", Name: "s"}
			p.lose([]api.Key{lost})
			if got := p.lost.underPlacement(webOf(p)); (got == lost) != test.held {
				t.Errorf("waits for %q, want it held: %t", got, test.held)
			}
		})
	}
}
