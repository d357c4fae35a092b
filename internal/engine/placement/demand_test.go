package placement

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// supply adds the first clusters that a demand lists to a world, exactly as it says.
func supply(t rapid.TB, w *enginetest.World, of api.Key, d *api.Demand, n int) {
	for i, c := range d.Each(of)[:n] {
		w.Clusters[cmp.Or(c.Cluster, fmt.Sprintf("made-%d", i))] = enginetest.Supplied(t, cmp.Or(c.Cluster, fmt.Sprintf("made-%d", i)), &c)
	}
}

// TestDemandLaw checks that exactly the clusters that a demand asks for satisfy the placement, that one of them less
// does not, and that a satisfied placement demands nothing.
func TestDemandLaw(t *testing.T) {
	tested, obstructed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		d, w := enginetest.RollFleet(t)
		p, present := rollPlacement(d, w)
		if d.Chance(3) {
			p.Spec.SpreadConstraints = rollHardSpread(d)
			p.SetDefaults()
		}
		reserved, _ := rollHolds(t, d, w, w.Fleet(), p, present)
		others := ledger.Others{Reserved: reserved}
		q := enginetest.Compile(t, NewQuery, p)
		decide := func() Outcome {
			f := w.Fleet()
			return Decide(f, q, NewView(f, q, others, nil), others, present, w.Now)
		}
		out := decide()
		satisfied := func(out Outcome) bool {
			return q.Wanted == 0 || out.Full || q.Wanted == score.All && len(out.Choices) > 0
		}
		if satisfied(out) != (out.demand == nil) {
			t.Fatalf("%d of %d chosen, demand %+v", len(out.Choices), q.Wanted, out.demand)
		}
		if out.demand == nil {
			return
		}
		if again := decide(); !again.demand.Equal(out.demand) {
			t.Fatalf("demands %+v, then %+v", out.demand, again.demand)
		}
		if len(out.demand.Obstacles)+len(out.demand.Requirements) > 0 {
			obstructed++
			return
		}
		tested++
		all := len(out.demand.Each(q.Key))
		before := w.Clusters
		for _, n := range []int{all, all - 1} {
			w.Clusters = map[string]*api.Cluster{}
			for name, c := range before {
				w.Clusters[name] = c
			}
			supply(t, w, q.Key, out.demand, n)
			if after := decide(); satisfied(after) != (n == all) && (n == all || len(p.Spec.SpreadConstraints) < 2) {
				t.Fatalf("with %d of the clusters of %s:\n%+v\n%d of %d chosen, then demand %+v", n, out.demand.Sentence(), p.Spec, len(after.Choices), q.Wanted, after.demand)
			}
		}
	})
	if tested == 0 || obstructed == 0 {
		t.Errorf("%d demands were tested, %d named what no cluster can be built from", tested, obstructed)
	}
}

// rollHardSpread draws hard and soft spread constraints.
func rollHardSpread(d enginetest.Dice) []api.SpreadConstraint {
	var list []api.SpreadConstraint
	for range 1 + d(2) {
		c := api.SpreadConstraint{
			MaxSkew: new(int64(1 + d(2))), WhenUnsatisfiable: enginetest.Pick(d, api.DoNotSchedule, api.DoNotSchedule, api.ScheduleAnyway),
			Type: api.SpreadLabel, TopologyKey: enginetest.Pick(d, "zone", "tier"),
		}
		switch d(3) {
		case 0:
			c.Type, c.TopologyKey = api.SpreadField, enginetest.Pick(d, api.SpreadRegion, api.SpreadZone, api.SpreadProvider)
		case 1:
			c.Type, c.TopologyKey = api.SpreadClaim, "version"
		}
		if !slices.ContainsFunc(list, func(x api.SpreadConstraint) bool { return x.TopologyKey == c.TopologyKey }) {
			list = append(list, c)
		}
	}
	return list
}

func TestDemand(t *testing.T) {
	cluster := func(name, zone string) *api.Cluster {
		return &api.Cluster{Metadata: api.Metadata{Name: name, UID: name, Labels: map[string]string{"zone": zone}}}
	}
	set := func(name string, spec api.ClusterSetSpec) *api.ClusterSet {
		s := &api.ClusterSet{Metadata: api.Metadata{Name: name}, Spec: spec}
		s.SetDefaults()
		return s
	}
	w := enginetest.NewWorld()
	for _, c := range []*api.Cluster{cluster("a1", "a"), cluster("a2", "a"), cluster("a3", "a"), cluster("b1", "b")} {
		w.Clusters[c.Metadata.Name] = c
	}
	w.Sets["edge"] = set("edge", api.ClusterSetSpec{Selector: &api.LabelSelector{MatchLabels: map[string]string{"tier": "edge"}}})
	w.Sets["listed"] = set("listed", api.ClusterSetSpec{Clusters: []string{"a1", "next"}})
	w.Sets["private"] = set("private", api.ClusterSetSpec{Selector: &api.LabelSelector{}, Namespaces: []string{"bank"}})
	spread := func(key string) []api.SpreadConstraint {
		return []api.SpreadConstraint{{TopologyKey: key, WhenUnsatisfiable: api.DoNotSchedule}}
	}
	for name, test := range map[string]struct {
		wanted int64 // 0 = all that fit
		has    []string
		spec   api.PlacementSpec
		want   *api.Demand
	}{
		"satisfied":           {wanted: 4},
		"all that fit":        {},
		"more than there are": {wanted: 6, want: &api.Demand{Clusters: 2}},
		"a label": {spec: api.PlacementSpec{LabelConstraints: []string{"location is DE"}},
			want: &api.Demand{Clusters: 1, Labels: map[string]string{"location": "DE"}}},
		"several values": {spec: api.PlacementSpec{LabelConstraints: []string{"location in (DE, FR, PL)", "location != DE"}},
			want: &api.Demand{Clusters: 1, Labels: map[string]string{"location": "FR"}, Choices: []api.DemandChoice{{Of: "labels.location", Values: []string{"FR", "PL"}}}}},
		"any other value": {wanted: 1, spec: api.PlacementSpec{LabelConstraints: []string{"location not in (DE, FR)"}},
			want: &api.Demand{Clusters: 1, Requirements: []string{`label "location" with a value other than DE, FR`}}},
		"contradiction": {wanted: 1, spec: api.PlacementSpec{LabelConstraints: []string{"location is DE", "location is FR"}},
			want: &api.Demand{Clusters: 1, Obstacles: []string{`no value of label "location" meets all requirements`}}},
		"resources": {wanted: 2, spec: api.PlacementSpec{ResourceRequests: api.Quantities{"cpu": "4", "memory": "16Gi"}},
			want: &api.Demand{Clusters: 2, Resources: api.Quantities{"cpu": "4", "memory": "16Gi"}}},
		"a metric": {wanted: 1, spec: api.PlacementSpec{MetricConstraints: []string{"load < 5"}},
			want: &api.Demand{Clusters: 1, Requirements: []string{`metric_constraints "load < 5"`}}},
		"version and custom resource": {wanted: 1, spec: api.PlacementSpec{KubernetesVersion: ">= 1.33", CustomResources: []string{"queues.example.com"}},
			want: &api.Demand{Clusters: 1, KubernetesVersion: ">= 1.33", CustomResources: []string{"queues.example.com"}}},
		"names that are left": {wanted: 2, spec: api.PlacementSpec{ClusterNames: []string{"a1", "next", "later"}},
			want: &api.Demand{Clusters: 1, Names: []string{"next"}}},
		"no names left": {wanted: 3, spec: api.PlacementSpec{ClusterNames: []string{"a1", "next"}},
			want: &api.Demand{Clusters: 2, Obstacles: []string{"cluster_names leaves names for 1 cluster that does not exist yet"}}},
		"a set with a selector": {wanted: 1, spec: api.PlacementSpec{ClusterSets: []string{"edge"}},
			want: &api.Demand{Clusters: 1, Labels: map[string]string{"tier": "edge"}}},
		"a set of names": {wanted: 2, spec: api.PlacementSpec{ClusterSets: []string{"listed"}},
			want: &api.Demand{Clusters: 1, Names: []string{"next"}}},
		"sets of others": {wanted: 1, spec: api.PlacementSpec{ClusterSets: []string{"ghost", "private"}},
			want: &api.Demand{Clusters: 1, Obstacles: []string{"cluster sets ghost, private do not exist, or may not be used by the namespace"}}},
		"a predicate": {wanted: 1, spec: api.PlacementSpec{Predicates: []api.Predicate{
			{CEL: []string{`managedCluster.metadata.labels["gpu"] == "yes"`}},
			{LabelSelector: &api.LabelSelector{MatchLabels: map[string]string{"gpu": "yes"}}, ClaimSelector: &api.LabelSelector{MatchLabels: map[string]string{"platform": "aws"}}},
		}}, want: &api.Demand{Clusters: 1, Labels: map[string]string{"gpu": "yes"}, Claims: map[string]string{"platform": "aws"}}},
		"an expression": {wanted: 1, spec: api.PlacementSpec{Predicates: []api.Predicate{{CEL: []string{`managedCluster.metadata.labels["gpu"] == "yes"`}}}},
			want: &api.Demand{Clusters: 1, Requirements: []string{`predicates "managedCluster.metadata.labels[\"gpu\"] == \"yes\""`}}},
		"spread over what there is": {wanted: 4, spec: api.PlacementSpec{SpreadConstraints: spread("zone")},
			want: &api.Demand{Clusters: 1, Spread: []api.DemandSpread{{By: "labels.zone", Value: "b", Clusters: 1}}}},
		"spread over both": {wanted: 8, spec: api.PlacementSpec{SpreadConstraints: spread("zone")},
			want: &api.Demand{Clusters: 4, Spread: []api.DemandSpread{{By: "labels.zone", Value: "b", Clusters: 2}, {By: "labels.zone", Value: "a", Clusters: 1}, {By: "labels.zone", Value: "b", Clusters: 1}}}},
		"spread over a label that must be absent": {wanted: 1, spec: api.PlacementSpec{SpreadConstraints: spread("rack"), Predicates: []api.Predicate{
			{LabelSelector: &api.LabelSelector{MatchExpressions: []api.SelectorRequirement{{Key: "rack", Operator: api.SelectorDoesNotExist}}}},
		}}, want: &api.Demand{Clusters: 1, Spread: []api.DemandSpread{{By: "labels.rack", Clusters: 1}}, Obstacles: []string{`label "rack" must be there and must not`}}},
		"spread beside clusters that are in no domain": {wanted: 3, has: []string{"a1", "a2"}, spec: api.PlacementSpec{SpreadConstraints: spread("rack")},
			want: &api.Demand{Clusters: 1, Spread: []api.DemandSpread{{By: "labels.rack", Clusters: 1}}}},
		"spread over nothing yet": {wanted: 2, spec: api.PlacementSpec{SpreadConstraints: spread("rack")},
			want: &api.Demand{Clusters: 2, Spread: []api.DemandSpread{{By: "labels.rack", Clusters: 2}}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := enginetest.NewPlacement("web")
			p.Spec = test.spec
			if test.wanted > 0 {
				p.Spec.NumberOfClusters = &test.wanted
			}
			p.SetDefaults()
			f, q := w.Fleet(), enginetest.Compile(t, NewQuery, p)
			present := Present{Answered: len(test.has) > 0, ScheduledAt: w.Now}
			for _, name := range test.has {
				present.Decisions = append(present.Decisions, api.Decision{Cluster: name})
			}
			out := Decide(f, q, NewView(f, q, ledger.Others{}, nil), ledger.Others{}, present, w.Now)
			if !out.demand.Equal(test.want) {
				t.Errorf("demand %+v\nwant %+v", out.demand, test.want)
			}
		})
	}
}
