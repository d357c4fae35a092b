package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func workload(name string, replicas int64, change ...func(*api.Workload)) *api.Workload {
	w := &api.Workload{
		Metadata: api.Metadata{Name: name, Namespace: "shop"},
		Spec:     api.WorkloadSpec{APIVersion: "apps/v1", Kind: "Deployment"},
	}
	if replicas >= 0 {
		w.Spec.Replicas = &replicas
	}
	for _, c := range change {
		c(w)
	}
	return w
}

func policy(name string, change ...func(*api.PropagationPolicySpec)) *api.PropagationPolicy {
	p := &api.PropagationPolicy{
		Metadata: api.Metadata{Name: name, Namespace: "shop"},
		Spec:     api.PropagationPolicySpec{ResourceSelectors: []api.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}},
	}
	for _, c := range change {
		c(&p.Spec)
	}
	return p
}

func dynamic() *api.ReplicaScheduling {
	return &api.ReplicaScheduling{WeightPreference: &api.WeightPreference{DynamicWeight: api.DynamicWeightAvailable}}
}

func sized(name, cpu string) *api.Cluster {
	c := cluster(name, nil)
	c.Spec.Allocatable = api.Quantities{"cpu": api.Quantity(cpu)}
	return c
}

func replicasOf(p *planner, name string) map[string]int64 {
	out := map[string]int64{}
	for _, c := range p.bindings.workloads[api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: name}].status.Clusters {
		out[c.Name] = c.Replicas
	}
	return out
}

// checkBound checks that binding every workload from scratch changes nothing, and that the planner's state equals the
// statuses.
func checkBound(t checker, p *planner, now time.Time) {
	for key, w := range p.bindings.workloads {
		checkIndexes(t, p, w)
		want := clustersOf(&w.status)
		maps.DeleteFunc(want, func(_ string, n int64) bool { return n == 0 })
		if !maps.Equal(want, w.holds) {
			t.Fatalf("%s has the holds %v, want those of its status, %v", key, w.holds, want)
		}
		checkAllocation(t, p, w)
		checkSplit(t, p, w)
		scheduled := api.FindCondition(w.status.Conditions, api.ConditionScheduled)
		switch chosen, _ := p.bindings.claims.Choose(w.object, w.status.Policy); {
		case w.object.Spec.Allocation == nil && chosen == nil && (scheduled == nil || scheduled.Reason != api.ReasonNoPolicyMatched):
			t.Fatalf("%s: no policy selects it, but its condition is %+v", key, scheduled)
		case w.object.Spec.Allocation == nil && chosen == nil:
		case w.pending && (scheduled.Message == "" || scheduled.Status != api.ConditionFalse):
			t.Fatalf("%s is pending, but does not say why: %+v", key, scheduled)
		case w.pending && w.p.Preempts: // deciding from scratch preempts nothing
		default:
			checkFreshLook(t, p, w, now)
		}
	}
}

// drawPolicy draws one of a few policies.
func drawPolicy(t *rapid.T) *api.PropagationPolicy {
	return policy(fmt.Sprintf("policy%d", rapid.IntRange(0, 3).Draw(t, "policy")), func(s *api.PropagationPolicySpec) {
		s.ResourceSelectors[0].LabelSelector = rapid.SampledFrom([]*api.LabelSelector{nil, {MatchLabels: map[string]string{"tier": "a"}}}).Draw(t, "selects")
		s.Priority = rapid.Int64Range(0, 2).Draw(t, "priority")
		place := &s.Placement
		zone := func(z string) api.ClusterAffinity {
			return api.ClusterAffinity{LabelSelector: &api.LabelSelector{MatchLabels: map[string]string{"zone": z}}}
		}
		place.ReplicaScheduling = rapid.SampledFrom([]*api.ReplicaScheduling{
			nil, dynamic(), dynamic(), {DivisionPreference: api.Aggregated}, {Type: api.Duplicated},
			{WeightPreference: &api.WeightPreference{StaticWeights: []api.StaticWeight{{Affinity: zone("a"), Weight: 2}, {Affinity: zone("b"), Weight: 1}}}},
			{ClusterLimits: []api.ClusterLimit{{MaxReplicas: ptr(int64(3))}}},
		}).Draw(t, "division")
		switch rapid.IntRange(0, 3).Draw(t, "affinity") {
		case 0:
			place.ClusterAffinities = []api.AffinityTerm{{AffinityName: "first", ClusterAffinity: zone("a")}, {AffinityName: "second", ClusterAffinity: zone("b")}, {AffinityName: "third"}}
		case 1:
			place.ClusterAffinities = []api.AffinityTerm{{AffinityName: "first", ClusterAffinity: zone("a")}, {AffinityName: "second", ClusterAffinity: zone("c")}}
			if r := place.ReplicaScheduling; r != nil && r.WeightPreference != nil && r.WeightPreference.DynamicWeight != "" {
				place.ClusterAffinities[0].OverflowAffinities = []api.OverflowAffinity{{AffinityName: "more", ClusterAffinity: zone("b")}}
			}
		case 2:
			place.ClusterAffinity = &api.ClusterAffinity{ExcludeClusters: []string{"c0"}}
		}
		if rapid.IntRange(0, 2).Draw(t, "spreads") == 0 {
			place.SpreadConstraints = rapid.SampledFrom([][]api.GroupConstraint{
				{{SpreadByField: api.GroupByCluster, MaxGroups: ptr(int64(2))}},
				{{SpreadByField: api.GroupByCluster, MinGroups: ptr(int64(2))}, {SpreadByField: api.GroupByRegion, MinGroups: ptr(int64(2))}},
			}).Draw(t, "constraints")
		}
		if rapid.IntRange(0, 2).Draw(t, "tolerates") == 0 {
			place.ClusterTolerations = []api.Toleration{{Key: "k", Operator: api.TolerationExists, TolerationSeconds: rapid.SampledFrom([]*int64{nil, ptr(int64(30))}).Draw(t, "seconds")}}
		}
		if rapid.Bool().Draw(t, "fails over") {
			s.Failover = &api.Failover{
				Cluster:     &api.ClusterFailover{PurgeMode: rapid.SampledFrom([]api.PurgeMode{api.PurgeDirectly, api.PurgeGracefully}).Draw(t, "purge")},
				Application: &api.ApplicationFailover{Toleration: "30s", PurgeMode: rapid.SampledFrom([]api.PurgeMode{api.PurgeDirectly, api.PurgeGracefully, api.PurgeNever}).Draw(t, "application purge")},
			}
		}
		s.FailBack = rapid.SampledFrom([]*api.FailBack{nil, {Stabilization: "60s"}}).Draw(t, "fail_back")
		s.WorkloadPreemption = rapid.SampledFrom([]api.WorkloadPreemption{"", "", api.WorkloadPreemptionLowerPriority}).Draw(t, "preempts")
	})
}

func drawWorkload(t *rapid.T) *api.Workload {
	return workload(fmt.Sprintf("w%d", rapid.IntRange(0, 7).Draw(t, "workload")), rapid.Int64Range(-1, 9).Draw(t, "replicas"), func(w *api.Workload) {
		w.Metadata.Labels = map[string]string{"tier": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tier")}
		w.Spec.Priority = rapid.Int64Range(0, 2).Draw(t, "priority")
		if rapid.IntRange(0, 3).Draw(t, "requests") > 0 {
			w.Spec.ReplicaRequests = api.Quantities{"cpu": rapid.SampledFrom([]api.Quantity{"1", "1500m"}).Draw(t, "cpu")}
		}
		drawAllocation(t, w)
		drawDistribution(t, w)
	})
}

// TestBindingsEqualFreshOnes drives a planner with random changes and, after each pass, compares with binding
// everything from scratch.
func TestBindingsEqualFreshOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, p := newWorld(), newPlanner(discard())
		now := epoch
		clusterName := rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("c%d", rapid.IntRange(0, 7).Draw(t, "cluster")) })
		newCluster := func(t *rapid.T) *api.Cluster {
			c := cluster(clusterName.Draw(t, "name"), map[string]string{"zone": rapid.SampledFrom([]string{"a", "a", "b", "c"}).Draw(t, "zone")})
			c.Spec.Paused = rapid.IntRange(0, 9).Draw(t, "paused") == 0
			c.Spec.Region = rapid.SampledFrom([]string{"", "eu", "us"}).Draw(t, "region")
			if rapid.IntRange(0, 4).Draw(t, "sized") > 0 {
				c.Spec.Allocatable = api.Quantities{"cpu": api.Quantity(fmt.Sprint(rapid.IntRange(0, 12).Draw(t, "cpu")))}
				if rapid.IntRange(0, 3).Draw(t, "pods") == 0 {
					c.Spec.Allocatable["pods"] = "5"
				}
				if rapid.Bool().Draw(t, "reports") {
					c.Spec.Allocated = api.Quantities{"cpu": api.Quantity(fmt.Sprint(rapid.IntRange(0, 6).Draw(t, "allocated")))}
					at := now.Add(-time.Second)
					c.Status.CapacityReportedAt = &at
				}
			}
			drawMachines(t, c)
			c.Spec.Spot = &api.SpotSpec{Enabled: rapid.IntRange(0, 3).Draw(t, "spot") > 0}
			if rapid.IntRange(0, 5).Draw(t, "down") == 0 {
				c.Status.State = api.StateOffline
				at := now
				c.Status.Taints = []api.ClusterTaint{{Key: api.TaintUnreachable, Effect: api.EffectNoSelect, TimeAdded: &at}}
			}
			if rapid.IntRange(0, 4).Draw(t, "tainted") == 0 {
				at := now.Add(-time.Duration(rapid.IntRange(0, 60).Draw(t, "added")) * time.Second)
				taint := api.Taint{Key: "k", Effect: rapid.SampledFrom(api.TaintEffects).Draw(t, "effect")}
				c.Spec.Taints = []api.Taint{taint}
				c.Status.Taints = append(c.Status.Taints, api.ClusterTaint{Key: "k", Effect: taint.Effect, TimeAdded: &at})
			}
			return c
		}
		w.write(p, policy("base", func(s *api.PropagationPolicySpec) { s.Placement.ReplicaScheduling = dynamic() }))
		key := func(t *rapid.T) api.Key {
			return api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: fmt.Sprintf("w%d", rapid.IntRange(0, 7).Draw(t, "workload"))}
		}
		t.Repeat(map[string]func(*rapid.T){
			"cluster": func(t *rapid.T) { w.write(p, newCluster(t)) },
			"several clusters": func(t *rapid.T) {
				for range rapid.IntRange(1, 8).Draw(t, "n") {
					w.write(p, newCluster(t))
				}
			},
			"no cluster": func(t *rapid.T) { w.remove(p, api.Key{Kind: api.KindCluster, Name: clusterName.Draw(t, "name")}) },
			"policy":     func(t *rapid.T) { w.write(p, drawPolicy(t)) },
			"no policy": func(t *rapid.T) {
				w.remove(p, api.Key{Kind: api.KindPropagationPolicy, Namespace: "shop", Name: fmt.Sprintf("policy%d", rapid.IntRange(0, 3).Draw(t, "policy"))})
			},
			"workload":      func(t *rapid.T) { w.write(p, drawWorkload(t)) },
			"more workload": func(t *rapid.T) { w.write(p, drawWorkload(t)) },
			"no workload":   func(t *rapid.T) { w.remove(p, key(t)) },
			"health": func(t *rapid.T) {
				b := p.bindings.workloads[key(t)]
				if b == nil || len(clustersOf(&b.status)) == 0 {
					return
				}
				names := slices.Sorted(maps.Keys(clustersOf(&b.status)))
				p.bindings.report(b, api.HealthReport{
					Cluster: rapid.SampledFrom(names).Draw(t, "on"),
					Status:  rapid.SampledFrom([]api.HealthStatus{api.Healthy, api.Healthy, api.Unhealthy}).Draw(t, "health"),
				}, now)
			},
			"split": func(t *rapid.T) {
				for range rapid.IntRange(1, 4).Draw(t, "reports") {
					p.bindings.observeSplit(key(t), drawObserved(t, clusterName.Draw(t, "on")), now)
				}
			},
			"reschedule": func(t *rapid.T) {
				known, ok := w.objects[key(t)].(*api.Workload)
				if !ok {
					return
				}
				again := *known
				again.Metadata.RescheduleRequests++
				w.revision++
				w.objects[api.KeyOf(&again)] = &again
				p.put(&again, w.revision)
			},
			"placement": func(t *rapid.T) {
				w.write(p, newPlacement("other", 1, func(s *api.PlacementSpec) { s.ResourceRequests = api.Quantities{"cpu": "2"} }))
			},
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "seconds")) * time.Second)
			},
			"": func(t *rapid.T) {
				p.pass(now)
				checkBound(t, p, now)
				checkSettled(t, p, now)
			},
		})
	})
}

// TestARestartMovesNoWorkload gives a new planner what another one decided.
func TestARestartMovesNoWorkload(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, p := newWorld(), newPlanner(discard())
		for i := range rapid.IntRange(1, 8).Draw(t, "clusters") {
			c := sized(fmt.Sprintf("c%d", i), fmt.Sprint(rapid.IntRange(0, 12).Draw(t, "cpu")))
			c.Metadata.Labels = map[string]string{"zone": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "zone")}
			c.Spec.Region = rapid.SampledFrom([]string{"", "eu", "us"}).Draw(t, "region")
			drawMachines(t, c)
			w.write(p, c)
		}
		for range rapid.IntRange(1, 3).Draw(t, "policies") {
			w.write(p, drawPolicy(t))
		}
		for range rapid.IntRange(1, 8).Draw(t, "workloads") {
			w.write(p, drawWorkload(t))
		}
		p.pass(epoch)
		again := newPlanner(discard())
		for _, key := range slices.SortedFunc(maps.Keys(w.objects), api.Key.Compare) {
			object := w.objects[key]
			if b, ok := p.bindings.workloads[key]; ok {
				object = b.result()
			}
			again.put(object, w.specs[key])
		}
		for _, write := range again.pass(epoch) {
			b, _ := write.decision.(*workloadBinding)
			if b != nil && write.moved {
				t.Fatalf("%s was on %v, and is on %v after a restart", b.key(), p.bindings.workloads[b.key()].status.Clusters, b.status.Clusters)
			}
		}
	})
}

// TestReservationsNeverExceedCapacity creates, deletes, grows and shrinks workloads on a fixed set of clusters:
// reservations never exceed the capacity.
func TestReservationsNeverExceedCapacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, p := newWorld(), newPlanner(discard())
		for i := range rapid.IntRange(1, 6).Draw(t, "clusters") {
			c := sized(fmt.Sprintf("c%d", i), fmt.Sprint(rapid.IntRange(0, 12).Draw(t, "cpu")))
			c.Metadata.Labels = map[string]string{"zone": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "zone")}
			c.Spec.Region = rapid.SampledFrom([]string{"", "eu", "us", "us"}).Draw(t, "region")
			drawMachines(t, c)
			w.write(p, c)
		}
		t.Repeat(map[string]func(*rapid.T){
			"policy":   func(t *rapid.T) { w.write(p, drawPolicy(t)) },
			"workload": func(t *rapid.T) { w.write(p, drawWorkload(t)) },
			"no workload": func(t *rapid.T) {
				w.remove(p, api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: fmt.Sprintf("w%d", rapid.IntRange(0, 7).Draw(t, "workload"))})
			},
			"": func(t *rapid.T) {
				p.pass(epoch)
				checkPromised(t, p)
			},
		})
	})
}

// TestCommittedPreviewKeepsItsReservation gives the planner a workload together with its previewed binding, and another
// one that would be decided first.
func TestCommittedPreviewKeepsItsReservation(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, policy("base", func(s *api.PropagationPolicySpec) { s.Placement.ReplicaScheduling = dynamic() }))
	w.write(p, sized("c0", "4"))
	needy := func(w *api.Workload) { w.Spec.ReplicaRequests = api.Quantities{"cpu": "1"} }
	w.write(p, workload("second", 1, needy))
	p.pass(epoch)
	grown := workload("second", 4, needy)
	grown.Status = p.bindings.workloads[api.KeyOf(w.objects[api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "second"}])].status
	grown.Status.ObservedGeneration = 2
	grown.Status.Clusters = []api.WorkloadCluster{{Name: "c0", Replicas: 4, Since: &epoch}}
	w.write(p, grown)
	w.write(p, workload("first", 1, needy))
	p.pass(epoch)
	if got := replicasOf(p, "second"); got["c0"] != 4 {
		t.Errorf("replicas of the previewed workload %v, want 4 on c0", got)
	}
	if got := replicasOf(p, "first"); len(got) != 0 {
		t.Errorf("another workload took %v of the room of the previewed one", got)
	}
}

// TestALoweredPriorityMakesRoom has a workload wait that may take the place of
// others, until one of them becomes less important.
func TestALoweredPriorityMakesRoom(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, policy("base", func(s *api.PropagationPolicySpec) {
		s.Placement.ReplicaScheduling = dynamic()
		s.WorkloadPreemption = api.WorkloadPreemptionLowerPriority
	}))
	w.write(p, sized("c0", "4"))
	needy := func(priority int64) func(*api.Workload) {
		return func(w *api.Workload) {
			w.Spec.ReplicaRequests, w.Spec.Priority = api.Quantities{"cpu": "1"}, priority
		}
	}
	w.write(p, workload("there", 4, needy(5)))
	p.pass(epoch)
	w.write(p, workload("waiting", 4, needy(5)))
	p.pass(epoch)
	if got := replicasOf(p, "waiting"); len(got) != 0 {
		t.Fatalf("replicas %v, want none: the other workload has the same priority", got)
	}
	w.write(p, workload("there", 4, needy(4)))
	p.pass(epoch)
	if got := replicasOf(p, "waiting"); got["c0"] != 4 {
		t.Errorf("replicas %v, want 4 on c0: the other workload has a lower priority now", got)
	}
}

// TestAWorkloadWithoutAPolicyLeavesAClusterThatIsGone: a cluster that comes under
// the same name does not have it.
func TestAWorkloadWithoutAPolicyLeavesAClusterThatIsGone(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, policy("base", func(s *api.PropagationPolicySpec) { s.Placement.ReplicaScheduling = dynamic() }))
	w.write(p, sized("c0", "4"))
	w.write(p, workload("web", 4, func(w *api.Workload) { w.Spec.ReplicaRequests = api.Quantities{"cpu": "1"} }))
	p.pass(epoch)
	w.remove(p, api.Key{Kind: api.KindPropagationPolicy, Namespace: "shop", Name: "base"})
	p.pass(epoch)
	if got := replicasOf(p, "web"); got["c0"] != 4 {
		t.Fatalf("replicas %v without a policy, want 4 on c0", got)
	}
	w.remove(p, api.Key{Kind: api.KindCluster, Name: "c0"})
	p.pass(epoch)
	w.write(p, sized("c0", "4"))
	p.pass(epoch)
	if got := replicasOf(p, "web"); len(got) != 0 {
		t.Errorf("replicas %v, want none: the cluster was replaced with another one of the same name", got)
	}
}

// TestReportsAreRemovedWithPreemptedReplicas checks that later replicas on the same cluster do not inherit an unhealthy
// report.
func TestReportsAreRemovedWithPreemptedReplicas(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, policy("base", func(s *api.PropagationPolicySpec) {
		s.Placement.ReplicaScheduling = dynamic()
		s.WorkloadPreemption = api.WorkloadPreemptionLowerPriority
		s.Failover = &api.Failover{Application: &api.ApplicationFailover{Toleration: "0s"}}
	}))
	w.write(p, sized("c0", "4"))
	needy := func(w *api.Workload) { w.Spec.ReplicaRequests = api.Quantities{"cpu": "1"} }
	low := api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "low"}
	w.write(p, workload("low", 4, needy))
	p.pass(epoch)
	p.bindings.report(p.bindings.workloads[low], api.HealthReport{Cluster: "c0", Status: api.Unhealthy}, epoch)
	w.write(p, workload("low", 1, needy))
	w.write(p, workload("high", 3, needy, func(w *api.Workload) { w.Spec.Priority = 1 }))
	p.pass(epoch)
	if health := p.bindings.workloads[low].status.HealthOn("c0"); len(replicasOf(p, "low")) > 0 && health != nil {
		t.Errorf("new replicas %v have the health report %+v of the previous ones", replicasOf(p, "low"), health)
	}
	checkBound(t, p, epoch)
}

// A workload that keeps its binding without a policy reserves what its present spec requests.
func TestBindingWithoutPolicyReservesByPresentSpec(t *testing.T) {
	y, _ := start(t)
	cpus := func(w *api.Workload) { w.Spec.ReplicaRequests = api.Quantities{"cpu": "1"} }
	selecting := func(name string) *api.PropagationPolicy {
		return policy("only", func(s *api.PropagationPolicySpec) {
			s.ResourceSelectors[0].Name = name
			s.Placement.ReplicaScheduling = dynamic()
		})
	}
	y.put(sized("c1", "8"))
	y.put(selecting("web"))
	y.put(workload("web", 6))
	y.put(selecting("other"))
	y.put(workload("web", 6, cpus))
	status := y.put(workload("other", 4, cpus)).Object.(*api.Workload).Status
	if c := api.FindCondition(status.Conditions, api.ConditionScheduled); c == nil || c.Status != api.ConditionFalse || len(status.Clusters) > 0 {
		t.Errorf("4 replicas are on %+v (%+v), want none: 6 of the 8 CPUs of c1 are taken", status.Clusters, c)
	}
}
