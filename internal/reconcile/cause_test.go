package reconcile

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// keyOf returns the key of a test object in the namespace "shop".
func keyOf(kind api.Kind, name string) api.Key {
	return api.Key{Kind: kind, Namespace: "shop", Name: name}
}

// TestCauses makes one change, or several in one pass, and checks what a decision says was the cause of its move.
func TestCauses(t *testing.T) {
	web := keyOf(api.KindPlacement, "web")
	deploy := keyOf(api.KindWorkload, "web")
	one := func(change ...func(*api.PlacementSpec)) *api.Placement { return newPlacement("web", 1, change...) }
	rated := func(w *world, p *planner, a, b float64) {
		w.write(p, provider())
		w.write(p, metric("ma", a))
		w.write(p, metric("mb", b))
		w.write(p, cluster("a", nil, api.MetricRef{Name: "ma"}))
		w.write(p, cluster("b", nil, api.MetricRef{Name: "mb"}))
	}
	tainted := func(name string, effect api.TaintEffect) *api.Cluster {
		c := cluster(name, nil)
		c.Spec.Taints = []api.Taint{{Key: "maintenance", Effect: effect}}
		return c
	}
	in := func(name string, state api.ClusterState) *api.Cluster {
		c := cluster(name, nil)
		c.Status.State = state
		return c
	}
	paused := func(name string, is bool) *api.Cluster {
		c := cluster(name, nil, api.MetricRef{Name: "m" + name})
		c.Spec.Paused = is
		return c
	}
	labelled := func(name, value string) *api.Cluster { return cluster(name, map[string]string{"tier": value}) }
	scored := func(cluster string, value int64, until *time.Time) *api.PlacementScore {
		return &api.PlacementScore{
			Metadata: api.Metadata{Name: "cost", Cluster: cluster},
			Spec:     api.PlacementScoreSpec{Scores: map[string]int64{"cheap": value}, ValidUntil: until},
		}
	}
	byScore := func(s *api.PlacementSpec) {
		s.Strategy = "prioritizers"
		s.PrioritizerPolicy = &api.PrioritizerPolicy{Mode: api.ModeExact, Configurations: []api.PrioritizerConfig{
			{Type: api.PrioritizerAddon, ResourceName: "cost", ScoreName: "cheap", Weight: ptr(int64(1))},
		}}
	}
	measured := func(name, cpu string) *api.Cluster {
		c := sized(name, cpu)
		c.Spec.Capacity = api.Quantities{"cpu": "10"}
		return c
	}
	// compared are two clusters of which the better one is that with more CPUs, if a third has far fewer.
	compared := func(w *world, p *planner) {
		for name, c := range map[string]struct {
			cpu  string
			cost int64
		}{"a": {"9", -60}, "b": {"10", -100}, "c": {"1", -100}} {
			w.write(p, measured(name, c.cpu))
			w.write(p, scored(name, c.cost, nil))
		}
		w.write(p, one(byScore, func(s *api.PlacementSpec) {
			s.PrioritizerPolicy.Configurations = append(s.PrioritizerPolicy.Configurations, api.PrioritizerConfig{
				Type: api.PrioritizerBuiltin, Name: api.PrioritizerAllocatableCPU, Weight: ptr(int64(1)),
			})
		}))
	}
	placedOn := func(cluster string) *api.Placement {
		p := one()
		p.Status = api.PlacementStatus{Clusters: []string{cluster}, Decisions: []api.Decision{{Cluster: cluster, Rank: 1}}, ObservedGeneration: 1, DecisionRevision: 3}
		return p
	}
	minute := epoch.Add(time.Minute)
	divided := func(s *api.PropagationPolicySpec) { s.Placement.ReplicaScheduling = dynamic() }
	cpus := func(w *api.Workload) { w.Spec.ReplicaRequests = api.Quantities{"cpu": "1"} }
	groups := func(s *api.PropagationPolicySpec) {
		divided(s)
		s.Placement.ClusterAffinities = []api.AffinityTerm{
			{AffinityName: "main", ClusterAffinity: api.ClusterAffinity{ClusterNames: []string{"a"}}},
			{AffinityName: "spare", ClusterAffinity: api.ClusterAffinity{ClusterNames: []string{"b"}}},
		}
		s.FailBack = &api.FailBack{Mode: api.FailBackAutomatic, Stabilization: "1m"}
	}
	become := func(w *world, p *planner, state api.ClusterState, names ...string) {
		for _, name := range names {
			c := in(name, state)
			c.Spec.Allocatable = api.Quantities{"cpu": "4"}
			w.write(p, c)
		}
	}
	// grouped has a workload in the group of the cluster a, which may fail over to that of b.
	grouped := func(w *world, p *planner, change ...func(*api.PropagationPolicySpec)) {
		become(w, p, api.StateOnline, "a", "b", "c", "d")
		w.write(p, policy("p", append([]func(*api.PropagationPolicySpec){groups}, change...)...))
		w.write(p, workload("web", 2, cpus))
	}
	// failover takes the cluster a offline, and back.
	failover := func(w *world, p *planner) {
		become(w, p, api.StateOffline, "a")
		w.stored(p, p.pass(epoch.Add(time.Second)))
		become(w, p, api.StateOnline, "a")
		w.stored(p, p.pass(epoch.Add(2*time.Second)))
	}
	twoEach := func(s *api.PropagationPolicySpec) {
		s.Placement.ClusterAffinities[0].ClusterNames = []string{"a", "e"}
		s.Placement.ClusterAffinities[1].ClusterNames = []string{"b", "c"}
	}
	for name, c := range map[string]struct {
		before func(w *world, p *planner)
		// between makes passes before the one that moves the decision.
		between func(w *world, p *planner)
		change  func(w *world, p *planner)
		after   time.Duration // of the last pass, after the first
		of      api.Key
		want    string
	}{
		"created": {
			before: func(w *world, p *planner) { rated(w, p, 0.5, 0.9) },
			change: func(w *world, p *planner) { w.write(p, one()) },
			of:     web, want: `{"type":"spec","object":{"kind":"placement","namespace":"shop","name":"web"},"actor":{"token":"alice"}}`,
		},
		"own spec": {
			before: func(w *world, p *planner) { rated(w, p, 0.5, 0.9); w.write(p, one()) },
			change: func(w *world, p *planner) {
				w.write(p, metric("mb", 0.8))
				w.write(p, newPlacement("web", 2))
			},
			of: web, want: `{"type":"spec","object":{"kind":"placement","namespace":"shop","name":"web"},"field":"spec.number_of_clusters","old":"1","new":"2","actor":{"token":"alice"}}`,
		},
		"written twice": {
			before: func(w *world, p *planner) { rated(w, p, 0.5, 0.9); w.write(p, one()) },
			change: func(w *world, p *planner) {
				w.write(p, newPlacement("web", 0))
				w.write(p, newPlacement("web", 2))
			},
			of: web, want: `{"type":"spec","object":{"kind":"placement","namespace":"shop","name":"web"},"field":"spec.number_of_clusters","old":"1","new":"2","actor":{"token":"alice"}}`,
		},
		"written twice before it is decided": {
			before: func(w *world, p *planner) { rated(w, p, 0.5, 0.9) },
			change: func(w *world, p *planner) {
				w.write(p, one())
				w.write(p, newPlacement("web", 2))
			},
			of: web, want: `{"type":"spec","object":{"kind":"placement","namespace":"shop","name":"web"},"actor":{"token":"alice"}}`,
		},
		"labels": {
			before: func(w *world, p *planner) {
				w.write(p, sized("a", "4"))
				w.write(p, sized("b", "4"))
				w.write(p, policy("p", divided, func(s *api.PropagationPolicySpec) {
					s.ResourceSelectors[0].LabelSelector = &api.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
				}))
				w.write(p, workload("web", 2, cpus))
			},
			change: func(w *world, p *planner) {
				w.write(p, workload("web", 2, cpus, func(w *api.Workload) {
					w.Metadata.Labels = map[string]string{"tier": "gold"}
				}))
			},
			of: deploy, want: `{"type":"spec","object":{"kind":"workload","namespace":"shop","name":"web"},"field":"metadata.labels.tier","new":"gold","actor":{"token":"alice"}}`,
		},
		"reschedule": {
			before: func(w *world, p *planner) {
				rated(w, p, 0.5, 0.9)
				w.write(p, one(func(s *api.PlacementSpec) { s.MinImprovement = 0.5 }))
			},
			between: func(w *world, p *planner) {
				w.write(p, metric("mb", 0.4))
				w.stored(p, p.pass(epoch.Add(time.Second)))
			},
			change: func(w *world, p *planner) {
				d, _ := p.known(web).result().(*api.Placement)
				again := *d
				again.Metadata.RescheduleRequests = 1 // which is no new spec
				w.revision++
				p.put(&again, w.revision)
			},
			of: web, want: `{"type":"reschedule","object":{"kind":"placement","namespace":"shop","name":"web"},"actor":{"token":"alice"}}`,
		},
		"metric": {
			before: func(w *world, p *planner) { rated(w, p, 0.5, 0.9); w.write(p, one()) },
			change: func(w *world, p *planner) { w.write(p, metric("mb", 0.2)) },
			of:     web, want: `{"type":"metric","object":{"kind":"metric","name":"mb"},"field":"status.value","old":"0.9","new":"0.2"}`,
		},
		"the metric that differs more": {
			before: func(w *world, p *planner) { rated(w, p, 0.5, 0.6); w.write(p, one()) },
			change: func(w *world, p *planner) {
				w.write(p, metric("mb", 0.55))
				w.write(p, metric("ma", 0.9))
			},
			of: web, want: `{"type":"metric","object":{"kind":"metric","name":"ma"},"field":"status.value","old":"0.5","new":"0.9"}`,
		},
		"bounds of a metric": {
			before: func(w *world, p *planner) { rated(w, p, 0.5, 0.9); w.write(p, one()) },
			change: func(w *world, p *planner) {
				m := metric("mb", 0.9)
				m.Spec.Max = ptr(9.0)
				w.write(p, m)
			},
			of: web, want: `{"type":"metric","object":{"kind":"metric","name":"mb"},"field":"spec.max","old":"1","new":"9","actor":{"token":"alice"}}`,
		},
		"metric constraint": {
			before: func(w *world, p *planner) {
				rated(w, p, 0.5, 0.9)
				w.write(p, metric("load", 0.1))
				for _, name := range []string{"a", "b"} {
					w.write(p, cluster(name, nil, api.MetricRef{Name: "m" + name}, api.MetricRef{Name: "load", Weight: ptr(0.0)}))
				}
				w.write(p, cluster("c", nil))
				w.write(p, newPlacement("web", -1, func(s *api.PlacementSpec) { s.MetricConstraints = []string{"load < 0.5"} }))
			},
			change: func(w *world, p *planner) {
				w.write(p, metric("mb", 0.1))
				w.write(p, metric("load", 0.7))
			},
			of: web, want: `{"type":"metric","object":{"kind":"metric","name":"load"},"field":"status.value","old":"0.1","new":"0.7"}`,
		},
		"metric moved a decision that was too young before": {
			before: func(w *world, p *planner) {
				rated(w, p, 0.5, 0.9)
				w.write(p, one(func(s *api.PlacementSpec) { s.RescheduleAfter = "60s" }))
			},
			between: func(w *world, p *planner) {
				w.write(p, metric("mb", 0.2))
				w.stored(p, p.pass(epoch.Add(10*time.Second)))
				w.write(p, cluster("unrelated", nil))
				w.stored(p, p.pass(epoch.Add(20*time.Second)))
			},
			after: time.Minute, of: web,
			want: `{"type":"time","object":{"kind":"placement","namespace":"shop","name":"web"},"field":"spec.reschedule_after","old":"60s"}`,
		},
		"metric, just when a decision is old enough": {
			before: func(w *world, p *planner) {
				rated(w, p, 0.5, 0.9)
				w.write(p, one(func(s *api.PlacementSpec) { s.RescheduleAfter = "60s" }))
			},
			between: func(w *world, p *planner) {
				w.write(p, metric("mb", 0.2))
				w.stored(p, p.pass(epoch.Add(10*time.Second)))
				w.write(p, metric("mb", 0.9))
				w.stored(p, p.pass(epoch.Add(20*time.Second)))
			},
			change: func(w *world, p *planner) { w.write(p, metric("ma", 0.95)) },
			after:  time.Minute, of: web,
			want: `{"type":"metric","object":{"kind":"metric","name":"ma"},"field":"status.value","old":"0.5","new":"0.95"}`,
		},
		"old enough, after a restart": {
			before: func(w *world, p *planner) {
				rated(w, p, 0.5, 0.9)
				placed := placedOn("a")
				placed.Spec.RescheduleAfter, placed.Status.ScheduledAt = "60s", &epoch
				w.write(p, placed)
			},
			after: time.Minute, of: web,
			want: `{"type":"time","object":{"kind":"placement","namespace":"shop","name":"web"},"field":"spec.reschedule_after","old":"60s"}`,
		},
		"placement score": {
			before: func(w *world, p *planner) {
				w.write(p, cluster("a", nil))
				w.write(p, cluster("b", nil))
				w.write(p, scored("a", 10, nil))
				w.write(p, one(byScore))
			},
			change: func(w *world, p *planner) { w.write(p, scored("b", 20, nil)) },
			of:     web, want: `{"type":"score","object":{"kind":"placement_score","namespace":"b","name":"cost"},"actor":{"token":"alice"}}`,
		},
		"changed score": {
			before: func(w *world, p *planner) {
				w.write(p, cluster("a", nil))
				w.write(p, cluster("b", nil))
				w.write(p, scored("a", 10, nil))
				w.write(p, scored("b", 5, nil))
				w.write(p, one(byScore))
			},
			change: func(w *world, p *planner) { w.write(p, scored("a", -3, nil)) },
			of:     web, want: `{"type":"score","object":{"kind":"placement_score","namespace":"a","name":"cost"},"field":"spec.scores.cheap","old":"10","new":"-3","actor":{"token":"alice"}}`,
		},
		"expired score": {
			before: func(w *world, p *planner) {
				w.write(p, cluster("a", nil))
				w.write(p, cluster("b", nil))
				w.write(p, scored("a", 10, &minute))
				w.write(p, scored("b", 5, nil))
				w.write(p, one(byScore))
			},
			after: 2 * time.Minute, of: web,
			want: `{"type":"time","object":{"kind":"placement_score","namespace":"a","name":"cost"},"field":"spec.valid_until","old":"2026-03-01T12:01:00Z"}`,
		},
		"taint": {
			before: func(w *world, p *planner) {
				w.write(p, cluster("a", nil))
				w.write(p, newPlacement("web", -1))
			},
			change: func(w *world, p *planner) { w.write(p, tainted("a", api.EffectNoExecute)) },
			of:     web, want: `{"type":"taint","object":{"kind":"cluster","name":"a"},"field":"spec.taints","new":"maintenance:NoSelect","actor":{"token":"alice"}}`,
		},
		"taint removed": {
			before: func(w *world, p *planner) {
				w.write(p, tainted("a", api.EffectNoExecute))
				w.write(p, newPlacement("web", -1))
			},
			change: func(w *world, p *planner) { w.write(p, cluster("a", nil)) },
			of:     web, want: `{"type":"taint","object":{"kind":"cluster","name":"a"},"field":"spec.taints","old":"maintenance:NoSelect","actor":{"token":"alice"}}`,
		},
		"toleration ran out": {
			before: func(w *world, p *planner) {
				c := tainted("a", api.EffectNoExecute)
				c.Metadata.ModifiedAt = &epoch
				w.write(p, c)
				w.write(p, newPlacement("web", -1, func(s *api.PlacementSpec) {
					s.Tolerations = []api.Toleration{{Key: "maintenance", Operator: api.TolerationExists, TolerationSeconds: ptr(int64(60))}}
				}))
			},
			after: 2 * time.Minute, of: web,
			want: `{"type":"time","object":{"kind":"cluster","name":"a"},"field":"spec.taints","new":"maintenance:NoSelect"}`,
		},
		"cluster offline": {
			before: func(w *world, p *planner) {
				w.write(p, in("a", api.StateOnline))
				w.write(p, in("b", api.StateOnline))
				w.write(p, newPlacement("web", -1))
			},
			change: func(w *world, p *planner) { w.write(p, in("a", api.StateOffline)) },
			of:     web, want: `{"type":"cluster_offline","object":{"kind":"cluster","name":"a"},"field":"status.state","old":"online","new":"offline"}`,
		},
		"cluster back": {
			before: func(w *world, p *planner) {
				w.write(p, in("a", api.StateOffline))
				w.write(p, newPlacement("web", -1))
			},
			change: func(w *world, p *planner) { w.write(p, in("a", api.StateOnline)) },
			of:     web, want: `{"type":"cluster_back","object":{"kind":"cluster","name":"a"},"field":"status.state","old":"offline","new":"online"}`,
		},
		"cluster created": {
			before: func(w *world, p *planner) {
				w.write(p, cluster("a", nil))
				w.write(p, newPlacement("web", -1))
			},
			change: func(w *world, p *planner) { w.write(p, cluster("b", nil)) },
			of:     web, want: `{"type":"cluster","object":{"kind":"cluster","name":"b"},"actor":{"token":"alice"}}`,
		},
		"cluster deleted": {
			before: func(w *world, p *planner) {
				w.write(p, cluster("a", nil))
				w.write(p, newPlacement("web", -1))
			},
			change: func(w *world, p *planner) { w.remove(p, api.Key{Kind: api.KindCluster, Name: "a"}) },
			of:     web, want: `{"type":"cluster","object":{"kind":"cluster","name":"a"}}`,
		},
		"label": {
			before: func(w *world, p *planner) {
				w.write(p, labelled("a", "gold"))
				w.write(p, newPlacement("web", -1, func(s *api.PlacementSpec) { s.LabelConstraints = []string{"tier is gold"} }))
			},
			change: func(w *world, p *planner) { w.write(p, labelled("a", "tin")) },
			of:     web, want: `{"type":"cluster","object":{"kind":"cluster","name":"a"},"field":"metadata.labels.tier","old":"gold","new":"tin","actor":{"token":"alice"}}`,
		},
		"cluster set": {
			before: func(w *world, p *planner) {
				w.write(p, cluster("a", nil))
				w.write(p, &api.ClusterSet{Metadata: api.Metadata{Name: "eu"}, Spec: api.ClusterSetSpec{Clusters: []string{"a"}}})
				w.write(p, newPlacement("web", -1, func(s *api.PlacementSpec) { s.ClusterSets = []string{"eu"} }))
			},
			change: func(w *world, p *planner) {
				w.write(p, &api.ClusterSet{Metadata: api.Metadata{Name: "eu"}, Spec: api.ClusterSetSpec{Clusters: []string{"b"}}})
			},
			of: web, want: `{"type":"cluster_set","object":{"kind":"cluster_set","name":"eu"},"field":"spec.clusters","old":"[\"a\"]","new":"[\"b\"]","actor":{"token":"alice"}}`,
		},
		"capacity": {
			before: func(w *world, p *planner) {
				w.write(p, sized("a", "4"))
				w.write(p, newPlacement("web", -1, func(s *api.PlacementSpec) { s.ResourceRequests = api.Quantities{"cpu": "2"} }))
			},
			change: func(w *world, p *planner) { w.write(p, sized("a", "1")) },
			of:     web, want: `{"type":"capacity","object":{"kind":"cluster","name":"a"},"field":"spec.allocatable.cpu","old":"4","new":"1","actor":{"token":"alice"}}`,
		},
		"freed by another": {
			before: func(w *world, p *planner) {
				w.write(p, sized("a", "4"))
				w.write(p, newPlacement("other", 1, func(s *api.PlacementSpec) { s.ResourceRequests = api.Quantities{"cpu": "3"} }))
				w.write(p, newPlacement("web", 1, func(s *api.PlacementSpec) { s.ResourceRequests = api.Quantities{"cpu": "3"} }))
			},
			change: func(w *world, p *planner) { w.remove(p, keyOf(api.KindPlacement, "other")) },
			of:     web, want: `{"type":"capacity"}`,
		},
		"workload created": {
			before: func(w *world, p *planner) { w.write(p, sized("a", "4")); w.write(p, policy("p", divided)) },
			change: func(w *world, p *planner) { w.write(p, workload("web", 2, cpus)) },
			of:     deploy, want: `{"type":"spec","object":{"kind":"workload","namespace":"shop","name":"web"},"actor":{"token":"alice"}}`,
		},
		"replicas": {
			before: func(w *world, p *planner) {
				w.write(p, sized("a", "4"))
				w.write(p, policy("p", divided))
				w.write(p, workload("web", 2, cpus))
			},
			change: func(w *world, p *planner) { w.write(p, workload("web", 3, cpus)) },
			of:     deploy, want: `{"type":"spec","object":{"kind":"workload","namespace":"shop","name":"web"},"field":"spec.replicas","old":"2","new":"3","actor":{"token":"alice"}}`,
		},
		"policy changed": {
			before: func(w *world, p *planner) {
				w.write(p, sized("a", "4"))
				w.write(p, sized("b", "4"))
				w.write(p, policy("p", divided))
				w.write(p, workload("web", 2, cpus))
			},
			change: func(w *world, p *planner) {
				w.write(p, policy("p", divided, func(s *api.PropagationPolicySpec) {
					s.Placement.ClusterAffinity = &api.ClusterAffinity{ExcludeClusters: []string{"a"}}
				}))
			},
			of: deploy, want: `{"type":"policy","object":{"kind":"propagation_policy","namespace":"shop","name":"p"},"field":"spec.placement.cluster_affinity","new":"{\"exclude_clusters\":[\"a\"]}","actor":{"token":"alice"}}`,
		},
		"failover and back": {
			before:  func(w *world, p *planner) { grouped(w, p) },
			between: failover,
			after:   2 * time.Minute, of: deploy,
			want: `{"type":"fail_back","object":{"kind":"propagation_policy","namespace":"shop","name":"p"},"field":"spec.fail_back","old":"spare","new":"main"}`,
		},
		"failover": {
			before: func(w *world, p *planner) { grouped(w, p) },
			change: func(w *world, p *planner) { become(w, p, api.StateOffline, "a") },
			of:     deploy, want: `{"type":"cluster_offline","object":{"kind":"cluster","name":"a"},"field":"status.state","old":"online","new":"offline"}`,
		},
		"preemption": {
			before: func(w *world, p *planner) {
				w.write(p, sized("a", "4"))
				w.write(p, policy("p", divided, func(s *api.PropagationPolicySpec) { s.WorkloadPreemption = api.WorkloadPreemptionLowerPriority }))
				w.write(p, workload("web", 4, cpus))
			},
			change: func(w *world, p *planner) {
				w.write(p, workload("important", 4, cpus, func(w *api.Workload) { w.Spec.Priority = 9 }))
			},
			of: deploy, want: `{"type":"preemption","object":{"kind":"workload","namespace":"shop","name":"important"},"field":"spec.priority","new":"9"}`,
		},
		"displaced, and elsewhere at once": {
			before: func(w *world, p *planner) {
				w.write(p, sized("a", "4"))
				w.write(p, sized("b", "4"))
				w.write(p, policy("p", divided, func(s *api.PropagationPolicySpec) { s.WorkloadPreemption = api.WorkloadPreemptionLowerPriority }))
				w.write(p, workload("web", 2, cpus, func(w *api.Workload) { w.Spec.ReplicaRequests = api.Quantities{"cpu": "2"} }))
			},
			change: func(w *world, p *planner) {
				w.write(p, workload("important", 1, func(w *api.Workload) {
					w.Spec.Priority, w.Spec.ReplicaRequests = 9, api.Quantities{"cpu": "3"}
				}))
			},
			of: deploy, want: `{"type":"preemption","object":{"kind":"workload","namespace":"shop","name":"important"},"field":"spec.priority","new":"9"}`,
		},
		"without a policy, its cluster is gone": {
			before: func(w *world, p *planner) {
				w.write(p, sized("a", "4"))
				w.write(p, policy("p", divided))
				w.write(p, workload("web", 2, cpus))
			},
			between: func(w *world, p *planner) {
				w.remove(p, keyOf(api.KindPropagationPolicy, "p"))
				w.stored(p, p.pass(epoch.Add(time.Second)))
			},
			change: func(w *world, p *planner) { w.remove(p, api.Key{Kind: api.KindCluster, Name: "a"}) },
			of:     deploy, want: `{"type":"cluster","object":{"kind":"cluster","name":"a"}}`,
		},
		"another policy": {
			before: func(w *world, p *planner) {
				w.write(p, sized("a", "4"))
				w.write(p, sized("b", "4"))
				only := func(name string) func(*api.PropagationPolicySpec) {
					return func(s *api.PropagationPolicySpec) {
						s.Placement.ClusterAffinity = &api.ClusterAffinity{ClusterNames: []string{name}}
					}
				}
				w.write(p, policy("p", divided, only("a")))
				w.write(p, policy("q", divided, only("b")))
				w.write(p, workload("web", 2, cpus))
			},
			change: func(w *world, p *planner) { w.remove(p, keyOf(api.KindPropagationPolicy, "p")) },
			of:     deploy, want: `{"type":"policy","object":{"kind":"propagation_policy","namespace":"shop","name":"q"}}`,
		},
		"gone while no server ran": {
			before: func(*world, *planner) {},
			change: func(w *world, p *planner) {
				w.write(p, sized("b", "4"))
				w.write(p, placedOn("a"))
			},
			of: web, want: `{"type":"cluster","object":{"kind":"cluster","name":"a"}}`,
		},
		"better while no server ran": {
			before: func(*world, *planner) {},
			change: func(w *world, p *planner) {
				rated(w, p, 0.5, 0.9)
				w.write(p, placedOn("a"))
			},
			of: web, want: `{"type":"unknown"}`,
		},
		"rejected by a metric since a restart": {
			before: func(*world, *planner) {},
			change: func(w *world, p *planner) {
				rated(w, p, 0.5, 0.9)
				w.write(p, metric("load", 0.7))
				w.write(p, cluster("a", nil, api.MetricRef{Name: "ma"}, api.MetricRef{Name: "load"}))
				placed := placedOn("a")
				placed.Spec.MetricConstraints = []string{"load < 0.5"}
				w.write(p, placed)
			},
			of: web, want: `{"type":"metric","object":{"kind":"metric","name":"load"},"field":"status.value"}`,
		},
		"other metrics of a cluster": {
			before: func(w *world, p *planner) { rated(w, p, 0.5, 0.9); w.write(p, one()) },
			change: func(w *world, p *planner) {
				w.write(p, metric("low", 0.1))
				w.write(p, cluster("b", nil, api.MetricRef{Name: "low"}))
			},
			of: web, want: `{"type":"cluster","object":{"kind":"cluster","name":"b"},"field":"spec.metrics","old":"[{\"name\":\"mb\",\"weight\":1}]","new":"[{\"name\":\"low\",\"weight\":1}]","actor":{"token":"alice"}}`,
		},
		"back earlier than it would fall back": {
			before: func(w *world, p *planner) {
				grouped(w, p, func(s *api.PropagationPolicySpec) {
					s.Failover = &api.Failover{Cluster: &api.ClusterFailover{PurgeMode: api.PurgeDirectly}}
				})
			},
			between: failover,
			change:  func(w *world, p *planner) { become(w, p, api.StateOffline, "b") },
			after:   3 * time.Second, of: deploy,
			want: `{"type":"cluster_offline","object":{"kind":"cluster","name":"b"},"field":"status.state","old":"online","new":"offline"}`,
		},
		"unhealthy": {
			before: func(w *world, p *planner) {
				w.write(p, sized("a", "4"))
				w.write(p, sized("b", "4"))
				w.write(p, policy("p", groups, func(s *api.PropagationPolicySpec) {
					s.Failover = &api.Failover{Application: &api.ApplicationFailover{Toleration: "0s"}}
				}))
				w.write(p, workload("web", 2, cpus))
			},
			change: func(_ *world, p *planner) {
				p.bindings.report(p.bindings.workloads[deploy], api.HealthReport{Cluster: "a", Status: api.Unhealthy}, epoch)
			},
			after: time.Second, of: deploy,
			want: `{"type":"health","object":{"kind":"workload","namespace":"shop","name":"web"},"field":"status.health.a","new":"unhealthy"}`,
		},
		"offline for long, when the others are back": {
			before: func(w *world, p *planner) {
				become(w, p, api.StateOnline, "e")
				grouped(w, p)
			},
			between: func(w *world, p *planner) {
				become(w, p, api.StateOffline, "a", "c", "d", "e")
				w.stored(p, p.pass(epoch.Add(time.Second)))
			},
			change: func(w *world, p *planner) { become(w, p, api.StateOnline, "c", "d", "e") },
			after:  2 * time.Second,
			of:     deploy, want: `{"type":"cluster_offline","object":{"kind":"cluster","name":"a"},"field":"status.state","new":"offline"}`,
		},
		"another cluster since a restart": {
			before: func(*world, *planner) {},
			change: func(w *world, p *planner) {
				earlier := newPlanner(discard())
				w.write(earlier, sized("a", "4"))
				w.write(earlier, policy("p"))
				w.write(earlier, workload("web", 2, cpus))
				w.stored(earlier, earlier.pass(epoch))
				for key, object := range w.objects {
					p.put(object, w.specs[key])
				}
				w.write(p, sized("b", "4"))
			},
			of: deploy, want: `{"type":"unknown"}`,
		},
		"own spec, again": {
			before: func(w *world, p *planner) { rated(w, p, 0.5, 0.9); w.write(p, newPlacement("web", 0)) },
			between: func(w *world, p *planner) {
				w.write(p, one())
				w.stored(p, p.pass(epoch.Add(time.Second)))
			},
			change: func(w *world, p *planner) { w.write(p, newPlacement("web", 2)) },
			after:  2 * time.Second, of: web,
			want: `{"type":"spec","object":{"kind":"placement","namespace":"shop","name":"web"},"field":"spec.number_of_clusters","old":"1","new":"2","actor":{"token":"alice"}}`,
		},
		"replicas, again": {
			before: func(w *world, p *planner) {
				w.write(p, sized("a", "4"))
				w.write(p, policy("p", divided))
				w.write(p, workload("web", 2, cpus))
			},
			between: func(w *world, p *planner) {
				w.write(p, workload("web", 3, cpus))
				w.stored(p, p.pass(epoch.Add(time.Second)))
			},
			change: func(w *world, p *planner) { w.write(p, workload("web", 4, cpus)) },
			after:  2 * time.Second, of: deploy,
			want: `{"type":"spec","object":{"kind":"workload","namespace":"shop","name":"web"},"field":"spec.replicas","old":"3","new":"4","actor":{"token":"alice"}}`,
		},
		"the metric that fell more": {
			before: func(w *world, p *planner) { rated(w, p, 0.9, 0.5); w.write(p, one()) },
			change: func(w *world, p *planner) {
				w.write(p, metric("ma", 0.5))
				w.write(p, metric("mb", 0.7))
			},
			of: web, want: `{"type":"metric","object":{"kind":"metric","name":"ma"},"field":"status.value","old":"0.9","new":"0.5"}`,
		},
		"the metric that weighs more": {
			before: func(w *world, p *planner) {
				rated(w, p, 0.9, 0.5)
				w.write(p, metric("light", 0.9))
				w.write(p, cluster("a", nil, api.MetricRef{Name: "ma", Weight: ptr(8.0)}, api.MetricRef{Name: "light"}))
				w.write(p, one())
			},
			change: func(w *world, p *planner) {
				w.write(p, metric("light", 0.1))
				w.write(p, metric("ma", 0.4))
			},
			of: web, want: `{"type":"metric","object":{"kind":"metric","name":"ma"},"field":"status.value","old":"0.9","new":"0.4"}`,
		},
		"the score that weighs more": {
			before: func(w *world, p *planner) {
				w.write(p, cluster("a", nil))
				w.write(p, cluster("b", nil))
				s := scored("a", 50, nil)
				s.Spec.Scores["fast"] = 50
				w.write(p, s)
				w.write(p, one(byScore, func(s *api.PlacementSpec) {
					s.PrioritizerPolicy.Configurations[0].Weight = ptr(int64(9))
					s.PrioritizerPolicy.Configurations = append(s.PrioritizerPolicy.Configurations, api.PrioritizerConfig{
						Type: api.PrioritizerAddon, ResourceName: "cost", ScoreName: "fast", Weight: ptr(int64(1)),
					})
				}))
			},
			change: func(w *world, p *planner) {
				s := scored("a", 0, nil)
				s.Spec.Scores["fast"] = -50
				w.write(p, s)
			},
			of: web, want: `{"type":"score","object":{"kind":"placement_score","namespace":"a","name":"cost"},"field":"spec.scores.cheap","old":"50","new":"0","actor":{"token":"alice"}}`,
		},
		"taint removed, and a metric changed": {
			before: func(w *world, p *planner) {
				rated(w, p, 0.5, 0.9)
				w.write(p, tainted("c", api.EffectNoExecute))
				w.write(p, one())
			},
			change: func(w *world, p *planner) {
				w.write(p, cluster("c", nil, api.MetricRef{Name: "mc"}))
				w.write(p, metric("mc", 1))
				w.write(p, metric("mb", 0.1))
			},
			of: web, want: `{"type":"taint","object":{"kind":"cluster","name":"c"},"field":"spec.taints","old":"maintenance:NoSelect","actor":{"token":"alice"}}`,
		},
		"metric of a paused cluster": {
			before: func(w *world, p *planner) { rated(w, p, 0.5, 0.9); w.write(p, one()) },
			between: func(w *world, p *planner) {
				w.write(p, paused("b", true))
				w.stored(p, p.pass(epoch.Add(time.Second)))
			},
			change: func(w *world, p *planner) { w.write(p, metric("mb", 0.2)) },
			after:  2 * time.Minute, of: web,
			want: `{"type":"metric","object":{"kind":"metric","name":"mb"},"field":"status.value","old":"0.9","new":"0.2"}`,
		},
		"no longer paused, and a metric changed": {
			before: func(w *world, p *planner) {
				rated(w, p, 0.5, 0.9)
				w.write(p, paused("b", true))
				w.write(p, one())
			},
			change: func(w *world, p *planner) {
				w.write(p, paused("b", false))
				w.write(p, metric("ma", 0.45))
			},
			after: 2 * time.Minute, of: web,
			want: `{"type":"cluster","object":{"kind":"cluster","name":"b"},"field":"spec.paused","old":"true","new":"false","actor":{"token":"alice"}}`,
		},
		"toleration that ran out, and the clock was set back": {
			before: func(w *world, p *planner) {
				c := tainted("a", api.EffectNoExecute)
				c.Metadata.ModifiedAt = &epoch
				w.write(p, c)
				w.write(p, newPlacement("web", -1, func(s *api.PlacementSpec) {
					s.Tolerations = []api.Toleration{{Key: "maintenance", Operator: api.TolerationExists, TolerationSeconds: ptr(int64(60))}}
				}))
			},
			between: func(w *world, p *planner) { w.stored(p, p.pass(epoch.Add(2*time.Minute))) },
			after:   time.Second, of: web,
			want: `{"type":"time","object":{"kind":"cluster","name":"a"},"field":"spec.taints","new":"maintenance:NoSelect"}`,
		},
		"a cluster that others are compared with": {
			before: func(w *world, p *planner) { compared(w, p) },
			change: func(w *world, p *planner) { w.write(p, measured("c", "8")) },
			of:     web, want: `{"type":"capacity","object":{"kind":"cluster","name":"c"},"field":"spec.allocatable.cpu","old":"1","new":"8","actor":{"token":"alice"}}`,
		},
		"the first by name of several that others are compared with": {
			before: func(w *world, p *planner) {
				w.write(p, measured("d", "1"))
				w.write(p, scored("d", -100, nil))
				w.stored(p, p.pass(epoch)) // before c, so that it is in an earlier row
				compared(w, p)
			},
			change: func(w *world, p *planner) {
				w.write(p, measured("d", "8"))
				w.write(p, measured("c", "8"))
			},
			of: web, want: `{"type":"capacity","object":{"kind":"cluster","name":"c"},"field":"spec.allocatable.cpu","old":"1","new":"8","actor":{"token":"alice"}}`,
		},
		"a cluster that others were compared with": {
			before: func(w *world, p *planner) { compared(w, p) },
			change: func(w *world, p *planner) { w.remove(p, api.Key{Kind: api.KindCluster, Name: "c"}) },
			of:     web, want: `{"type":"cluster","object":{"kind":"cluster","name":"c"}}`,
		},
		"old enough, while an unrelated cluster changes": {
			before: func(w *world, p *planner) {
				rated(w, p, 0.5, 0.9)
				w.write(p, one(func(s *api.PlacementSpec) { s.RescheduleAfter = "60s" }))
			},
			between: func(w *world, p *planner) {
				w.write(p, metric("mb", 0.2))
				w.stored(p, p.pass(epoch.Add(10*time.Second)))
			},
			change: func(w *world, p *planner) { w.write(p, cluster("unrelated", nil)) },
			after:  time.Minute, of: web,
			want: `{"type":"time","object":{"kind":"placement","namespace":"shop","name":"web"},"field":"spec.reschedule_after","old":"60s"}`,
		},
		"back to an overflowed tier": {
			before: func(w *world, p *planner) {
				w.write(p, sized("a", "2"))
				w.write(p, sized("b", "9"))
				w.write(p, policy("p", groups, func(s *api.PropagationPolicySpec) {
					s.Placement.ClusterAffinities = []api.AffinityTerm{{
						AffinityName: "main", ClusterAffinity: api.ClusterAffinity{ClusterNames: []string{"a"}},
						OverflowAffinities: []api.OverflowAffinity{{AffinityName: "more", ClusterAffinity: api.ClusterAffinity{ClusterNames: []string{"b"}}}},
					}}
				}))
				w.write(p, workload("web", 4, cpus))
			},
			between: func(w *world, p *planner) {
				w.write(p, sized("a", "4"))
				w.stored(p, p.pass(epoch.Add(time.Second)))
			},
			after: 2 * time.Minute, of: deploy,
			want: `{"type":"fail_back","object":{"kind":"propagation_policy","namespace":"shop","name":"p"},"field":"spec.fail_back","old":"main","new":"main"}`,
		},
		"back earlier, as its cluster is deleted": {
			before:  func(w *world, p *planner) { grouped(w, p) },
			between: failover,
			change:  func(w *world, p *planner) { w.remove(p, api.Key{Kind: api.KindCluster, Name: "b"}) },
			after:   3 * time.Second, of: deploy,
			want: `{"type":"cluster","object":{"kind":"cluster","name":"b"}}`,
		},
		"failover of a group that is too small without one of its clusters": {
			before: func(w *world, p *planner) {
				become(w, p, api.StateOnline, "a", "b", "c", "d", "e")
				w.write(p, policy("p", groups, twoEach))
				w.write(p, workload("web", 6, cpus))
			},
			change: func(w *world, p *planner) { become(w, p, api.StateOffline, "e") },
			of:     deploy, want: `{"type":"cluster_offline","object":{"kind":"cluster","name":"e"},"field":"status.state","old":"online","new":"offline"}`,
		},
		"failover of a group that is too small without one of its clusters, since a restart": {
			before: func(*world, *planner) {},
			change: func(w *world, p *planner) {
				become(w, p, api.StateOnline, "a", "b", "c", "d")
				become(w, p, api.StateOffline, "e")
				w.write(p, policy("p", groups, twoEach))
				d := workload("web", 6, cpus)
				d.Status = api.WorkloadStatus{
					ObservedGeneration: 1, DecisionRevision: 3, Policy: "shop/p", PolicyUID: "uid-shop/p", PolicyGeneration: 1,
					ObservedAffinity: "main", Clusters: []api.WorkloadCluster{{Name: "a", Replicas: 3}, {Name: "e", Replicas: 3}},
				}
				w.write(p, d)
			},
			of: deploy, want: `{"type":"cluster_offline","object":{"kind":"cluster","name":"e"},"field":"status.state","new":"offline"}`,
		},
		"failover of a group that is too small since one of its clusters is deleted": {
			before: func(w *world, p *planner) {
				become(w, p, api.StateOnline, "a", "b", "c", "d", "e")
				w.write(p, policy("p", groups, twoEach))
				w.write(p, workload("web", 6, cpus))
			},
			change: func(w *world, p *planner) { w.remove(p, api.Key{Kind: api.KindCluster, Name: "e"}) },
			of:     deploy, want: `{"type":"cluster","object":{"kind":"cluster","name":"e"}}`,
		},
		"room for a workload that had none": {
			before: func(w *world, p *planner) {
				w.write(p, sized("a", "0"))
				w.write(p, policy("p", groups))
				w.write(p, workload("web", 2, cpus))
			},
			change: func(w *world, p *planner) { w.write(p, sized("a", "4")) },
			of:     deploy, want: `{"type":"capacity","object":{"kind":"cluster","name":"a"},"field":"spec.allocatable.cpu","old":"0","new":"4","actor":{"token":"alice"}}`,
		},
		"capacity of the cluster that is gained": {
			before: func(w *world, p *planner) {
				w.write(p, sized("a", "0"))
				w.write(p, sized("b", "4"))
				w.write(p, sized("c", "0"))
				w.write(p, policy("p", divided))
				w.write(p, workload("web", 6, cpus))
			},
			change: func(w *world, p *planner) {
				w.write(p, sized("a", "500m"))
				w.write(p, sized("c", "2"))
			},
			of: deploy, want: `{"type":"capacity","object":{"kind":"cluster","name":"c"},"field":"spec.allocatable.cpu","old":"0","new":"2","actor":{"token":"alice"}}`,
		},
		"offline, while it leaves another where it is unhealthy": {
			before: func(w *world, p *planner) {
				grouped(w, p, func(s *api.PropagationPolicySpec) {
					s.Failover = &api.Failover{Application: &api.ApplicationFailover{Toleration: "0s"}}
				})
			},
			between: func(w *world, p *planner) {
				p.bindings.report(p.bindings.workloads[deploy], api.HealthReport{Cluster: "a", Status: api.Unhealthy}, epoch)
				w.stored(p, p.pass(epoch.Add(time.Second)))
			},
			change: func(w *world, p *planner) { w.remove(p, api.Key{Kind: api.KindCluster, Name: "b"}) },
			after:  2 * time.Second, of: deploy,
			want: `{"type":"cluster","object":{"kind":"cluster","name":"b"}}`,
		},
		"its policy and its cluster are deleted": {
			before: func(w *world, p *planner) {
				w.write(p, sized("a", "4"))
				w.write(p, policy("p", divided))
				w.write(p, workload("web", 2, cpus))
			},
			change: func(w *world, p *planner) {
				w.remove(p, keyOf(api.KindPropagationPolicy, "p"))
				w.remove(p, api.Key{Kind: api.KindCluster, Name: "a"})
			},
			of: deploy, want: `{"type":"policy","object":{"kind":"propagation_policy","namespace":"shop","name":"p"}}`,
		},
		"a global policy": {
			before: func(w *world, p *planner) {
				w.write(p, sized("a", "4"))
				w.write(p, workload("web", 2, cpus))
			},
			change: func(w *world, p *planner) {
				global := policy("p", divided)
				global.Metadata.Namespace = ""
				w.write(p, global)
			},
			of: deploy, want: `{"type":"policy","object":{"kind":"propagation_policy","name":"p"},"actor":{"token":"alice"}}`,
		},
		"freed capacity": {
			before: func(w *world, p *planner) {
				w.write(p, sized("a", "4"))
				w.write(p, policy("p", divided))
				w.write(p, workload("web", 6, cpus))
			},
			change: func(w *world, p *planner) { w.write(p, sized("a", "9")) },
			of:     deploy, want: `{"type":"capacity","object":{"kind":"cluster","name":"a"},"field":"spec.allocatable.cpu","old":"4","new":"9","actor":{"token":"alice"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, p := newWorld(), newPlanner(discard())
			w.writer = &api.Actor{Token: "alice"}
			c.before(w, p)
			w.stored(p, p.pass(epoch))
			if c.between != nil {
				c.between(w, p)
			}
			before := int64(0)
			if d := p.known(c.of); d != nil {
				_, before = causeIn(d.result())
			}
			if c.change != nil {
				c.change(w, p)
			}
			p.pass(epoch.Add(c.after))
			d := p.known(c.of)
			if d == nil {
				t.Fatalf("%s is not decided", c.of)
			}
			cause, revision := causeIn(d.result())
			if revision == before {
				t.Fatalf("%s did not change", c.of)
			}
			got, err := json.Marshal(cause)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("the cause is\n%s, want\n%s", got, c.want)
			}
			if p.changes.before != nil || p.changes.known != nil {
				t.Error("the planner still holds the fleet before the pass")
			}
			if d.queued().answered != nil {
				t.Error("the planner still holds the version before the one that is decided")
			}
		})
	}
}

// causeIn returns the cause in the status of a placement or workload, and the revision of its decision.
func causeIn(object api.Object) (*api.Cause, int64) {
	row, _ := api.Summarize(object)
	return row.Cause, row.DecisionRevision
}

// TestFollowersTakeTheCauseOfTheLeader checks that a follower does not look for causes, that it takes over those of the
// leader with the decisions, and that it decides nothing again because of them.
func TestFollowersTakeTheCauseOfTheLeader(t *testing.T) {
	w, leader, follower := newWorld(), newPlanner(discard()), newPlanner(discard())
	follower.following = true
	web, deploy := keyOf(api.KindPlacement, "web"), keyOf(api.KindWorkload, "web")
	w.write(leader, sized("a", "4"))
	w.write(leader, policy("p"))
	w.write(leader, newPlacement("web", 1))
	w.write(leader, workload("web", 2))
	for key, object := range w.objects {
		follower.put(object, w.specs[key])
	}
	leader.pass(epoch)
	follower.pass(epoch)
	for _, key := range []api.Key{web, deploy} {
		if cause, _ := causeIn(follower.known(key).result()); cause == nil || *cause != *unknownCause {
			t.Errorf("the follower says that the cause of %s is %+v", key, cause)
		}
		follower.put(leader.known(key).result(), w.specs[key])
		if cause, _ := causeIn(follower.known(key).result()); cause == nil || cause.Type != api.CauseSpec {
			t.Errorf("with the decision of the leader, the follower says that the cause of %s is %+v", key, cause)
		}
	}
	if n := follower.queue.len(); n > 0 {
		t.Errorf("the follower makes %d decisions again", n)
	}
}

// TestFailBackCause checks which moves between affinity groups and their tiers are returns.
func TestFailBackCause(t *testing.T) {
	w := &workloadBinding{object: workload("web", 2)}
	earlier := func(names ...string) *api.WorkloadStatus {
		s := &api.WorkloadStatus{ObservedAffinity: "here"}
		for _, name := range names {
			s.EarlierAffinities = append(s.EarlierAffinities, api.EarlierAffinity{AffinityName: name})
		}
		return s
	}
	for name, c := range map[string]struct {
		before, after *api.WorkloadStatus
		from, to      int
		want          string // the new value of the cause; "" if it is not a return
	}{
		"to an earlier group":                        {earlier("main"), &api.WorkloadStatus{ObservedAffinity: "main"}, 1, 0, "main"},
		"to an earlier tier":                         {earlier("first", "second"), earlier("first"), 0, 0, "second"},
		"while an earlier tier has room":             {earlier("first"), earlier("first"), 0, 0, ""},
		"to a later group, and the earlier are full": {earlier("main"), earlier(), 1, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if cause := failBackCause(w, c.before, c.after, c.from, c.to); cause != nil {
				got = cause.New
			}
			if got != c.want {
				t.Errorf("it returns to %q, want %q", got, c.want)
			}
		})
	}
}
