package binding

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// lawPropagation draws a workload with the policy that places it.
func lawPropagation(t *testing.T, d enginetest.Dice) *Propagation {
	t.Helper()
	w := enginetest.RollLawWorkload(d)
	w.Metadata.UID = fmt.Sprint(d(8))
	if a := w.Spec.Allocation; a != nil {
		a.LocationStrategy = enginetest.Pick(d, api.LocationCentralize, api.LocationDiscrete)
		if d.Chance(2) {
			a.RegionStrategy = api.RegionAlone
		}
		if d.Chance(3) {
			a.Machines = map[string]int64{enginetest.Pick(d, "small", "large"): 1}
		}
		if d.Chance(2) {
			a.SiteID, a.Regions, a.GeoLocation = "", nil, nil
		}
	}
	policy := enginetest.RollLawPolicy(d)
	place := &policy.Spec.Placement
	if d.Chance(2) {
		place.ClusterAffinities = nil
	}
	for i := range place.SpreadConstraints {
		place.SpreadConstraints[i].MinGroups = new(int64(d(2)))
		place.SpreadConstraints[i].MaxGroups = new(int64(1 + d(2)))
	}
	if d.Chance(2) {
		place.SpreadConstraints = nil
	}
	selected := func() api.ClusterAffinity {
		if d.Chance(2) {
			return api.ClusterAffinity{LabelSelector: &api.LabelSelector{MatchLabels: map[string]string{"zone": enginetest.Pick(d, "a", "b")}}}
		}
		return api.ClusterAffinity{FieldSelector: []api.FieldRequirement{{Key: api.GroupByRegion, Operator: api.SelectorIn, Values: []string{enginetest.Pick(d, "eu", "us")}}}}
	}
	r := &api.ReplicaScheduling{Type: api.Divided}
	place.ReplicaScheduling = r
	if d.Chance(2) {
		r.ClusterLimits = []api.ClusterLimit{{Affinity: selected(), MaxReplicas: new(int64(d(2)))}}
	}
	if d.Chance(2) {
		r.WeightPreference = &api.WeightPreference{StaticWeights: []api.StaticWeight{{Affinity: selected(), Weight: 2}, {Affinity: selected(), Weight: 1}}}
	}
	p, err := NewPropagation(w, policy)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// told returns the binding of a workload, and the explanation of each cluster.
func told(f *columns.Fleet, p *Propagation) (binding string, parts map[string]map[string]string) {
	views := make([]*placement.View, len(p.Groups))
	for i := range p.Groups {
		views[i] = placement.NewView(f, p.Groups[i].Query, ledger.Others{}, nil)
	}
	var b Binder
	out, x := b.Explain(f, p, views, ledger.Others{}, Present{}, enginetest.Epoch)
	shares := make([]string, len(out.shares))
	for i, s := range out.shares {
		shares[i] = fmt.Sprint(f.Name(int(s.Row)), s.Replicas, out.flavors[s.Row])
	}
	slices.Sort(shares)
	parts = map[string]map[string]string{}
	for _, scorer := range siteScorers {
		parts[scorer.Name()] = map[string]string{}
	}
	for _, c := range x.Candidates {
		for _, s := range c.Scores {
			text, _ := json.Marshal(s)
			parts[s.Name][c.Cluster] = string(text)
		}
	}
	return fmt.Sprint(out.Complete, out.group, shares), parts
}

// TestBindingsDeclareTheirReads checks that a binding changes only with what one of its parts declares to read, and
// with the capacity. Every declaration is needed: without it, some binding would change although nothing that it
// declares to read has changed. The same holds for the scores of sites.
func TestBindingsDeclareTheirReads(t *testing.T) {
	d := enginetest.FixedDice(3)
	needed, met := map[string]bool{}, map[string]bool{}
	for range 250 {
		w := enginetest.RollLawWorld(d)
		for _, name := range w.Names() { // enough of them use some resource
			w.Clusters[name].Status.State, w.Clusters[name].Spec.Paused = api.StateOnline, false
			w.Clusters[name].Spec.Namespace, w.Clusters[name].Status.Taints, w.Clusters[name].Spec.Taints = "", nil, nil
			countFlavors(w.Clusters[name])
			w.Clusters[name].Spec.APIResources, w.Clusters[name].Spec.Metrics = nil, nil
		}
		f := w.Fleet()
		var list []*Propagation
		for range 6 {
			list = append(list, lawPropagation(t, d))
		}
		for range 12 {
			step := enginetest.RollLawStep(d, w)
			for _, c := range step.Clusters {
				countFlavors(c)
			}
			after, delta := f.With(step, w.Now)
			for _, p := range list {
				was, scores := told(f, p)
				is, now := told(after, p)
				reads := map[string]columns.Aspects{}
				for part, aspects := range p.reading {
					reads[part] |= aspects
					met[part] = met[part] || aspects != 0
				}
				all := p.Reads() | columns.Amounts // capacity follows from them
				if was != is && delta.Fleet == 0 && !delta.Concerns(all) {
					t.Fatalf("reads %b, but a change of something else turned %s into %s", all, was, is)
				}
				for part := range reads {
					rest := columns.Amounts
					for other, aspects := range reads {
						if other != part && !isScorer(other) { // scorers are covered by their own test
							rest |= aspects
						}
					}
					needed[part] = needed[part] || was != is && delta.Fleet == 0 && !delta.Concerns(rest)
				}
				for _, scorer := range siteScorers {
					for site := range rescored(scores[scorer.Name()], now[scorer.Name()]) {
						row, _ := after.Row(site)
						if !delta.ConcernsRow(row, scorer.Reads()) {
							t.Fatalf("%s reads %b, but a change of something else turned its score of %s from %s into %s",
								scorer.Name(), scorer.Reads(), site, scores[scorer.Name()][site], now[scorer.Name()][site])
						}
						needed["scores of "+scorer.Name()] = true
					}
				}
			}
			f = after
		}
	}
	for part := range met {
		if met[part] && !needed[part] && !isScorer(part) {
			t.Errorf("no case shows that what %s reads is needed", part)
		}
	}
	for _, scorer := range siteScorers {
		if scorer.Reads() != 0 && !needed["scores of "+scorer.Name()] {
			t.Errorf("no case shows that what scorer %s reads is needed", scorer.Name())
		}
	}
	if want := "checks cluster_limits machines static_weights"; !containsAll(met, want) {
		t.Errorf("the parts with reads are %v, want all of %s", met, want)
	}
}

// countFlavors gives a cluster machines of each of its flavors.
func countFlavors(c *api.Cluster) {
	c.Spec.Flavors = slices.Clone(c.Spec.Flavors)
	for i := range c.Spec.Flavors {
		c.Spec.Flavors[i].Count = new(int64(9))
	}
}

// rescored yields the sites whose score has changed.
func rescored(was, is map[string]string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for site, score := range was {
			if now, both := is[site]; both && now != score && !yield(site) {
				return
			}
		}
	}
}

func isScorer(part string) bool {
	return slices.ContainsFunc(siteScorers, func(s siteScorer) bool { return s.Name() == part })
}

func containsAll(met map[string]bool, names string) bool {
	return !slices.ContainsFunc(strings.Fields(names), func(name string) bool { return !met[name] })
}
