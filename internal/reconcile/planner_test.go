package reconcile

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func ptr[T any](v T) *T { return &v }

// world creates objects the way a store would: every write of a spec has a new revision and generation.
type world struct {
	revision int64
	objects  map[api.Key]api.Object
	specs    map[api.Key]int64
	history  []api.Object // everything ever written
	shown    *shown
	last     stored     // after the last pass; see checkKilled
	second   *second    // follows this planner; see checkSecond
	writer   *api.Actor // of what is written
}

func newWorld() *world {
	return &world{objects: map[api.Key]api.Object{}, specs: map[api.Key]int64{}, shown: &shown{}}
}

func (w *world) write(p *planner, object api.Object) {
	object.SetDefaults()
	if errs := object.Validate(); errs.Err() != nil {
		panic(errs)
	}
	w.revision++
	key := api.KeyOf(object)
	meta := object.Meta()
	meta.UID = "uid-" + key.Path()
	meta.Generation = 1
	if was, ok := w.objects[key]; ok {
		meta.UID, meta.Generation = was.Meta().UID, was.Meta().Generation+1
	} else if _, again := w.specs[key]; again {
		meta.UID += fmt.Sprint("-", w.revision) // another object with the same name
	}
	meta.WrittenBy = w.writer
	w.objects[key], w.specs[key] = object, w.revision
	w.history = append(w.history, object)
	p.put(object, w.revision)
}

// writeMeasured writes the clusters c1, c2 and so on, each with a metric m1, m2 of its own that has a value.
func (w *world) writeMeasured(p *planner, values ...float64) {
	w.write(p, provider())
	for i, value := range values {
		w.write(p, metric(fmt.Sprintf("m%d", i+1), value))
	}
	for i := range values {
		w.write(p, cluster(fmt.Sprintf("c%d", i+1), nil, api.MetricRef{Name: fmt.Sprintf("m%d", i+1)}))
	}
}

func (w *world) remove(p *planner, key api.Key) {
	delete(w.objects, key)
	p.remove(key)
}

func cluster(name string, labels map[string]string, metrics ...api.MetricRef) *api.Cluster {
	return &api.Cluster{
		Metadata: api.Metadata{Name: name, Labels: labels},
		Spec:     api.ClusterSpec{Metrics: metrics},
	}
}

func metric(name string, value float64) *api.Metric {
	return &api.Metric{
		Metadata: api.Metadata{Name: name},
		Spec: api.MetricSpec{
			Min: ptr(0.0), Max: ptr(1.0), MetricsProvider: api.MetricProviderRef{Name: "p", Metric: name},
		},
		Status: api.MetricStatus{Value: &value},
	}
}

func provider() *api.MetricsProvider {
	return &api.MetricsProvider{
		Metadata: api.Metadata{Name: "p"},
		Spec:     api.MetricsProviderSpec{Type: api.ProviderStatic, Static: &api.StaticSpec{}},
	}
}

func newPlacement(name string, wanted int64, change ...func(*api.PlacementSpec)) *api.Placement {
	p := &api.Placement{
		Metadata: api.Metadata{Name: name, Namespace: "shop"},
		Spec:     api.PlacementSpec{RescheduleAfter: "0s"},
	}
	if wanted >= 0 {
		p.Spec.NumberOfClusters = &wanted
	}
	for _, c := range change {
		c(&p.Spec)
	}
	return p
}

// checkSettled checks that deciding every placement from scratch changes nothing, which means that no decision is
// stale.
func checkSettled(t interface{ Fatalf(string, ...any) }, p *planner, now time.Time) {
	checkRecords(t, p)
	for key, placed := range p.placer.placements {
		view := placement.NewView(p.fleet, placed.query, p.others(), nil)
		for row := range p.fleet.Slots() {
			if view.Mask.Has(row) != placed.class.view.Mask.Has(row) {
				t.Fatalf("%s: the mask of the class is stale in row %d: %v", key, row, placed.class.view.Mask.Has(row))
			}
		}
		present := placed.present()
		out := placement.Decide(p.fleet, placed.query, view, p.others(), present, now)
		object := *placed.object
		object.Status = *placed.status
		status, changed := placement.NewStatus(p.fleet, placed.query, view, &object.Metadata, &object.Status, out, now, func() string {
			if len(out.Choices) == 0 && len(present.Decisions) == 0 {
				return placement.Explain(p.fleet, placed.query, nil, p.others(), present, now).Sentence()
			}
			return placement.Explain(p.fleet, placed.query, nil, p.others(), present, now).Summary()
		})
		// The message of a placement with too few clusters may be outdated in the clusters that it names; the decision
		// may not. A negative steady weight counts only until the decision is made.
		if !out.Same && leavesItsClusters(placed.object) {
			continue
		}
		if !out.Same {
			t.Fatalf("%s is stale: has %v, a fresh decision is %v (%+v)", key, placed.status.Clusters, status.Clusters, changed)
		}
		if s := placed.sentence; s != nil && s.version >= placed.class.seen && !s.query.Reads().Any(columns.Clock) {
			if fits := placement.Sentence(p.fleet, s.query, p.others()); s.text != fits {
				t.Fatalf("%s has the message %q, want %q", key, s.text, fits)
			}
		}
		for i, group := range status.DecisionGroups {
			if len(placed.status.DecisionGroups) != len(status.DecisionGroups) || !slices.Equal(placed.status.DecisionGroups[i].Clusters, group.Clusters) {
				t.Fatalf("%s has the groups %v, want %v as in a fresh decision", key, placed.status.DecisionGroups, status.DecisionGroups)
			}
		}
		for _, c := range status.Conditions {
			if old := api.FindCondition(placed.status.Conditions, c.Type); old == nil || old.Status != c.Status || old.Reason != c.Reason {
				t.Fatalf("%s: condition %s is %+v, want %+v as in a fresh decision", key, c.Type, old, c)
			}
		}
		for name := range p.placer.occupants {
			if p.placer.occupants.has(name, placed) != contains(placed.status.Clusters, name) {
				t.Fatalf("%s: occupants of %s are out of step", key, name)
			}
		}
	}
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

// TestPlannerDecisionsEqualFreshOnes drives a planner with random changes and, after each pass, compares with deciding
// everything from scratch.
func TestPlannerDecisionsEqualFreshOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, p := newWorld(), newPlanner(discard())
		now := epoch
		w.write(p, provider())
		clusterName := rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("c%d", rapid.IntRange(0, 30).Draw(t, "cluster")) })
		metricName := rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("m%d", rapid.IntRange(0, 5).Draw(t, "metric")) })
		value := rapid.SampledFrom([]float64{0, 0.1, 0.25, 0.5, 0.5, 0.75, 1, 7})
		newCluster := func(t *rapid.T) *api.Cluster {
			c := cluster(clusterName.Draw(t, "name"), map[string]string{
				"zone": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "zone"),
			})
			for _, m := range rapid.SliceOfNDistinct(metricName, 0, 3, rapid.ID).Draw(t, "metrics") {
				c.Spec.Metrics = append(c.Spec.Metrics, api.MetricRef{Name: m, Weight: ptr(rapid.Float64Range(0.1, 3).Draw(t, "weight"))})
			}
			c.Spec.Paused = rapid.IntRange(0, 9).Draw(t, "paused") == 0
			if rapid.Bool().Draw(t, "sized") {
				c.Spec.Allocatable = api.Quantities{"cpu": api.Quantity(fmt.Sprint(rapid.IntRange(0, 8).Draw(t, "cpu")))}
				c.Spec.Capacity = c.Spec.Allocatable
			}
			c.Spec.Region = rapid.SampledFrom([]string{"", "eu", "us"}).Draw(t, "region")
			c.Status.KubernetesVersion = rapid.SampledFrom([]string{"", "v1.32.1", "v1.33.1+k3s1"}).Draw(t, "version")
			if rapid.IntRange(0, 5).Draw(t, "down") == 0 {
				c.Status.State = api.StateOffline
				if rapid.Bool().Draw(t, "automatic") {
					at := now.Add(-time.Duration(rapid.IntRange(0, 60).Draw(t, "since")) * time.Second)
					c.Status.Taints = []api.ClusterTaint{{Key: api.TaintUnreachable, Effect: api.EffectNoSelect, TimeAdded: &at}}
				}
			}
			if rapid.IntRange(0, 3).Draw(t, "tainted") == 0 {
				at := now.Add(-time.Duration(rapid.IntRange(0, 60).Draw(t, "added")) * time.Second)
				taint := api.Taint{Key: "k", Effect: rapid.SampledFrom(api.TaintEffects).Draw(t, "effect")}
				c.Spec.Taints = []api.Taint{taint}
				c.Status.Taints = append(c.Status.Taints, api.ClusterTaint{Key: "k", Effect: taint.Effect, TimeAdded: &at})
			}
			return c
		}
		t.Repeat(map[string]func(*rapid.T){
			"cluster": func(t *rapid.T) { w.write(p, newCluster(t)) },
			"several clusters": func(t *rapid.T) {
				for range rapid.IntRange(1, 25).Draw(t, "n") {
					w.write(p, newCluster(t))
				}
			},
			"no cluster": func(t *rapid.T) {
				w.remove(p, api.Key{Kind: api.KindCluster, Name: clusterName.Draw(t, "name")})
			},
			"metric": func(t *rapid.T) {
				m := metric(metricName.Draw(t, "name"), value.Draw(t, "value"))
				m.Spec.OnFailure = rapid.SampledFrom([]api.OnFailure{api.FailureExclude, api.FailureIgnore, api.FailureLastValue}).Draw(t, "on failure")
				if rapid.IntRange(0, 4).Draw(t, "failing") == 0 {
					at := now.Add(-time.Duration(rapid.IntRange(0, 90).Draw(t, "age")) * time.Second)
					m.Status.ObservedAt = &at
					m.Status.Conditions = []api.Condition{{
						Type: api.ConditionAvailable, Status: api.ConditionFalse, Reason: api.ReasonUnreachableMetricsProvider,
					}}
				}
				w.write(p, m)
			},
			"no metric": func(t *rapid.T) {
				w.remove(p, api.Key{Kind: api.KindMetric, Name: metricName.Draw(t, "name")})
			},
			"placement": func(t *rapid.T) {
				w.write(p, newPlacement(fmt.Sprintf("p%d", rapid.IntRange(0, 8).Draw(t, "placement")),
					rapid.Int64Range(-1, 4).Draw(t, "wanted"), func(s *api.PlacementSpec) {
						s.LabelConstraints = rapid.SampledFrom([][]string{nil, nil, {"zone is a"}, {"zone in (a, b)"}, {"zone != c"}}).Draw(t, "labels")
						s.KubernetesVersion = rapid.SampledFrom([]string{"", "", "", ">= 1.33", "!= 1.33.1"}).Draw(t, "versions")
						if rapid.IntRange(0, 4).Draw(t, "named") == 0 {
							s.ClusterNames = rapid.SliceOfN(clusterName, 1, 5).Draw(t, "names")
							s.ExcludeClusters = rapid.SliceOfN(clusterName, 0, 3).Draw(t, "excluded")
						}
						s.MetricConstraints = rapid.SampledFrom([][]string{nil, nil, {"m0 > 0.3"}, {"m1 <= 0.5"}}).Draw(t, "metrics")
						s.RescheduleAfter = rapid.SampledFrom([]api.Duration{"0s", "60s"}).Draw(t, "reschedule_after")
						s.MinImprovement = rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "min_improvement")
						s.Migration = ptr(rapid.IntRange(0, 4).Draw(t, "migration") > 0)
						if rapid.Bool().Draw(t, "requests") {
							s.ResourceRequests = api.Quantities{"cpu": rapid.SampledFrom([]api.Quantity{"1", "2500m"}).Draw(t, "cpu")}
						}
					}))
			},
			"prioritized placement": func(t *rapid.T) {
				w.write(p, newPlacement(fmt.Sprintf("q%d", rapid.IntRange(0, 8).Draw(t, "placement")),
					rapid.Int64Range(-1, 4).Draw(t, "wanted"), func(s *api.PlacementSpec) { prioritize(t, s) }))
			},
			"score": func(t *rapid.T) {
				score := &api.PlacementScore{
					Metadata: api.Metadata{Cluster: clusterName.Draw(t, "cluster"), Name: rapid.SampledFrom([]string{"s", "t"}).Draw(t, "name")},
					Spec:     api.PlacementScoreSpec{Scores: map[string]int64{"a": rapid.Int64Range(-2, 2).Draw(t, "a") * 50}},
				}
				if rapid.Bool().Draw(t, "expires") {
					until := now.Add(time.Duration(rapid.IntRange(-10, 90).Draw(t, "until")) * time.Second)
					score.Spec.ValidUntil = &until
				}
				w.write(p, score)
			},
			"no score": func(t *rapid.T) {
				w.remove(p, api.Key{Kind: api.KindPlacementScore, Namespace: clusterName.Draw(t, "cluster"), Name: "s"})
			},
			"set": func(t *rapid.T) {
				set := &api.ClusterSet{Metadata: api.Metadata{Name: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name")}}
				if rapid.Bool().Draw(t, "selects") {
					set.Spec.Selector = &api.LabelSelector{MatchLabels: map[string]string{"zone": rapid.SampledFrom([]string{"a", "b", "nowhere"}).Draw(t, "zone")}}
				} else {
					set.Spec.Clusters = rapid.SliceOfNDistinct(clusterName, 0, 4, rapid.ID).Draw(t, "clusters")
				}
				set.Spec.Namespaces = rapid.SampledFrom([][]string{nil, {"shop"}, {"other"}}).Draw(t, "namespaces")
				w.write(p, set)
			},
			"window":    func(t *rapid.T) { w.write(p, drawWindow(t, now)) },
			"no window": func(t *rapid.T) { w.remove(p, windowKey(t)) },
			"no set": func(t *rapid.T) {
				w.remove(p, api.Key{Kind: api.KindClusterSet, Name: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name")})
			},
			"no placement": func(t *rapid.T) {
				w.remove(p, api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: fmt.Sprintf("p%d", rapid.IntRange(0, 8).Draw(t, "placement"))})
			},
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 70).Draw(t, "seconds")) * time.Second)
			},
			"": func(t *rapid.T) {
				p.pass(now)
				checkSettled(t, p, now)
				checkKilled(t, w, p, now)
				checkFork(t, w, p, now)
				checkSecond(t, w, p, now)
			},
		})
	})
}

// leavesItsClusters reports whether the steady weight of a placement is negative.
func leavesItsClusters(p *api.Placement) bool {
	return p.Spec.PrioritizerPolicy != nil && slices.ContainsFunc(p.Spec.PrioritizerPolicy.Configurations, func(c api.PrioritizerConfig) bool {
		return c.Name == api.PrioritizerSteady && c.Weight != nil && *c.Weight < 0
	})
}

// checkKilled checks that the decisions of a planner after a pass are those of a server that was killed before this
// pass, when everything to be decided was already written, and started again.
func checkKilled(t checker, w *world, p *planner, now time.Time) {
	all := w.afterPass(p)
	defer func() { w.last = all }()
	asWritten := stored{}
	for key, object := range w.objects {
		if was := w.last[key]; isDecided(key.Kind) && was != nil && was.Meta().UID == object.Meta().UID {
			object = object.Copy()
			reflect.ValueOf(object.StatusPart()).Elem().Set(reflect.ValueOf(was.StatusPart()).Elem())
		}
		asWritten[key] = object
	}
	again, _ := replay(asWritten, p.started, now)
	for key, want := range all {
		if placed, ok := want.(*api.Placement); !isDecided(key.Kind) || ok && leavesItsClusters(placed) {
			continue
		}
		got := again.known(key).result()
		if k := decidedAs(key.Kind); !reflect.DeepEqual(k.at(got), k.at(want)) {
			t.Fatalf("%s: after a restart it is %+v, without %+v", key, got.StatusPart(), want.StatusPart())
		}
	}
}

// prioritize makes a spec one of the prioritizers strategy.
func prioritize(t *rapid.T, s *api.PlacementSpec) {
	s.Strategy = api.StrategyPrioritizers
	weight := func() *int64 { return ptr(rapid.Int64Range(-2, 3).Draw(t, "weight")) }
	s.PrioritizerPolicy = &api.PrioritizerPolicy{Mode: rapid.SampledFrom([]api.PrioritizerMode{api.ModeAdditive, api.ModeExact, api.ModeExact}).Draw(t, "mode")}
	for range rapid.IntRange(0, 3).Draw(t, "configurations") {
		c := rapid.SampledFrom([]api.PrioritizerConfig{
			{Type: api.PrioritizerBuiltin, Name: api.PrioritizerBalance},
			{Type: api.PrioritizerBuiltin, Name: api.PrioritizerSteady},
			{Type: api.PrioritizerBuiltin, Name: api.PrioritizerAllocatableCPU},
			{Type: api.PrioritizerBuiltin, Name: api.PrioritizerAvailableCPU},
			{Type: api.PrioritizerBuiltin, Name: api.PrioritizerSpread},
			{Type: api.PrioritizerAddon, ResourceName: "s", ScoreName: "a"},
			{Type: api.PrioritizerAddon, ResourceName: "t", ScoreName: "a"},
			{Type: api.PrioritizerMetric, Name: "m0"},
			{Type: api.PrioritizerMetric, Name: "m1"},
		}).Draw(t, "configuration")
		c.Weight = weight()
		s.PrioritizerPolicy.Configurations = append(s.PrioritizerPolicy.Configurations, c)
	}
	s.MinImprovement = rapid.SampledFrom([]float64{0, 0, 60}).Draw(t, "min_improvement")
	s.ClusterSets = rapid.SampledFrom([][]string{nil, nil, {"x"}, {"x", "y"}}).Draw(t, "sets")
	if rapid.IntRange(0, 2).Draw(t, "tolerates") == 0 {
		s.Tolerations = []api.Toleration{{
			Key: rapid.SampledFrom([]string{"k", "", api.TaintUnreachable}).Draw(t, "key"), Operator: api.TolerationExists,
			TolerationSeconds: rapid.SampledFrom([]*int64{nil, ptr(int64(30)), ptr(int64(90))}).Draw(t, "seconds"),
		}}
	}
	if rapid.IntRange(0, 3).Draw(t, "selects") == 0 {
		s.Predicates = []api.Predicate{
			{LabelSelector: &api.LabelSelector{MatchLabels: map[string]string{"zone": "a"}}},
			{CEL: []string{`cluster.scores("s").exists(x, x.value > 0)`}},
		}[:rapid.IntRange(1, 2).Draw(t, "predicates")]
	}
	if rapid.IntRange(0, 3).Draw(t, "spreads") == 0 {
		s.SpreadConstraints = []api.SpreadConstraint{{
			TopologyKey: "region", Type: api.SpreadField, MaxSkew: ptr(int64(1)),
			WhenUnsatisfiable: rapid.SampledFrom([]api.Unsatisfiable{api.DoNotSchedule, api.ScheduleAnyway}).Draw(t, "unsatisfiable"),
		}}
	}
	if rapid.IntRange(0, 3).Draw(t, "grouped") == 0 {
		s.DecisionStrategy = &api.DecisionStrategy{ClustersPerDecisionGroup: "2", DecisionGroups: []api.DecisionGroup{
			{Name: "canary", LabelSelector: &api.LabelSelector{MatchLabels: map[string]string{"zone": "a"}}},
		}}
	}
	if rapid.IntRange(0, 3).Draw(t, "requests") == 0 {
		s.ResourceRequests = api.Quantities{"cpu": "1"}
	}
}

// TestSpreadAmongThoseThatDoNot: a placement that spreads admits and rates clusters as
// one that does not, and yet has to hear of their places.
func TestSpreadAmongThoseThatDoNot(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, cluster("c1", nil))
	w.write(p, newPlacement("plain", 1))
	w.write(p, newPlacement("spread", 1, func(s *api.PlacementSpec) {
		s.SpreadConstraints = []api.SpreadConstraint{{
			TopologyKey: "region", Type: api.SpreadField, MaxSkew: ptr(int64(1)), WhenUnsatisfiable: api.DoNotSchedule,
		}}
	}))
	p.pass(epoch)
	if placed := p.placer.placements[api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "spread"}]; len(placed.status.Clusters) != 0 {
		t.Fatalf("clusters %v, want none: no cluster has a region", placed.status.Clusters)
	}
	located := cluster("c1", nil)
	located.Spec.Region = "eu"
	w.write(p, located)
	p.pass(epoch.Add(time.Second))
	checkSettled(t, p, epoch.Add(time.Second))
}

// TestPlannerLeavesTheRestUntouched counts what a change writes.
func TestPlannerLeavesTheRestUntouched(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, provider())
	for i := range 20 {
		name := fmt.Sprintf("m%d", i)
		w.write(p, metric(name, 0.5))
		w.write(p, cluster(fmt.Sprintf("c%d", i), map[string]string{"group": fmt.Sprint(i % 4)}, api.MetricRef{Name: name}))
	}
	for g := range 4 {
		w.write(p, newPlacement(fmt.Sprintf("g%d", g), 1, func(s *api.PlacementSpec) {
			s.LabelConstraints = []string{fmt.Sprintf("group is %d", g)}
		}))
	}
	if n := len(p.pass(epoch)); n != 4 {
		t.Fatalf("first pass wrote %d placements, want 4", n)
	}
	if n := len(p.pass(epoch.Add(time.Hour))); n != 0 {
		t.Fatalf("a pass without a change wrote %d placements", n)
	}
	w.write(p, metric("m5", 0.9)) // c5 is in group 1
	writes := p.pass(epoch.Add(time.Hour))
	if len(writes) != 1 || placedOf(writes[0]).query.Key.Name != "g1" || !writes[0].moved {
		t.Fatalf("a better cluster in group 1 wrote %v", writes)
	}
	if got := placedOf(writes[0]).status.Clusters; len(got) != 1 || got[0] != "c5" {
		t.Fatalf("g1 went to %v, want c5", got)
	}
	w.write(p, metric("m6", 0.1)) // worse, and chosen by none or few: c6 is in group 2
	for _, placed := range p.placer.placements {
		if placed.query.Key.Name != "g2" && placed.stale {
			t.Fatalf("%s became stale because of a change in group 2", placed.query.Key)
		}
	}
}

// TestPlannerWakesAtTheInstant: a better cluster appears while the decision is
// young; the move comes when reschedule_after is over, without another change.
func TestPlannerWakesAtTheInstant(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.writeMeasured(p, 0.5, 0.2)
	w.write(p, newPlacement("web", 1, func(s *api.PlacementSpec) { s.RescheduleAfter = "60s" }))
	p.pass(epoch)
	if at := p.nextAt(); !at.IsZero() {
		t.Fatalf("nextAt() = %s, want none: nothing better exists", at)
	}
	w.write(p, metric("m2", 0.9))
	if n := len(p.pass(epoch.Add(10 * time.Second))); n != 0 {
		t.Fatalf("the decision is 10 s old, but was written %d times", n)
	}
	if at, want := p.nextAt(), epoch.Add(60*time.Second); !at.Equal(want) {
		t.Fatalf("nextAt() = %s, want %s", at, want)
	}
	writes := p.pass(epoch.Add(60 * time.Second))
	if len(writes) != 1 || placedOf(writes[0]).status.Clusters[0] != "c2" {
		t.Fatalf("writes when reschedule_after ends: %v, want a move to c2", writes)
	}
}

// TestPlannerAgesMetrics checks that the last value of a metric whose provider is down is used until max_age. Its cluster
// is not left even then: that nothing is known moves nothing.
func TestPlannerAgesMetrics(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, provider())
	w.write(p, metric("m1", 0.9))
	w.write(p, metric("m2", 0.2))
	w.write(p, cluster("c1", nil, api.MetricRef{Name: "m1"}))
	w.write(p, cluster("c2", nil, api.MetricRef{Name: "m2"}))
	w.write(p, newPlacement("web", 1))
	p.pass(epoch)
	failing := metric("m1", 0.9)
	failing.Spec.MaxAge = "30s"
	failing.Status.ObservedAt = ptr(epoch)
	failing.Status.Conditions = []api.Condition{{Type: api.ConditionAvailable, Status: api.ConditionFalse, Reason: api.ReasonUnreachableMetricsProvider}}
	w.write(p, failing)
	if n := len(p.pass(epoch.Add(29 * time.Second))); n != 0 {
		t.Fatalf("the last good value is 29 s old, but the decision was written %d times", n)
	}
	if at, want := p.nextAt(), epoch.Add(30*time.Second); !at.Equal(want) {
		t.Fatalf("nextAt() = %s, want %s", at, want)
	}
	writes := p.pass(epoch.Add(30 * time.Second))
	if len(writes) != 1 || placedOf(writes[0]).status.Clusters[0] != "c1" {
		t.Fatalf("writes at max_age: %v, want a condition of a decision for c1", writes)
	}
	unread := api.FindCondition(placedOf(writes[0]).status.Conditions, api.ConditionMetricsUnread)
	if unread == nil || unread.Status != api.ConditionTrue || !unread.LastTransitionAt.Equal(epoch.Add(30*time.Second)) {
		t.Errorf("condition %+v, want one that says since when the metric cannot be read", unread)
	}
	w.write(p, metric("m1", 0.1))
	writes = p.pass(epoch.Add(40 * time.Second))
	if len(writes) != 1 || placedOf(writes[0]).status.Clusters[0] != "c2" || api.FindCondition(placedOf(writes[0]).status.Conditions, api.ConditionMetricsUnread) != nil {
		t.Errorf("writes once it can be read again: %v, want a move to c2", writes)
	}
}

// TestPlannerSharesCapacity checks that placements that compete for the last capacity are decided by name, and that
// capacity that becomes free is used at once.
func TestPlannerSharesCapacity(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	c := cluster("c1", nil)
	c.Spec.Allocatable = api.Quantities{"cpu": "3"}
	w.write(p, c)
	ask := func(s *api.PlacementSpec) { s.ResourceRequests = api.Quantities{"cpu": "2"} }
	w.write(p, newPlacement("b", 1, ask))
	w.write(p, newPlacement("a", 1, ask))
	p.pass(epoch)
	checkSettled(t, p, epoch)
	a := p.placer.placements[api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "a"}]
	b := p.placer.placements[api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "b"}]
	if len(a.status.Clusters) != 1 || len(b.status.Clusters) != 0 {
		t.Fatalf("a is on %v, b is on %v, want only a placed", a.status.Clusters, b.status.Clusters)
	}
	scheduled := api.FindCondition(b.status.Conditions, api.ConditionScheduled)
	if want := "0 of 1 cluster fit: 1 has less than 2 of cpu available"; scheduled.Message != want {
		t.Errorf("message %q, want %q", scheduled.Message, want)
	}
	w.remove(p, a.query.Key)
	writes := p.pass(epoch.Add(time.Second))
	if len(writes) != 1 || len(b.status.Clusters) != 1 {
		t.Fatalf("b is on %v after a was deleted, with %d writes, want one cluster and one write", b.status.Clusters, len(writes))
	}
	// A capacity report that is newer than the decision includes it.
	reported := *c
	reported.Status.Allocated = api.Quantities{"cpu": "2"}
	reported.Status.CapacityReportedAt = ptr(epoch.Add(2 * time.Second))
	w.write(p, &reported)
	p.pass(epoch.Add(2 * time.Second))
	row, _ := p.fleet.Row("c1")
	if got := ledger.Available(p.fleet, p.reserved, row)["cpu"]; got != "1" {
		t.Errorf("%s available after the report, want 1", got)
	}
	if len(b.status.Clusters) != 1 {
		t.Errorf("b lost its cluster because of the report")
	}
}

// TestPlannerRemembersClustersThatRise covers a cluster that rises without reaching the chosen one. Nothing happens
// then, but it is the next best when the chosen one falls.
func TestPlannerRemembersClustersThatRise(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, provider())
	for name, value := range map[string]float64{"1": 0.9, "2": 0.2, "3": 0.1} {
		w.write(p, metric("m"+name, value))
		w.write(p, cluster("c"+name, nil, api.MetricRef{Name: "m" + name}))
	}
	w.write(p, newPlacement("web", 1))
	p.pass(epoch)
	w.write(p, metric("m3", 0.6))
	if n := len(p.pass(epoch)); n != 0 {
		t.Fatalf("c3 rose only to 0.6, but %d decisions were written", n)
	}
	w.write(p, metric("m1", 0.4)) // above c2, below c3
	writes := p.pass(epoch)
	if len(writes) != 1 || placedOf(writes[0]).status.Clusters[0] != "c3" {
		t.Fatalf("c1 fell below c3: %d writes, want a move to c3", len(writes))
	}
}

// TestPlannerIsNotSetBackByAnOlderStatus: the store's answer to one decision
// arrives after the next was made. Only the conditions differ.
func TestPlannerIsNotSetBackByAnOlderStatus(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, newPlacement("web", 1))
	first := p.pass(epoch)[0]
	older := *placedOf(first).object
	older.Status = *placedOf(first).status
	if got, want := older.Status.Conditions[0].Message, "0 of 0 clusters fit"; got != want {
		t.Errorf("without clusters the message is %q, want %q", got, want)
	}
	w.write(p, &api.Cluster{Metadata: api.Metadata{Name: "c1"}, Spec: api.ClusterSpec{Paused: true}})
	second := p.pass(epoch)
	want := placedOf(second[0]).status.Conditions[0].Message
	if want == older.Status.Conditions[0].Message {
		t.Fatalf("the second decision has the same message as the first: %q", want)
	}
	p.put(&older, first.specRevision)
	if got := placedOf(first).status.Conditions[0].Message; got != want {
		t.Errorf("message in the planner %q, want %q as decided", got, want)
	}
}

// placedOf returns the placement of a write.
func placedOf(w write) *placementDecision {
	placed, _ := w.decision.(*placementDecision)
	return placed
}
