package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// rated creates clusters with one placement score "s/a" each.
func rated(scores map[string]int64) *enginetest.World {
	w := enginetest.NewWorld()
	for name, score := range scores {
		w.Clusters[name] = &api.Cluster{Metadata: api.Metadata{Name: name, UID: "uid-" + name}}
		s := &api.PlacementScore{Metadata: api.Metadata{Cluster: name, Name: "s"}, Spec: api.PlacementScoreSpec{Scores: map[string]int64{"a": score}}}
		w.Scores[api.KeyOf(s)] = s
	}
	return w
}

// byScore returns a placement ranked by "s/a" and additional configurations.
func byScore(name string, wanted int64, mode api.PrioritizerMode, more ...api.PrioritizerConfig) *api.Placement {
	p := &api.Placement{
		Metadata: api.Metadata{Name: name, Namespace: "shop", UID: "uid-" + name, Generation: 1},
		Spec: api.PlacementSpec{
			NumberOfClusters: &wanted, Strategy: api.StrategyPrioritizers,
			PrioritizerPolicy: &api.PrioritizerPolicy{Mode: mode, Configurations: append([]api.PrioritizerConfig{
				{Type: api.PrioritizerAddon, ResourceName: "s", ScoreName: "a", Weight: new(int64(1))},
			}, more...)},
		},
	}
	p.SetDefaults()
	return p
}

// chosenBy decides and returns the names of the clusters, best first.
func chosenBy(f *columns.Fleet, q *Query, others ledger.Others, present Present) []string {
	var names []string
	for _, c := range Decide(f, q, NewView(f, q, others, nil), others, present, f.Now()).Choices {
		names = append(names, f.Name(c.Row))
	}
	return names
}

// settledOn returns an old decision that answers its spec.
func settledOn(names ...string) Present {
	p := Present{Answered: true, ScheduledAt: enginetest.Epoch.Add(-time.Hour)}
	for _, name := range names {
		p.Decisions = append(p.Decisions, api.Decision{Cluster: name})
	}
	return p
}

// TestBalancePlacesAndDoesNotMove checks that the decisions of others affect where a new placement goes, but do not
// move one that has its cluster.
func TestBalancePlacesAndDoesNotMove(t *testing.T) {
	w := rated(map[string]int64{"a": 100, "b": 50})
	f := w.Fleet()
	load := ledger.NewLoad()
	load.Sync(f, columns.Delta{Rows: []int{0, 1}})
	q := enginetest.Compile(t, NewQuery, byScore("web", 1, api.ModeExact, api.PrioritizerConfig{Type: api.PrioritizerBuiltin, Name: api.PrioritizerBalance, Weight: new(int64(1))}))
	if got := chosenBy(f, q, ledger.Others{Load: load}, Present{}); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("chosen %v without load, want a", got)
	}
	for range 5 {
		load.Add(f, "a")
	}
	if got := chosenBy(f, q, ledger.Others{Load: load}, Present{}); !slices.Equal(got, []string{"b"}) {
		t.Errorf("a new placement goes to %v, want b: a scores 100 - 100, b 50 + 100", got)
	}
	if got := chosenBy(f, q, ledger.Others{Load: load}, settledOn("a")); !slices.Equal(got, []string{"a"}) {
		t.Errorf("a settled placement on a moved to %v because of the load of others", got)
	}
	if got := chosenBy(f, q, ledger.Others{Load: load}, settledOn("b")); !slices.Equal(got, []string{"b"}) {
		t.Errorf("a settled placement on b moved to %v, which scores more itself, but has more load", got)
	}
	changed := settledOn("a")
	changed.Answered = false
	if got := chosenBy(f, q, ledger.Others{Load: load}, changed); !slices.Equal(got, []string{"b"}) {
		t.Errorf("chosen %v after a change of the spec, want b", got)
	}
	e := Explain(f, q, nil, ledger.Others{Load: load}, settledOn("a"), f.Now())
	if e.kept != keptByBalance {
		t.Errorf("kept by %q, want it kept by balance", e.kept)
	}
}

// TestNegativeSteadyMovesNothing checks that a negative steady does not move a decision as soon as it is made.
func TestNegativeSteadyMovesNothing(t *testing.T) {
	f := rated(map[string]int64{"a": 10, "b": 10}).Fleet()
	q := enginetest.Compile(t, NewQuery, byScore("web", 1, api.ModeExact, api.PrioritizerConfig{Type: api.PrioritizerBuiltin, Name: api.PrioritizerSteady, Weight: new(int64(-5))}))
	if got := chosenBy(f, q, ledger.Others{}, settledOn("a")); !slices.Equal(got, []string{"a"}) {
		t.Errorf("moved to %v, want it to stay on a", got)
	}
}

func TestPrioritizerTies(t *testing.T) {
	w := rated(map[string]int64{"a": 1, "b": 1, "c": 1, "d": 1})
	w.Clusters["a"].Spec.Taints = []api.Taint{{Key: "k", Effect: api.EffectPreferNoSelect}}
	f := w.Fleet()
	for _, c := range []struct {
		name    string
		present Present
		want    []string
	}{
		{"by name, tainted ones last", Present{}, []string{"b", "c"}},
		{"present cluster first", settledOn("d"), []string{"b", "d"}},
		{"present cluster first, though tainted", settledOn("a"), []string{"b", "a"}},
	} {
		if got := chosenBy(f, enginetest.Compile(t, NewQuery, byScore("web", 2, api.ModeExact)), ledger.Others{}, c.present); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// TestUnknownMetricKeepsTheDecision checks that a policy that names a deleted metric is misconfigured, and that its
// decision stays.
func TestUnknownMetricKeepsTheDecision(t *testing.T) {
	f := rated(map[string]int64{"a": 100, "b": 0}).Fleet()
	p := byScore("web", 1, api.ModeExact, api.PrioritizerConfig{Type: api.PrioritizerMetric, Name: "gone", Weight: new(int64(1))})
	q := enginetest.Compile(t, NewQuery, p)
	view := NewView(f, q, ledger.Others{}, nil)
	out := Decide(f, q, view, ledger.Others{}, settledOn("b"), f.Now())
	if f.Name(out.Choices[0].Row) != "b" || out.kept != keptByMisconfiguration {
		t.Errorf("chosen %s, kept by %q; want b, kept because of the misconfiguration", f.Name(out.Choices[0].Row), out.kept)
	}
	status, _ := NewStatus(f, q, view, &p.Metadata, &p.Status, out, f.Now(), func() string { return "" })
	c := api.FindCondition(status.Conditions, api.ConditionMisconfigured)
	if c.Status != api.ConditionTrue || c.Reason != api.ReasonMisconfigured || !strings.Contains(c.Message, "gone") {
		t.Errorf("condition %+v, want Misconfigured, with the name gone", c)
	}
}

func TestDivide(t *testing.T) {
	w := enginetest.NewWorld()
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		w.Clusters[name] = &api.Cluster{Metadata: api.Metadata{Name: name, Labels: map[string]string{"cloud": map[string]string{"a": "y", "c": "x", "d": "y", "e": "x"}[name]}}}
	}
	f := w.Fleet()
	canary := []api.DecisionGroup{{Name: "canary", LabelSelector: &api.LabelSelector{MatchLabels: map[string]string{"cloud": "x"}}}}
	twice := append(canary[:1:1], api.DecisionGroup{Name: "canary", LabelSelector: &api.LabelSelector{MatchLabels: map[string]string{"cloud": "y"}}})
	ranked := []string{"e", "d", "c", "b", "a"}
	for _, c := range []struct {
		name     string
		strategy *api.DecisionStrategy
		chosen   []string
		want     string
	}{
		{"no strategy", nil, ranked, ""},
		{"all in one group", &api.DecisionStrategy{ClustersPerDecisionGroup: "100%"}, ranked, "0 :[e d c b a] "},
		{"groups by number", &api.DecisionStrategy{ClustersPerDecisionGroup: "2"}, ranked, "0 :[e d] 1 :[c b] 2 :[a] "},
		{"a percentage rounds up", &api.DecisionStrategy{ClustersPerDecisionGroup: "25%"}, ranked, "0 :[e d] 1 :[c b] 2 :[a] "},
		{"named groups first, ranked", &api.DecisionStrategy{ClustersPerDecisionGroup: "100%", DecisionGroups: canary}, ranked, "0 canary:[e c] 1 :[d b a] "},
		{"a named group is split, too", &api.DecisionStrategy{ClustersPerDecisionGroup: "1", DecisionGroups: canary}, []string{"e", "c", "a"}, "0 canary:[e] 1 canary:[c] 2 :[a] "},
		{"two groups of one name", &api.DecisionStrategy{ClustersPerDecisionGroup: "100%", DecisionGroups: twice}, ranked, "0 canary:[e c] 1 canary:[d a] 2 :[b] "},
		{"no clusters chosen", &api.DecisionStrategy{ClustersPerDecisionGroup: "1"}, nil, "0 :[] "},
		{"group larger than the decision", &api.DecisionStrategy{ClustersPerDecisionGroup: "7"}, []string{"a"}, "0 :[a] "},
	} {
		got := ""
		for _, g := range divide(f, c.strategy, c.chosen) {
			got += fmt.Sprintf("%d %s:%v ", g.Index, g.Name, g.Clusters)
			if g.ClusterCount != int64(len(g.Clusters)) {
				t.Errorf("%s: group %d counts %d", c.name, g.Index, g.ClusterCount)
			}
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestNearestMiss(t *testing.T) {
	w := enginetest.NewWorld()
	add := func(name, tier, region string, paused bool) {
		w.Clusters[name] = &api.Cluster{Metadata: api.Metadata{Name: name, Labels: map[string]string{"tier": tier, "region": region}}, Spec: api.ClusterSpec{Paused: paused}}
	}
	add("a", "gold", "eu", true)    // rejected only by pause
	add("b", "silver", "eu", false) // rejected only by the tier
	add("c", "silver", "eu", false) // rejected only by the tier
	add("d", "silver", "us", false) // rejected by both labels
	add("e", "silver", "us", true)  // rejected by everything
	f := w.Fleet()
	p := &api.Placement{Metadata: api.Metadata{Name: "web", Namespace: "shop"}, Spec: api.PlacementSpec{LabelConstraints: []string{"region is eu", "tier is gold"}}}
	p.SetDefaults()
	miss := Explain(f, enginetest.Compile(t, NewQuery, p), nil, ledger.Others{}, Present{}, f.Now()).NearestMiss()
	if want := (api.NearestMiss{Filter: "label_constraints", On: "tier is gold", Count: 2}); miss == nil || *miss != want {
		t.Errorf("nearest miss %+v, want %+v", miss, want)
	}
	w.Clusters = map[string]*api.Cluster{}
	add("f", "gold", "eu", false)
	f = w.Fleet()
	if miss := Explain(f, enginetest.Compile(t, NewQuery, p), nil, ledger.Others{}, Present{}, f.Now()).NearestMiss(); miss != nil {
		t.Errorf("nearest miss %+v, want none: everything fits", miss)
	}
	w.Clusters["f"].Spec.Taints = []api.Taint{{Key: "disk", Value: "full", Effect: api.EffectNoSelect}}
	f = w.Fleet()
	miss = Explain(f, enginetest.Compile(t, NewQuery, p), nil, ledger.Others{}, Present{}, f.Now()).NearestMiss()
	if miss == nil || miss.Filter != "taints" || !strings.Contains(miss.On, "disk") || miss.Count != 1 {
		t.Errorf("nearest miss %+v, want the taint", miss)
	}
	w.Clusters["f"].Spec.Taints = append(w.Clusters["f"].Spec.Taints, api.Taint{Key: "gpu", Effect: api.EffectNoSelect})
	f = w.Fleet()
	if miss := Explain(f, enginetest.Compile(t, NewQuery, p), nil, ledger.Others{}, Present{}, f.Now()).NearestMiss(); miss != nil {
		t.Errorf("nearest miss %+v, want none: tolerating one of two taints admits no cluster", miss)
	}
}

// TestConditionsSayWhatOCMSays checks the precedence of reasons: the first that applies wins.
func TestConditionsSayWhatOCMSays(t *testing.T) {
	w := rated(map[string]int64{"a": 1, "b": 2})
	w.Sets["empty"] = &api.ClusterSet{Metadata: api.Metadata{Name: "empty"}, Spec: api.ClusterSetSpec{Clusters: []string{"nobody"}, Namespaces: []string{"*"}}}
	w.Sets["other"] = &api.ClusterSet{Metadata: api.Metadata{Name: "other"}, Spec: api.ClusterSetSpec{Selector: &api.LabelSelector{}, Namespaces: []string{"bank"}}}
	f := w.Fleet()
	for _, c := range []struct {
		name            string
		wanted          int64
		sets            []string
		predicates      []api.Predicate
		status          api.ConditionStatus
		reason, message string
	}{
		{"as many as wanted", 2, nil, nil, "True", "AllDecisionsScheduled", "All cluster decisions scheduled"},
		{"too few", 5, nil, nil, "False", "NotAllDecisionsScheduled", "3 cluster decisions unscheduled"},
		{"no matches", 1, nil, []api.Predicate{{LabelSelector: &api.LabelSelector{MatchLabels: map[string]string{"x": "y"}}}}, "False", "NoManagedClusterMatched", "No ManagedCluster matches any of the cluster predicate"},
		{"set of another namespace", 1, []string{"other", "gone"}, nil, "False", "NoIntersection", "None of ManagedClusterSets [gone,other] is bound to placement namespace"},
		{"empty set", 1, []string{"empty"}, nil, "False", "AllManagedClusterSetsEmpty", "All ManagedClusterSets [empty] have no member ManagedCluster"},
	} {
		p := byScore("web", c.wanted, api.ModeAdditive)
		p.Spec.ClusterSets, p.Spec.Predicates = c.sets, c.predicates
		q := enginetest.Compile(t, NewQuery, p)
		view := NewView(f, q, ledger.Others{}, nil)
		status, _ := NewStatus(f, q, view, &p.Metadata, &p.Status, Decide(f, q, view, ledger.Others{}, Present{}, f.Now()), f.Now(), func() string { return "why" })
		got := api.FindCondition(status.Conditions, api.ConditionSatisfied)
		if got.Status != c.status || got.Reason != c.reason || got.Message != c.message {
			t.Errorf("%s: got %+v", c.name, got)
		}
		if m := api.FindCondition(status.Conditions, api.ConditionMisconfigured); m.Reason != "Succeedconfigured" || m.Message != "Placement configurations check pass" {
			t.Errorf("%s: got %+v", c.name, m)
		}
	}
}

func TestSpreadHoldsAndExplains(t *testing.T) {
	w := rated(map[string]int64{"a1": 90, "a2": 80, "a3": 70, "b1": 10})
	for name, c := range w.Clusters {
		c.Spec.Region = name[:1]
	}
	f := w.Fleet()
	p := byScore("web", 3, api.ModeExact)
	p.Spec.SpreadConstraints = []api.SpreadConstraint{{TopologyKey: api.SpreadRegion, Type: api.SpreadField, MaxSkew: new(int64(1)), WhenUnsatisfiable: api.DoNotSchedule}}
	q := enginetest.Compile(t, NewQuery, p)
	if got := chosenBy(f, q, ledger.Others{}, Present{}); !slices.Equal(got, []string{"a1", "a2", "b1"}) {
		t.Errorf("chosen %v, want two of a and one of b, best first", got)
	}
	e := Explain(f, q, nil, ledger.Others{}, Present{}, f.Now()).Render()
	for _, c := range e.Candidates {
		if want := "region a has 2 of the chosen clusters, the emptiest 1: one more would exceed max_skew 1"; c.Cluster == "a3" && c.Reason != want {
			t.Errorf("a3: %q, want %q", c.Reason, want)
		}
	}
	// A new region breaks the rule: as few clusters as possible move.
	w.Clusters["c1"] = &api.Cluster{Metadata: api.Metadata{Name: "c1"}, Spec: api.ClusterSpec{Region: "c"}}
	f = w.Fleet()
	if got := chosenBy(f, q, ledger.Others{}, settledOn("a1", "a2", "b1")); !slices.Equal(got, []string{"a1", "b1", "c1"}) {
		t.Errorf("chosen %v when a region was added, want c1 in place of a2", got)
	}
	if got := chosenBy(f, q, ledger.Others{}, Present{}); !slices.Equal(got, []string{"a1", "b1", "c1"}) {
		t.Errorf("fresh decision %v, want one cluster of each region", got)
	}
}

// TestManySeatsMove checks a decision for more clusters than the ranking lists as challengers: it moves to all better
// ones.
func TestManySeatsMove(t *testing.T) {
	for _, n := range []int{5, manySeats, manySeats + 30} {
		scores := map[string]int64{}
		var before, want []string
		for i := range n {
			scores[fmt.Sprintf("old%03d", i)] = -1
			before = append(before, fmt.Sprintf("old%03d", i))
			scores[fmt.Sprintf("new%03d", i)] = int64(100 - i%7)
		}
		for name := range scores {
			if scores[name] > 0 {
				want = append(want, name)
			}
		}
		slices.SortFunc(want, func(a, b string) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b)) })
		f := rated(scores).Fleet()
		q := enginetest.Compile(t, NewQuery, byScore("web", int64(n), api.ModeExact, api.PrioritizerConfig{Type: api.PrioritizerBuiltin, Name: api.PrioritizerBalance, Weight: new(int64(1))}))
		if got := chosenBy(f, q, ledger.Others{}, settledOn(before...)); !slices.Equal(got, want) {
			t.Errorf("%d seats: %v, want %v", n, got, want)
		}
	}
}

// TestKeptDecisionMeetsHardSpread moves clusters to other regions under a decision that keeps its clusters.
func TestKeptDecisionMeetsHardSpread(t *testing.T) {
	for _, tt := range []struct {
		name         string
		wanted       int64
		regions      map[string]string // now
		present, has []string
	}{
		{"one moved to the other region, and another is there", 2, map[string]string{"a1": "b", "b1": "b", "d1": "a"}, []string{"a1", "b1"}, []string{"a1", "d1"}},
		{"no other region has any", 2, map[string]string{"a1": "b", "b1": "b", "d1": "b"}, []string{"a1", "b1"}, []string{"a1", "b1"}},
		{"two must go", 3, map[string]string{"a1": "a", "a2": "a", "a3": "a", "b1": "b", "c1": "c"}, []string{"a1", "a2", "a3"}, []string{"a1", "b1", "c1"}},
		{"no region any more", 2, map[string]string{"a1": "", "b1": "b", "d1": "a"}, []string{"a1", "b1"}, []string{"b1", "d1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			scores := map[string]int64{}
			for name := range tt.regions {
				scores[name] = 10
			}
			w := rated(scores)
			for name, c := range w.Clusters {
				c.Spec.Region = tt.regions[name]
			}
			f := w.Fleet()
			p := byScore("web", tt.wanted, api.ModeExact)
			p.Spec.SpreadConstraints = []api.SpreadConstraint{{TopologyKey: api.SpreadRegion, Type: api.SpreadField, MaxSkew: new(int64(1)), WhenUnsatisfiable: api.DoNotSchedule}}
			for _, migration := range []bool{true, false} {
				p.Spec.Migration = new(migration)
				got := chosenBy(f, enginetest.Compile(t, NewQuery, p), ledger.Others{}, settledOn(tt.present...))
				slices.Sort(got)
				if !slices.Equal(got, tt.has) {
					t.Errorf("migration %v: chosen %v, want %v", migration, got, tt.has)
				}
			}
		})
	}
}
