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

// rated is a fleet of clusters with one placement score "s/a" each.
func rated(scores map[string]int64) *enginetest.World {
	w := enginetest.NewWorld()
	for name, score := range scores {
		w.Clusters[name] = &api.Cluster{Metadata: api.Metadata{Name: name, UID: "uid-" + name}}
		s := &api.PlacementScore{Metadata: api.Metadata{Cluster: name, Name: "s"}, Spec: api.PlacementScoreSpec{Scores: map[string]int64{"a": score}}}
		w.Scores[api.KeyOf(s)] = s
	}
	return w
}

// byScore is a placement ranked by "s/a" and what the configurations add.
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

// chosenBy decides and names the clusters, best first.
func chosenBy(f *columns.Fleet, q *Query, others ledger.Others, present Present) []string {
	var names []string
	for _, c := range Decide(f, q, NewView(f, q, others, nil), others, present, f.Now()).Choices {
		names = append(names, f.Name(c.Row))
	}
	return names
}

// settledOn is an old decision that answers its spec.
func settledOn(names ...string) Present {
	p := Present{Answered: true, ScheduledAt: enginetest.Epoch.Add(-time.Hour)}
	for _, name := range names {
		p.Decisions = append(p.Decisions, api.Decision{Cluster: name})
	}
	return p
}

// TestBalancePlacesAndDoesNotMove: what others decide says where a new placement
// goes; one that has its cluster stays, however many follow it there.
func TestBalancePlacesAndDoesNotMove(t *testing.T) {
	w := rated(map[string]int64{"a": 100, "b": 50})
	f := w.Fleet()
	load := ledger.NewLoad()
	load.Sync(f, columns.Delta{Rows: []int{0, 1}})
	q := enginetest.Compile(t, NewQuery, byScore("web", 1, api.ModeExact, api.PrioritizerConfig{Type: api.PrioritizerBuiltin, Name: api.PrioritizerBalance, Weight: new(int64(1))}))
	if got := chosenBy(f, q, ledger.Others{Load: load}, Present{}); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("with nobody about: %v", got)
	}
	for range 5 {
		load.Add(f, "a")
	}
	if got := chosenBy(f, q, ledger.Others{Load: load}, Present{}); !slices.Equal(got, []string{"b"}) {
		t.Errorf("a new placement goes to %v: a has 100 - 100, b 50 + 100", got)
	}
	if got := chosenBy(f, q, ledger.Others{Load: load}, settledOn("a")); !slices.Equal(got, []string{"a"}) {
		t.Errorf("a settled placement was moved to %v by what others decided", got)
	}
	if got := chosenBy(f, q, ledger.Others{Load: load}, settledOn("b")); !slices.Equal(got, []string{"b"}) {
		t.Errorf("on b: moved to %v, which scores more itself but is crowded", got)
	}
	changed := settledOn("a")
	changed.Answered = false
	if got := chosenBy(f, q, ledger.Others{Load: load}, changed); !slices.Equal(got, []string{"b"}) {
		t.Errorf("a changed spec is decided anew: %v", got)
	}
	e := Explain(f, q, nil, ledger.Others{Load: load}, settledOn("a"), f.Now())
	if e.kept != keptByBalance {
		t.Errorf("the explanation does not say why a is kept: %q", e.kept)
	}
}

// TestNegativeSteadyMovesNothing: with it every decision would leave its cluster
// as soon as it is made.
func TestNegativeSteadyMovesNothing(t *testing.T) {
	f := rated(map[string]int64{"a": 10, "b": 10}).Fleet()
	q := enginetest.Compile(t, NewQuery, byScore("web", 1, api.ModeExact, api.PrioritizerConfig{Type: api.PrioritizerBuiltin, Name: api.PrioritizerSteady, Weight: new(int64(-5))}))
	if got := chosenBy(f, q, ledger.Others{}, settledOn("a")); !slices.Equal(got, []string{"a"}) {
		t.Errorf("moved to %v", got)
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
		{"the present cluster first", settledOn("d"), []string{"b", "d"}},
		{"also a tainted one", settledOn("a"), []string{"b", "a"}},
	} {
		if got := chosenBy(f, enginetest.Compile(t, NewQuery, byScore("web", 2, api.ModeExact)), ledger.Others{}, c.present); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestUnknownMetricKeepsTheDecision: a policy that names a metric which is gone
// is misconfigured, and what is decided stays.
func TestUnknownMetricKeepsTheDecision(t *testing.T) {
	f := rated(map[string]int64{"a": 100, "b": 0}).Fleet()
	p := byScore("web", 1, api.ModeExact, api.PrioritizerConfig{Type: api.PrioritizerMetric, Name: "gone", Weight: new(int64(1))})
	q := enginetest.Compile(t, NewQuery, p)
	view := NewView(f, q, ledger.Others{}, nil)
	out := Decide(f, q, view, ledger.Others{}, settledOn("b"), f.Now())
	if f.Name(out.Choices[0].Row) != "b" || out.kept != keptByMisconfiguration {
		t.Errorf("moved to %s, held %q", f.Name(out.Choices[0].Row), out.kept)
	}
	status, _ := NewStatus(f, q, view, &p.Metadata, &p.Status, out, f.Now(), func() string { return "" })
	c := api.FindCondition(status.Conditions, api.ConditionMisconfigured)
	if c.Status != api.ConditionTrue || c.Reason != api.ReasonMisconfigured || !strings.Contains(c.Message, "gone") {
		t.Errorf("condition %+v", c)
	}
}

func TestDivide(t *testing.T) {
	w := enginetest.NewWorld()
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		w.Clusters[name] = &api.Cluster{Metadata: api.Metadata{Name: name, Labels: map[string]string{"cloud": map[string]string{"c": "x", "e": "x"}[name]}}}
	}
	f := w.Fleet()
	canary := []api.DecisionGroup{{Name: "canary", LabelSelector: &api.LabelSelector{MatchLabels: map[string]string{"cloud": "x"}}}}
	ranked := []string{"e", "d", "c", "b", "a"}
	for _, c := range []struct {
		name     string
		strategy *api.DecisionStrategy
		chosen   []string
		want     string
	}{
		{"no strategy", nil, ranked, ""},
		{"all in one", &api.DecisionStrategy{ClustersPerDecisionGroup: "100%"}, ranked, "0 :[e d c b a] "},
		{"by number", &api.DecisionStrategy{ClustersPerDecisionGroup: "2"}, ranked, "0 :[e d] 1 :[c b] 2 :[a] "},
		{"a percentage rounds up", &api.DecisionStrategy{ClustersPerDecisionGroup: "25%"}, ranked, "0 :[e d] 1 :[c b] 2 :[a] "},
		{"named groups first, in the order of the ranking", &api.DecisionStrategy{ClustersPerDecisionGroup: "100%", DecisionGroups: canary}, ranked, "0 canary:[e c] 1 :[d b a] "},
		{"a named group is cut, too", &api.DecisionStrategy{ClustersPerDecisionGroup: "1", DecisionGroups: canary}, []string{"e", "c", "a"}, "0 canary:[e] 1 canary:[c] 2 :[a] "},
		{"nothing chosen", &api.DecisionStrategy{ClustersPerDecisionGroup: "1"}, nil, "0 :[] "},
		{"larger than all", &api.DecisionStrategy{ClustersPerDecisionGroup: "7"}, []string{"a"}, "0 :[a] "},
	} {
		got := ""
		for _, g := range divide(f, c.strategy, c.chosen) {
			got += fmt.Sprintf("%d %s:%v ", g.Index, g.Name, g.Clusters)
			if g.ClusterCount != int64(len(g.Clusters)) {
				t.Errorf("%s: group %d counts %d", c.name, g.Index, g.ClusterCount)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestNearestMiss(t *testing.T) {
	w := enginetest.NewWorld()
	add := func(name, tier, region string, paused bool) {
		w.Clusters[name] = &api.Cluster{Metadata: api.Metadata{Name: name, Labels: map[string]string{"tier": tier, "region": region}}, Spec: api.ClusterSpec{Paused: paused}}
	}
	add("a", "gold", "eu", true)    // fails pause alone
	add("b", "silver", "eu", false) // fails the tier alone
	add("c", "silver", "eu", false) // fails the tier alone
	add("d", "silver", "us", false) // fails both labels
	add("e", "silver", "us", true)  // fails everything
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
		t.Errorf("where everything fits there is none, got %+v", miss)
	}
	w.Clusters["f"].Spec.Taints = []api.Taint{{Key: "disk", Value: "full", Effect: api.EffectNoSelect}}
	f = w.Fleet()
	miss = Explain(f, enginetest.Compile(t, NewQuery, p), nil, ledger.Others{}, Present{}, f.Now()).NearestMiss()
	if miss == nil || miss.Filter != "taints" || !strings.Contains(miss.On, "disk") || miss.Count != 1 {
		t.Errorf("the taint is named: %+v", miss)
	}
	w.Clusters["f"].Spec.Taints = append(w.Clusters["f"].Spec.Taints, api.Taint{Key: "gpu", Effect: api.EffectNoSelect})
	f = w.Fleet()
	if miss := Explain(f, enginetest.Compile(t, NewQuery, p), nil, ledger.Others{}, Present{}, f.Now()).NearestMiss(); miss != nil {
		t.Errorf("tolerating one of two taints admits nothing, got %+v", miss)
	}
}

// TestConditionsSayWhatOCMSays holds the order of reasons: the first that holds
// wins.
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
		{"all that are wanted", 2, nil, nil, "True", "AllDecisionsScheduled", "All cluster decisions scheduled"},
		{"too few", 5, nil, nil, "False", "NotAllDecisionsScheduled", "3 cluster decisions unscheduled"},
		{"none matches", 1, nil, []api.Predicate{{LabelSelector: &api.LabelSelector{MatchLabels: map[string]string{"x": "y"}}}}, "False", "NoManagedClusterMatched", "No ManagedCluster matches any of the cluster predicate"},
		{"a set of another namespace", 1, []string{"other", "gone"}, nil, "False", "NoIntersection", "None of ManagedClusterSets [gone,other] is bound to placement namespace"},
		{"an empty set", 1, []string{"empty"}, nil, "False", "AllManagedClusterSetsEmpty", "All ManagedClusterSets [empty] have no member ManagedCluster"},
	} {
		p := byScore("web", c.wanted, api.ModeAdditive)
		p.Spec.ClusterSets, p.Spec.Predicates = c.sets, c.predicates
		q := enginetest.Compile(t, NewQuery, p)
		view := NewView(f, q, ledger.Others{}, nil)
		status, _ := NewStatus(f, q, view, &p.Metadata, &p.Status, Decide(f, q, view, ledger.Others{}, Present{}, f.Now()), f.Now(), func() string { return "why" })
		got := api.FindCondition(status.Conditions, api.ConditionSatisfied)
		if got.Status != c.status || got.Reason != c.reason || got.Message != c.message {
			t.Errorf("%s: %+v", c.name, got)
		}
		if m := api.FindCondition(status.Conditions, api.ConditionMisconfigured); m.Reason != "Succeedconfigured" || m.Message != "Placement configurations check pass" {
			t.Errorf("%s: %+v", c.name, m)
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
	// A new region moves nothing of a decision that answers its spec.
	w.Clusters["c1"] = &api.Cluster{Metadata: api.Metadata{Name: "c1"}, Spec: api.ClusterSpec{Region: "c"}}
	f = w.Fleet()
	if got := chosenBy(f, q, ledger.Others{}, settledOn("a1", "a2", "b1")); !slices.Equal(got, []string{"a1", "a2", "b1"}) {
		t.Errorf("a new region moved the decision to %v", got)
	}
	if got := chosenBy(f, q, ledger.Others{}, Present{}); !slices.Equal(got, []string{"a1", "b1", "c1"}) {
		t.Errorf("decided anew: %v, want one of each region", got)
	}
}

// TestManySeatsMove: a decision for more clusters than rivals are listed for each
// of moves to all that are better.
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
