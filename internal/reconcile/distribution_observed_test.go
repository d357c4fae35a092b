package reconcile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func has(cluster string, replicas, onDemand int64, state api.DistributionState, message ...string) api.ClusterDistribution {
	return api.ClusterDistribution{
		Cluster: cluster, Replicas: replicas, Mode: api.ModeCustom, TargetOnDemand: onDemand, TargetSpot: replicas - onDemand,
		OnDemand: onDemand, Spot: replicas - onDemand, State: state, Message: strings.Join(message, ""),
	}
}

func TestTheConditionFollowsWhatIsObserved(t *testing.T) {
	c0, c1, c2 := has("c0", 4, 2, api.DistributionConverged), has("c1", 3, 1, api.DistributionConverged), has("c2", 3, 1, api.DistributionConverged)
	off := func(c *api.ClusterSpec) { c.Spot.Enabled = false }
	for _, test := range []struct {
		name    string
		seen    []api.ClusterDistribution
		cluster func(c *api.ClusterSpec) // changes to c2
		change  func(w *api.Workload)
		status  api.ConditionStatus
		reason  string
		message string
	}{
		{"nothing observed", nil, nil, nil, "Unknown", api.ReasonNotObserved,
			`cluster "c0" has not been observed yet; cluster "c1" has not been observed yet; cluster "c2" has not been observed yet`},
		{"some clusters not observed", []api.ClusterDistribution{c1, c0}, nil, nil, "Unknown", api.ReasonNotObserved, `cluster "c2" has not been observed yet`},
		{"all clusters converged", []api.ClusterDistribution{c2, c1, c0}, nil, nil, "True", api.ReasonConverged, ""},
		{"one cluster replaces pods", []api.ClusterDistribution{c0, c1, has("c2", 3, 1, api.DistributionReplacing, "pod web-7 is replaced")}, nil, nil, "False", api.ReasonConverging,
			`cluster "c2": pod web-7 is replaced`},
		{"one cluster waits without a reason", []api.ClusterDistribution{c0, c1, has("c2", 3, 1, api.DistributionWaiting)}, nil, nil, "False", api.ReasonConverging,
			`cluster "c2": 1 on-demand and 2 spot of 1 and 2`},
		{"one cluster follows an older decision", []api.ClusterDistribution{c0, c1, has("c2", 3, 2, api.DistributionConverged)}, nil, nil, "False", api.ReasonConverging,
			`cluster "c2": 1 replicas must be on on-demand nodes, but it still uses 2`},
		{"one cluster has other replicas, and their split", []api.ClusterDistribution{c0, c1, has("c2", 5, 2, api.DistributionConverged)}, nil, nil, "True", api.ReasonConverged, ""},
		{"one cluster fell back", []api.ClusterDistribution{c0, c1, {Cluster: "c2", FallenBack: 2, State: api.DistributionDegraded}}, nil, nil, "False", api.ReasonFallenBack,
			`cluster "c2": 2 pods for spot nodes run on on-demand nodes`},
		{"one cluster is blocked", []api.ClusterDistribution{c0, c1, has("c2", 3, 1, api.DistributionBlocked, "the pods' own affinity allows only spot nodes")}, nil, nil, "False", api.ReasonBlockedSplit,
			`cluster "c2": the pods' own affinity allows only spot nodes`},
		{"one cluster lacks the workload", []api.ClusterDistribution{c0, c1, {Cluster: "c2", State: api.DistributionAbsent}}, nil, nil, "False", api.ReasonNotSplit, `cluster "c2": there is no such workload`},
		{"one cluster leaves the workload alone", []api.ClusterDistribution{c0, c1, {Cluster: "c2", State: api.DistributionUnmanaged}}, nil, nil, "False", api.ReasonNotSplit, `cluster "c2": a label of the workload disables the split`},
		{"one cluster has no spot nodes", []api.ClusterDistribution{c0, c1}, off, nil, "False", api.ReasonNotSplit, `cluster "c2" does not have spot enabled`},
		{"one cluster lost its spot nodes", []api.ClusterDistribution{c0, c1, c2}, off, nil, "False", api.ReasonNotSplit, `cluster "c2" does not have spot enabled`},
		{"worst cluster first", []api.ClusterDistribution{{Cluster: "c0", FallenBack: 1, State: api.DistributionDegraded}, has("c2", 3, 1, api.DistributionBlocked, "no")}, nil, nil, "False", api.ReasonBlockedSplit,
			`cluster "c2": no; cluster "c0": 1 pods for spot nodes run on on-demand nodes; cluster "c1" has not been observed yet`},
		{"long message", []api.ClusterDistribution{c0, c1, has("c2", 3, 1, api.DistributionBlocked, strings.Repeat("ä", 5000))}, nil, nil, "False", api.ReasonBlockedSplit,
			`cluster "c2": ` + strings.Repeat("ä", 128) + "…"},
		{"count above the replicas", []api.ClusterDistribution{has("c0", 4, 4, api.DistributionConverged), has("c1", 3, 3, api.DistributionConverged), has("c2", 3, 3, api.DistributionConverged)}, nil,
			distributed(api.ModeCustom, "11"), "True", api.ReasonConverged, "custom_on_demand 11 is above the 10 replicas: all of them go to on-demand nodes"},
		{"not replicated", []api.ClusterDistribution{has("c0", 7, 2, api.DistributionConverged), c1, c2}, nil,
			func(w *api.Workload) { w.Spec.Replicas = nil }, "True", api.ReasonConverged, ""},
		{"zero replicas", nil, nil, func(w *api.Workload) { w.Spec.Replicas = ptr[int64](0) }, "True", api.ReasonConverged, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, p := splitWorld(t)
			if test.change != nil {
				w.write(p, workload("web", 10, distributed(api.ModeCustom, "4"), test.change))
				w.stored(p, p.pass(epoch))
			}
			if test.cluster != nil {
				c := spotCluster("c2")
				test.cluster(&c.Spec)
				w.write(p, c)
				w.stored(p, p.pass(epoch))
			}
			for _, d := range test.seen {
				p.bindings.observeSplit(shopWeb, d, epoch)
			}
			w.stored(p, p.pass(epoch.Add(time.Second)))
			c := api.FindCondition(p.status(shopWeb).Conditions, api.ConditionDistributed)
			if c == nil || c.Status != test.status || c.Reason != test.reason || c.Message != test.message {
				t.Errorf("condition %+v, want %s %s %q", c, test.status, test.reason, test.message)
			}
			for _, d := range p.status(shopWeb).Distribution {
				if len(d.Message) > maxDistributionMessage {
					t.Errorf("message of %d bytes stored, want at most maxDistributionMessage", len(d.Message))
				}
			}
			checkBound(t, p, epoch.Add(time.Second))
		})
	}
	t.Run("four clusters", func(t *testing.T) {
		w, p := splitWorld(t)
		w.write(p, spotCluster("c3"))
		w.write(p, policy("base"))
		w.stored(p, p.pass(epoch))
		if c := api.FindCondition(p.status(shopWeb).Conditions, api.ConditionDistributed); !strings.HasSuffix(c.Message, `cluster "c2" has not been observed yet; and 1 more`) {
			t.Errorf("message %q, want it to end with the first three clusters and 1 more", c.Message)
		}
	})
	t.Run("no clusters", func(t *testing.T) {
		w, p := splitWorld(t)
		for _, name := range []string{"c0", "c1", "c2"} {
			w.remove(p, api.Key{Kind: api.KindCluster, Name: name})
		}
		p.pass(epoch)
		if c := api.FindCondition(p.status(shopWeb).Conditions, api.ConditionDistributed); c.Status != api.ConditionUnknown || c.Message != "it does not run on any cluster yet" {
			t.Errorf("condition %+v, want Unknown, because it does not run anywhere", c)
		}
	})
}

// TestAReportDecidesNothing: it is written, and neither counts as a decision nor has
// one made again.
func TestAReportDecidesNothing(t *testing.T) {
	w, p := splitWorld(t)
	w.write(p, workload("other", 10, distributed(api.ModeCustom, "4")))
	w.stored(p, p.pass(epoch))
	before := *p.status(shopWeb)
	now := epoch.Add(time.Minute)
	p.bindings.observeSplit(shopWeb, has("c1", 3, 1, api.DistributionReplacing), now)
	if p.queue.len() > 0 {
		t.Error("an observation put a decision into the queue")
	}
	writes := p.pass(now)
	if len(writes) != 1 || writes[0].key() != shopWeb || !writes[0].observed || writes[0].moved {
		t.Fatalf("writes %+v, want one observation", writes)
	}
	w.stored(p, writes)
	after := *p.status(shopWeb)
	if len(after.Distribution) != 1 || !after.Distribution[0].ObservedAt.Equal(now) || !after.Distribution[0].Same(has("c1", 3, 1, api.DistributionReplacing)) {
		t.Errorf("observed %+v, want c1 replacing, at the time of the observation", after.Distribution)
	}
	if len(before.Distribution) != 0 {
		t.Error("an earlier status was modified")
	}
	after.Distribution, after.Conditions = before.Distribution, before.Conditions
	if !reflect.DeepEqual(after, before) {
		t.Errorf("status %+v,\nwant %+v as before", after, before)
	}

	// Repeating the report changes nothing, however late.
	p.bindings.observeSplit(shopWeb, has("c1", 3, 1, api.DistributionReplacing), now.Add(time.Hour))
	if writes := p.pass(now.Add(time.Hour)); len(writes) > 0 {
		t.Errorf("the same observation is written again: %+v", writes)
	}
	// Reports about something that does not exist are ignored.
	for key, d := range map[api.Key]api.ClusterDistribution{
		{Kind: api.KindWorkload, Namespace: "shop", Name: "none"}: c1Converged, shopWeb: has("c9", 3, 1, api.DistributionConverged),
		{Kind: api.KindCluster, Name: "c1"}: c1Converged,
	} {
		p.bindings.observeSplit(key, d, now)
	}
	if writes := p.pass(now); len(writes) > 0 {
		t.Errorf("an observation of something that does not exist is written: %+v", writes)
	}
}

var c1Converged = has("c1", 3, 1, api.DistributionConverged)

// replaced returns a converged cluster with a number of replaced pods, which the condition does not mention.
func replaced(n int64) api.ClusterDistribution {
	d := c1Converged
	d.Replaced = n
	return d
}

// TestAReportIsNotLost where the workload is decided in the same pass, and where an
// older status comes back from the store meanwhile.
func TestAReportIsNotLost(t *testing.T) {
	w, p := splitWorld(t)
	p.bindings.observeSplit(shopWeb, replaced(1), epoch)
	first := p.pass(epoch)[0].result()
	p.bindings.observeSplit(shopWeb, replaced(2), epoch)
	p.queue.mark(p.bindings.workloads[shopWeb])
	writes := p.pass(epoch)
	p.put(first, w.specs[shopWeb])
	if len(writes) != 1 || writes[0].observed {
		t.Fatalf("writes %+v, want one decision", writes)
	}
	if got := writes[0].result().(*api.Workload).Status.Distribution; len(got) != 1 || got[0].Replaced != 2 {
		t.Errorf("written %+v, want one observation with 2 replaced pods", got)
	}
	w.stored(p, writes)
	if writes := p.pass(epoch); len(writes) > 0 || p.status(shopWeb).Distribution[0].Replaced != 2 {
		t.Errorf("%d more writes, want none; observed %+v", len(writes), p.status(shopWeb).Distribution)
	}
}

// TestObservationsAreRemoved checks that observations end with the cluster, and with the distribution.
func TestObservationsAreRemoved(t *testing.T) {
	observe := func(w *world, p *planner) {
		for _, d := range []api.ClusterDistribution{has("c2", 3, 1, api.DistributionConverged), has("c0", 4, 2, api.DistributionConverged), c1Converged} {
			p.bindings.observeSplit(shopWeb, d, epoch)
		}
		w.stored(p, p.pass(epoch))
	}
	names := func(p *planner) (names []string) {
		for _, d := range p.status(shopWeb).Distribution {
			names = append(names, d.Cluster)
		}
		return names
	}
	t.Run("cluster", func(t *testing.T) {
		w, p := splitWorld(t)
		observe(w, p)
		if got := names(p); !slices.Equal(got, []string{"c0", "c1", "c2"}) {
			t.Fatalf("observed on %v, want c0, c1 and c2", got)
		}
		w.remove(p, api.Key{Kind: api.KindCluster, Name: "c1"})
		w.stored(p, p.pass(epoch))
		if got := names(p); !slices.Equal(got, []string{"c0", "c2"}) {
			t.Errorf("observed on %v, want c0 and c2", got)
		}
		w.write(p, policy("base", func(s *api.PropagationPolicySpec) {
			s.Placement.ClusterAffinity = &api.ClusterAffinity{ClusterNames: []string{"c2"}}
		}))
		w.stored(p, p.pass(epoch))
		if got := names(p); !slices.Equal(got, []string{"c2"}) {
			t.Errorf("observed on %v, want c2", got)
		}
		checkBound(t, p, epoch)
	})
	t.Run("cluster that is being left", func(t *testing.T) {
		w, p := splitWorld(t)
		for i := range 5 { // with so few clusters, none may be given up
			w.write(p, spotCluster(fmt.Sprintf("d%d", i)))
		}
		observe(w, p)
		lost := spotCluster("c1")
		lose(lost, epoch)
		w.write(p, lost)
		w.stored(p, p.pass(epoch))
		if s := p.status(shopWeb); len(s.Evictions) != 1 || s.Evictions[0].Cluster != "c1" {
			t.Fatalf("evictions %+v, want c1", s.Evictions)
		}
		p.bindings.observeSplit(shopWeb, replaced(1), epoch)
		w.stored(p, p.pass(epoch))
		s := p.status(shopWeb)
		if got := names(p); !slices.Equal(got, []string{"c0", "c1", "c2"}) || s.Distribution[1].Replaced != 1 {
			t.Errorf("observed %+v, want c0, c1 and c2, with 1 replaced pod on c1", s.Distribution)
		}
		// The state of evicted replicas says nothing about the workload.
		if c := api.FindCondition(s.Conditions, api.ConditionDistributed); strings.Contains(c.Message, "c1") {
			t.Errorf("condition %+v, want no mention of c1", c)
		}
		w.stored(p, p.pass(epoch.Add(time.Hour)))
		if got := names(p); !slices.Equal(got, []string{"c0", "c2"}) {
			t.Errorf("observed %+v after the eviction, want c0 and c2", p.status(shopWeb).Distribution)
		}
	})
	t.Run("distribution", func(t *testing.T) {
		w, p := splitWorld(t)
		observe(w, p)
		w.write(p, workload("web", 10))
		w.stored(p, p.pass(epoch))
		s := p.status(shopWeb)
		if s.Distribution != nil || splitText(s) != "c0 4, c1 3, c2 3" || api.FindCondition(s.Conditions, api.ConditionDistributed) != nil {
			t.Errorf("%s, observed %+v, conditions %+v; want no split and no observation", splitText(s), s.Distribution, s.Conditions)
		}
		if p.bindings.observeSplit(shopWeb, c1Converged, epoch); len(p.pass(epoch)) > 0 || s.Distribution != nil {
			t.Errorf("observed %+v, want nothing without a distribution", s.Distribution)
		}
	})
	t.Run("policy", func(t *testing.T) {
		w, p := splitWorld(t)
		observe(w, p)
		w.remove(p, api.Key{Kind: api.KindPropagationPolicy, Namespace: "shop", Name: "base"})
		w.stored(p, p.pass(epoch))
		if got := names(p); len(got) != 3 || splitText(p.status(shopWeb)) != "c0 4=2/2, c1 3=1/2, c2 3=1/2" {
			t.Errorf("replicas %s, observed on %v, want no change", splitText(p.status(shopWeb)), got)
		}
		w.remove(p, api.Key{Kind: api.KindCluster, Name: "c1"})
		w.stored(p, p.pass(epoch))
		// Of the 7 remaining replicas, 4 must still be on on-demand nodes.
		if got := names(p); !slices.Equal(got, []string{"c0", "c2"}) || splitText(p.status(shopWeb)) != "c0 4=2/2, c2 3=2/1" {
			t.Errorf("replicas %s, observed on %v, want c0 and c2", splitText(p.status(shopWeb)), got)
		}
		if x := p.bindings.explain(p.bindings.workloads[shopWeb], epoch); !strings.HasSuffix(x.Summary, "; 4 of the replicas go to on-demand nodes, 3 to spot nodes") {
			t.Errorf("summary %q, want it to end with the split", x.Summary)
		}
		checkBound(t, p, epoch)
	})
}

// TestSpotSwitchedOffAndOn checks that the condition changes at once, and that no decision is made.
func TestSpotSwitchedOffAndOn(t *testing.T) {
	w, p := splitWorld(t)
	for _, d := range []api.ClusterDistribution{has("c0", 4, 2, api.DistributionConverged), c1Converged, has("c2", 3, 1, api.DistributionConverged)} {
		p.bindings.observeSplit(shopWeb, d, epoch)
	}
	w.write(p, workload("plain", 10))
	w.stored(p, p.pass(epoch))
	for _, want := range []api.ConditionStatus{api.ConditionFalse, api.ConditionTrue} {
		c := spotCluster("c1")
		c.Spec.Spot.Enabled = want == api.ConditionTrue
		w.write(p, c)
		writes := p.pass(epoch)
		if len(writes) != 1 || writes[0].key() != shopWeb || !writes[0].observed {
			t.Fatalf("writes %+v, want one observation", writes)
		}
		w.stored(p, writes)
		if got := api.FindCondition(p.status(shopWeb).Conditions, api.ConditionDistributed); got.Status != want {
			t.Errorf("condition %+v, want %s", got, want)
		}
	}
}

// TestACommittedPreviewBringsNoOldObservation: what was observed since it was made
// stands.
func TestACommittedPreviewBringsNoOldObservation(t *testing.T) {
	w, p := splitWorld(t)
	p.bindings.observeSplit(shopWeb, has("c1", 3, 1, api.DistributionReplacing), epoch)
	w.stored(p, p.pass(epoch))
	previewed := workload("web", 10, distributed(api.ModeCustom, "7"))
	previewed.Status = *p.status(shopWeb)
	p.bindings.observeSplit(shopWeb, c1Converged, epoch)
	w.stored(p, p.pass(epoch))
	previewed.Status.ObservedGeneration = 2
	w.write(p, previewed)
	writes := p.pass(epoch)
	if s := p.status(shopWeb); len(writes) != 1 || len(s.Distribution) != 1 || s.Distribution[0].State != api.DistributionConverged {
		t.Errorf("%d writes, observed %+v; want one write of c1 converged", len(writes), s.Distribution)
	}
}
