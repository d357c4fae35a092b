package binding

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// bound binds a workload in a fleet, and returns what it demands.
func bound(f *columns.Fleet, p *Propagation, present Present) (Binding, *api.Demand) {
	views := make([]*placement.View, len(p.Groups))
	for i := range p.Groups {
		views[i] = placement.NewView(f, p.Groups[i].Query, ledger.Others{}, nil)
	}
	var b Binder
	out := b.Bind(f, p, views, ledger.Others{}, nil, present, enginetest.Epoch)
	return out, b.Demand()
}

// drawDemanding draws clusters, and a workload for which they may have no room.
func drawDemanding(t *rapid.T, d enginetest.Dice) (*enginetest.World, *api.Workload, *api.PropagationPolicy) {
	w := enginetest.NewWorld()
	for i := range d(6) {
		name := fmt.Sprintf("c%d", i)
		c := &api.Cluster{Metadata: api.Metadata{Name: name, UID: name, Generation: 1, Labels: map[string]string{"zone": enginetest.Pick(d, "a", "b", "c")}}}
		c.Spec.Region = enginetest.Pick(d, "", "eu", "us")
		c.Spec.Allocatable = api.Quantities{"cpu": enginetest.Pick[api.Quantity](d, "0", "1", "2500m", "4")}
		c.Spec.Paused = d.Chance(6)
		c.SetDefaults()
		w.Clusters[name] = c
	}
	load := &api.Workload{Metadata: api.Metadata{Name: "web", Namespace: "shop", UID: fmt.Sprint(d(9)), Generation: 1}}
	load.Spec.APIVersion, load.Spec.Kind = "apps/v1", "Deployment"
	if !d.Chance(5) {
		load.Spec.Replicas = new(int64(enginetest.Pick(d, 0, 1, 2, 5, 9)))
	}
	if !d.Chance(4) {
		load.Spec.ReplicaRequests = api.Quantities{"cpu": enginetest.Pick[api.Quantity](d, "500m", "1", "3")}
	}
	load.SetDefaults()
	policy := &api.PropagationPolicy{Metadata: api.Metadata{Name: "p", Namespace: "shop", UID: "p", Generation: 1}}
	place := &policy.Spec.Placement
	affinity := func() *api.ClusterAffinity {
		switch d(4) {
		case 0:
			return &api.ClusterAffinity{LabelSelector: &api.LabelSelector{MatchExpressions: []api.SelectorRequirement{
				{Key: "zone", Operator: api.SelectorIn, Values: []string{"a", "d"}}, {Key: "zone", Operator: api.SelectorNotIn, Values: []string{"b"}},
			}}}
		case 1:
			return &api.ClusterAffinity{FieldSelector: []api.FieldRequirement{{Key: api.GroupByRegion, Operator: api.SelectorIn, Values: []string{"eu", "asia"}}}}
		case 2:
			return &api.ClusterAffinity{ClusterNames: []string{"c0", "c1", "next", "later", "last"}, ExcludeClusters: []string{"c1"}}
		}
		return nil
	}
	place.ClusterAffinity = affinity()
	if d.Chance(2) {
		c := api.GroupConstraint{MinGroups: new(int64(1 + d(3)))}
		if d.Chance(2) {
			c.MaxGroups = new(*c.MinGroups + int64(d(2)))
		}
		switch d(3) {
		case 0:
			c.SpreadByField = api.GroupByCluster
		case 1:
			c.SpreadByField = api.GroupByRegion
		default:
			c.SpreadByLabel = "zone"
		}
		place.SpreadConstraints = append(place.SpreadConstraints, c)
	}
	if !d.Chance(3) {
		r := &api.ReplicaScheduling{Type: api.Divided}
		switch d(3) {
		case 0:
			r.DivisionPreference = api.Aggregated
		case 1:
			r.DivisionPreference, r.WeightPreference = api.Weighted, &api.WeightPreference{DynamicWeight: api.DynamicWeightAvailable}
		default:
			r.DivisionPreference = api.Weighted
		}
		if d.Chance(3) {
			r.ClusterLimits = []api.ClusterLimit{{MaxReplicas: new(int64(1 + d(3)))}}
		}
		place.ReplicaScheduling = r
	}
	policy.SetDefaults()
	return w, load, policy
}

// TestDemandLaw checks that exactly the clusters that a workload demands complete it, and that a workload that is complete
// demands nothing.
func TestDemandLaw(t *testing.T) {
	tested, obstructed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		d := enginetest.Rolling(t, true)
		w, load, policy := drawDemanding(t, d)
		p, err := NewPropagation(load, policy)
		if err != nil {
			t.Fatal(err)
		}
		var present Present
		if names := w.Names(); len(names) > 0 && d.Chance(2) {
			present.answered = d.Chance(2)
			present.clusters = []api.WorkloadCluster{{Name: enginetest.Pick(d, names...), Replicas: int64(d(4))}}
		}
		out, demand := bound(w.Fleet(), p, present)
		if out.Complete != (demand == nil) {
			t.Fatalf("complete: %t, demand %+v", out.Complete, demand)
		}
		if demand == nil {
			return
		}
		if len(demand.Obstacles)+len(demand.Requirements) > 0 {
			obstructed++
			return
		}
		tested++
		supplied := &enginetest.World{Now: w.Now, Clusters: maps.Clone(w.Clusters)}
		for i, c := range demand.Each(p.key) {
			name := c.Cluster
			if name == "" {
				name = fmt.Sprintf("made-%d", i)
			}
			supplied.Clusters[name] = enginetest.Supplied(t, name, &c)
		}
		if after, more := bound(supplied.Fleet(), p, present); !after.Complete {
			t.Fatalf("%s\nworkload %+v\npolicy %+v\nwith these, it demands %s", demand.Sentence(), load.Spec, policy.Spec.Placement, more.Sentence())
		}
	})
	if tested == 0 || obstructed == 0 {
		t.Errorf("%d demands were tested, %d named what no cluster can be built from", tested, obstructed)
	}
	t.Logf("%d demands were tested, %d obstructed", tested, obstructed)
}

func TestDemand(t *testing.T) {
	cluster := func(name, region string, cpu api.Quantity) *api.Cluster {
		c := &api.Cluster{Metadata: api.Metadata{Name: name, UID: name, Generation: 1}}
		c.Spec.Region, c.Spec.Allocatable = region, api.Quantities{"cpu": cpu}
		c.SetDefaults()
		return c
	}
	w := enginetest.NewWorld()
	for _, c := range []*api.Cluster{cluster("a", "eu", "2"), cluster("b", "eu", "3")} {
		w.Clusters[c.Metadata.Name] = c
	}
	divided := &api.ReplicaScheduling{Type: api.Divided, DivisionPreference: api.Aggregated}
	limited := &api.ReplicaScheduling{Type: api.Divided, DivisionPreference: api.Aggregated, ClusterLimits: []api.ClusterLimit{{MaxReplicas: new(int64(2))}}}
	for name, test := range map[string]struct {
		replicas int64
		place    api.PropagationPlacement
		want     *api.Demand
	}{
		"enough room": {5, api.PropagationPlacement{ReplicaScheduling: divided}, nil},
		"what is missing": {8, api.PropagationPlacement{ReplicaScheduling: divided},
			&api.Demand{Clusters: 1, Replicas: 3, Resources: api.Quantities{"cpu": "3"}, APIResources: []string{"apps/v1/Deployment"}}},
		"limits of each cluster": {9, api.PropagationPlacement{ReplicaScheduling: limited},
			&api.Demand{Clusters: 3, Replicas: 2, Resources: api.Quantities{"cpu": "2"}, APIResources: []string{"apps/v1/Deployment"}}},
		"a copy for each": {4, api.PropagationPlacement{},
			&api.Demand{Clusters: 1, Replicas: 4, Resources: api.Quantities{"cpu": "4"}, APIResources: []string{"apps/v1/Deployment"}}},
		"another region": {4, api.PropagationPlacement{ReplicaScheduling: divided, SpreadConstraints: []api.GroupConstraint{{SpreadByField: api.GroupByRegion, MinGroups: new(int64(2))}}},
			&api.Demand{Clusters: 1, Replicas: 1, Resources: api.Quantities{"cpu": "1"}, APIResources: []string{"apps/v1/Deployment"}, Spread: []api.DemandSpread{{By: "region", Clusters: 1}}}},
		"the same region": {9, api.PropagationPlacement{ReplicaScheduling: divided, SpreadConstraints: []api.GroupConstraint{{SpreadByField: api.GroupByRegion, MaxGroups: new(int64(1))}}},
			&api.Demand{Clusters: 1, Replicas: 4, Resources: api.Quantities{"cpu": "4"}, APIResources: []string{"apps/v1/Deployment"}, Spread: []api.DemandSpread{{By: "region", Value: "eu", Clusters: 1}}}},
		"a field": {1, api.PropagationPlacement{ReplicaScheduling: divided, ClusterAffinity: &api.ClusterAffinity{FieldSelector: []api.FieldRequirement{{Key: api.GroupByRegion, Operator: api.SelectorIn, Values: []string{"asia", "us"}}}}},
			&api.Demand{Clusters: 1, Replicas: 1, Region: "asia", Choices: []api.DemandChoice{{Of: "region", Values: []string{"asia", "us"}}}, Resources: api.Quantities{"cpu": "1"}, APIResources: []string{"apps/v1/Deployment"}}},
	} {
		t.Run(name, func(t *testing.T) {
			load := &api.Workload{Metadata: api.Metadata{Name: "web", Namespace: "shop", UID: "1", Generation: 1}}
			load.Spec = api.WorkloadSpec{APIVersion: "apps/v1", Kind: "Deployment", Replicas: &test.replicas, ReplicaRequests: api.Quantities{"cpu": "1"}}
			policy := &api.PropagationPolicy{Metadata: api.Metadata{Name: "p", Namespace: "shop"}, Spec: api.PropagationPolicySpec{Placement: test.place}}
			policy.SetDefaults()
			p, err := NewPropagation(load, policy)
			if err != nil {
				t.Fatal(err)
			}
			if _, demand := bound(w.Fleet(), p, Present{}); !demand.Equal(test.want) {
				t.Errorf("demand %+v\nwant %+v", demand, test.want)
			}
		})
	}
}
