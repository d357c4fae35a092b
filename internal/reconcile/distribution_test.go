package reconcile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
)

// distributed gives a workload a distribution.
func distributed(mode api.DistributionMode, count api.OnDemandAmount) func(*api.Workload) {
	return func(w *api.Workload) { w.Spec.Distribution = &api.DistributionSpec{Mode: mode, CustomOnDemand: count} }
}

func spotCluster(name string) *api.Cluster {
	c := cluster(name, nil)
	c.Spec.Spot = &api.SpotSpec{Enabled: true}
	return c
}

var shopWeb = api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"}

func (p *planner) status(key api.Key) *api.WorkloadStatus { return &p.bindings.workloads[key].status }

// splitText formats a binding as "cluster replicas=on-demand/spot".
func splitText(s *api.WorkloadStatus) string {
	var parts []string
	for _, c := range s.Clusters {
		text := fmt.Sprintf("%s %d", c.Name, c.Replicas)
		if c.OnDemand != nil && c.Spot != nil {
			text += fmt.Sprintf("=%d/%d", *c.OnDemand, *c.Spot)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func staticWeights(weights map[string]int64) *api.ReplicaScheduling {
	p := &api.WeightPreference{}
	for _, name := range []string{"c0", "c1", "c2"} {
		if weights[name] > 0 {
			p.StaticWeights = append(p.StaticWeights, api.StaticWeight{Affinity: api.ClusterAffinity{ClusterNames: []string{name}}, Weight: weights[name]})
		}
	}
	return &api.ReplicaScheduling{WeightPreference: p}
}

func TestSplitsAreDecided(t *testing.T) {
	divided := staticWeights(map[string]int64{"c0": 4, "c1": 3, "c2": 3})
	stateful := func(w *api.Workload) { w.Spec.Kind = api.KindStatefulSet }
	for _, test := range []struct {
		name     string
		replicas int64
		division *api.ReplicaScheduling
		change   []func(*api.Workload)
		want     string
		clause   string
	}{
		{"no distribution", 10, divided, nil, "c0 4, c1 3, c2 3", ""},
		{"not replicated", -1, nil, []func(*api.Workload){distributed("", "")}, "c0 0, c1 0, c2 0", ""},
		{"a Deployment by default", 10, divided, []func(*api.Workload){distributed("", "")}, "c0 4=0/4, c1 3=0/3, c2 3=0/3", "; 0 of the replicas go to on-demand nodes, 10 to spot nodes"},
		{"a StatefulSet by default", 10, divided, []func(*api.Workload){stateful, distributed("", "")}, "c0 4=3/1, c1 3=2/1, c2 3=2/1", "; 7 of the replicas go to on-demand nodes, 3 to spot nodes"},
		{"a single pod of a StatefulSet", 1, staticWeights(map[string]int64{"c0": 1}), []func(*api.Workload){stateful, distributed("", "")}, "c0 1=1/0", "; 1 of the replicas go to on-demand nodes, 0 to spot nodes"},
		{"all in on-demand", 10, divided, []func(*api.Workload){distributed(api.ModeAllInOnDemand, "")}, "c0 4=4/0, c1 3=3/0, c2 3=3/0", "; 10 of the replicas go to on-demand nodes, 0 to spot nodes"},
		{"all in spot", 10, divided, []func(*api.Workload){stateful, distributed(api.ModeAllInSpot, "")}, "c0 4=0/4, c1 3=0/3, c2 3=0/3", "; 0 of the replicas go to on-demand nodes, 10 to spot nodes"},
		{"count over all clusters", 10, divided, []func(*api.Workload){distributed(api.ModeCustom, "4")}, "c0 4=2/2, c1 3=1/2, c2 3=1/2", "; 4 of the replicas go to on-demand nodes, 6 to spot nodes"},
		{"percentage of each cluster", 10, divided, []func(*api.Workload){distributed(api.ModeCustom, "30%")}, "c0 4=2/2, c1 3=1/2, c2 3=1/2", "; 4 of the replicas go to on-demand nodes, 6 to spot nodes"},
		{"count for every copy", 3, nil, []func(*api.Workload){distributed(api.ModeCustom, "2")}, "c0 3=2/1, c1 3=2/1, c2 3=2/1", "; 6 of the replicas go to on-demand nodes, 3 to spot nodes"},
		{"count above the replicas", 3, divided, []func(*api.Workload){distributed(api.ModeCustom, "5")}, "c0 1=1/0, c1 1=1/0, c2 1=1/0", "; custom_on_demand 5 is above the 3 replicas: all of them go to on-demand nodes"},
		{"count above the replicas of a copy", 1, nil, []func(*api.Workload){distributed(api.ModeCustom, "5")}, "c0 1=1/0, c1 1=1/0, c2 1=1/0", "; custom_on_demand 5 is above the 1 replica: all of them go to on-demand nodes"},
		{"zero replicas", 0, divided, []func(*api.Workload){distributed(api.ModeCustom, "5")}, "c0 0=0/0, c1 0=0/0, c2 0=0/0", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, p := newWorld(), newPlanner(discard())
			for _, name := range []string{"c0", "c1", "c2"} {
				w.write(p, spotCluster(name))
			}
			web := workload("web", test.replicas, test.change...)
			w.write(p, policy("base", func(s *api.PropagationPolicySpec) {
				s.ResourceSelectors[0].Kind = web.Spec.Kind
				s.Placement.ReplicaScheduling = test.division
			}))
			w.write(p, web)
			p.pass(epoch)
			if got := splitText(p.status(shopWeb)); got != test.want {
				t.Errorf("split %s, want %s", got, test.want)
			}
			x := p.bindings.explain(p.bindings.workloads[shopWeb], epoch)
			if test.clause == "" && strings.Contains(x.Summary, "on-demand") || !strings.HasSuffix(x.Summary, test.clause) {
				t.Errorf("summary %q, want it to end with %q", x.Summary, test.clause)
			}
			checkBound(t, p, epoch)
		})
	}
}

// TestADistributionAloneMovesNothing: it is a new decision, about the same replicas
// in the same places.
func TestADistributionAloneMovesNothing(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, policy("base", func(s *api.PropagationPolicySpec) { s.Placement.ReplicaScheduling = dynamic() }))
	w.write(p, sized("c0", "6"))
	w.write(p, sized("c1", "4"))
	needy := func(w *api.Workload) { w.Spec.ReplicaRequests = api.Quantities{"cpu": "1"} }
	w.write(p, workload("web", 5, needy))
	w.write(p, workload("other", 5, needy))
	p.pass(epoch)
	before, version := *p.status(shopWeb), p.version
	for i, change := range []func(*api.Workload){
		distributed(api.ModeMajorityInOnDemand, ""), distributed(api.ModeCustom, "1"), distributed(api.ModeCustom, "3"), func(*api.Workload) {},
	} {
		now := epoch.Add(time.Duration(i+1) * time.Minute)
		w.write(p, workload("web", 5, needy, change))
		writes := p.pass(now)
		if len(writes) != 1 || writes[0].key() != shopWeb || writes[0].moved || writes[0].observed {
			t.Errorf("change %d: writes %+v, want one decision that moves nothing", i, writes)
		}
		after := *p.status(shopWeb)
		if after.DecisionRevision != before.DecisionRevision+1 || !after.ScheduledAt.Equal(now) || after.ObservedGeneration != before.ObservedGeneration+1 {
			t.Errorf("change %d: revision %d at %s, want the one after %d, now", i, after.DecisionRevision, after.ScheduledAt, before.DecisionRevision)
		}
		if splitText(&after) == splitText(&before) {
			t.Errorf("change %d: the split is still %s", i, splitText(&after))
		}
		for j, c := range after.Clusters {
			if was := before.Clusters[j]; c.Name != was.Name || c.Replicas != was.Replicas || !c.Since.Equal(epoch) {
				t.Errorf("change %d: cluster %+v, want the name, replicas and time of %+v", i, c, was)
			}
		}
		before = after
	}
	if p.version != version {
		t.Error("the change of the split changed reservations")
	}
}

func drawDistribution(t *rapid.T, w *api.Workload) {
	w.Spec.Distribution = rapid.SampledFrom([]*api.DistributionSpec{
		nil, nil, {}, {Mode: api.ModeAllInOnDemand}, {Mode: api.ModeAllInSpot}, {Mode: api.ModeMajorityInOnDemand},
		{Mode: api.ModeCustom, CustomOnDemand: "0"}, {Mode: api.ModeCustom, CustomOnDemand: "3"}, {Mode: api.ModeCustom, CustomOnDemand: "100"},
		{Mode: api.ModeCustom, CustomOnDemand: "1%"}, {Mode: api.ModeCustom, CustomOnDemand: "34%"}, {Mode: api.ModeCustom, CustomOnDemand: "100%"},
	}).Draw(t, "distribution")
}

// drawObserved draws a report on a cluster on which the workload may or may not run.
func drawObserved(t *rapid.T, cluster string) api.ClusterDistribution {
	return api.ClusterDistribution{
		Cluster: cluster, Replicas: rapid.Int64Range(0, 4).Draw(t, "replicas there"), TargetOnDemand: rapid.Int64Range(0, 2).Draw(t, "target"),
		State: rapid.SampledFrom([]api.DistributionState{
			api.DistributionConverged, api.DistributionConverged, api.DistributionReplacing, api.DistributionWaiting,
			api.DistributionDegraded, api.DistributionBlocked, api.DistributionAbsent, api.DistributionUnmanaged,
		}).Draw(t, "state"),
	}
}

// checkSplit checks that the parts in each cluster add up, that the total follows the mode, and that the reported
// observations are of the workload's clusters.
func checkSplit(t checker, p *planner, w *workloadBinding) {
	spec, s := &w.object.Spec, &w.status
	condition := api.FindCondition(s.Conditions, api.ConditionDistributed)
	if (condition != nil) != (spec.Distribution != nil) {
		t.Fatalf("%s has distribution %+v and condition %+v", w.key(), spec.Distribution, condition)
	}
	total, onDemand := int64(0), int64(0)
	for _, c := range s.Clusters {
		if wanted := spec.Distribution != nil && spec.Replicas != nil; (c.OnDemand != nil) != wanted || (c.Spot != nil) != wanted {
			t.Fatalf("%s has the distribution %+v and the cluster %+v", w.key(), spec.Distribution, c)
		} else if !wanted {
			continue
		}
		if *c.OnDemand < 0 || *c.Spot < 0 || *c.OnDemand+*c.Spot != c.Replicas {
			t.Fatalf("%s: on-demand %d and spot %d, want %d in total on %s", w.key(), *c.OnDemand, *c.Spot, c.Replicas, c.Name)
		}
		total += c.Replicas
		onDemand += *c.OnDemand
	}
	if spec.Distribution == nil {
		if len(s.Distribution) > 0 {
			t.Fatalf("%s has no distribution, but the observation %+v", w.key(), s.Distribution)
		}
		return
	}
	if spec.Replicas != nil {
		if least := split.Targets(spec.Kind, total, *spec.Distribution).OnDemand; onDemand < least {
			t.Fatalf("%s has the split %s, want at least %d on-demand in total", w.key(), splitText(s), least)
		}
	}
	if !slices.IsSortedFunc(s.Distribution, func(a, b api.ClusterDistribution) int { return compareNames(a.Cluster, b.Cluster) }) {
		t.Fatalf("%s: observations %+v, want them sorted by cluster and unique", w.key(), s.Distribution)
	}
	for _, d := range s.Distribution {
		if !s.RunsOn(d.Cluster) {
			t.Fatalf("%s does not run on %s, but has an observation of it", w.key(), d.Cluster)
		}
	}
	if condition.Status != api.ConditionTrue {
		return
	}
	for _, c := range s.Clusters {
		row, ok := p.fleet.Row(c.Name)
		i := slices.IndexFunc(s.Distribution, func(d api.ClusterDistribution) bool { return d.Cluster == c.Name })
		if (spec.Replicas == nil || c.Replicas > 0) && (!ok || !p.fleet.Cluster(row).SpotEnabled() || i < 0 || s.Distribution[i].State != api.DistributionConverged) {
			t.Fatalf("%s counts as split on %s, although it is observed as %+v", w.key(), c.Name, s.Distribution)
		}
	}
}

// TestSplitSumInvariant checks that, however replicas are divided over clusters, at least as many are on on-demand
// nodes as there would be in one cluster.
func TestSplitSumInvariant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, p := newWorld(), newPlanner(discard())
		for i := range rapid.IntRange(1, 6).Draw(t, "clusters") {
			c := sized(fmt.Sprintf("c%d", i), fmt.Sprint(rapid.IntRange(0, 40).Draw(t, "cpu")))
			c.Metadata.Labels = map[string]string{"zone": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "zone")}
			w.write(p, c)
		}
		w.write(p, drawPolicy(t))
		for range 4 {
			load := drawWorkload(t)
			load.Spec.Kind = rapid.SampledFrom([]string{api.KindDeployment, api.KindStatefulSet}).Draw(t, "kind")
			if load.Spec.Replicas != nil {
				load.Spec.Replicas = ptr(rapid.Int64Range(0, 100).Draw(t, "more replicas"))
			}
			drawDistribution(t, load)
			w.write(p, load)
		}
		p.pass(epoch)
		for _, b := range p.bindings.workloads {
			checkSplit(t, p, b)
		}
	})
}

// splitWorld creates a workload with 4, 3 and 3 replicas on three clusters, 4 of them on on-demand nodes.
func splitWorld(t *testing.T, change ...func(*api.Workload)) (*world, *planner) {
	t.Helper()
	w, p := newWorld(), newPlanner(discard())
	for _, name := range []string{"c0", "c1", "c2"} {
		w.write(p, spotCluster(name))
	}
	w.write(p, policy("base", func(s *api.PropagationPolicySpec) {
		s.Placement.ReplicaScheduling = staticWeights(map[string]int64{"c0": 4, "c1": 3, "c2": 3})
	}))
	w.write(p, workload("web", 10, append([]func(*api.Workload){distributed(api.ModeCustom, "4")}, change...)...))
	w.stored(p, p.pass(epoch))
	if got := splitText(p.status(shopWeb)); got != "c0 4=2/2, c1 3=1/2, c2 3=1/2" {
		t.Fatalf("split %s, want c0 4=2/2, c1 3=1/2, c2 3=1/2", got)
	}
	return w, p
}

func TestSimulationsAndPreviewsShowTheSplit(t *testing.T) {
	y, _ := start(t)
	for _, name := range []string{"c0", "c1", "c2"} {
		y.put(spotCluster(name))
	}
	y.put(policy("base", func(s *api.PropagationPolicySpec) {
		s.Placement.ReplicaScheduling = staticWeights(map[string]int64{"c0": 4, "c1": 3, "c2": 3})
	}))
	y.put(workload("web", 10))
	const want, clause = "c0 4=2/2, c1 3=1/2, c2 3=1/2", "; 4 of the replicas go to on-demand nodes, 6 to spot nodes"

	changed := workload("web", 10, distributed(api.ModeCustom, "4"))
	changed.SetDefaults()
	text, err := json.Marshal(changed)
	if err != nil {
		t.Fatal(err)
	}
	result, err := y.reconciler.Simulate(t.Context(), api.Simulation{Objects: []json.RawMessage{text}})
	if err != nil {
		t.Fatal(err)
	}
	simulated := result.Objects[0].(*api.Workload)
	if got := splitText(&simulated.Status); got != want || !strings.HasSuffix(result.Explanations[0].Summary, clause) || len(result.Changes) != 0 {
		t.Errorf("simulated split %s, summary %q, changes %+v", got, result.Explanations[0].Summary, result.Changes)
	}

	present := y.fleet.Snapshot().Get(shopWeb).Object.(*api.Workload)
	previewed := *present
	previewed.Metadata.Generation++
	previewed.Spec = changed.Spec
	status, x, err := y.reconciler.PreviewWorkload(t.Context(), &previewed)
	if err != nil {
		t.Fatal(err)
	}
	if got := splitText(&status); got != want || !strings.HasSuffix(x.Summary, clause) || status.DecisionRevision != present.Status.DecisionRevision+1 {
		t.Errorf("previewed split %s, summary %q, revision %d", got, x.Summary, status.DecisionRevision)
	}
	if got := y.fleet.Snapshot().Get(shopWeb).Object.(*api.Workload); splitText(&got.Status) != "c0 4, c1 3, c2 3" {
		t.Errorf("split %s after a simulation and a preview, want it unchanged", splitText(&got.Status))
	}
}
