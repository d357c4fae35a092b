package reconcile

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// takenOver is a planner that takes over the decisions of another one, as they are
// stored, at a moment that may be before them: its clock is another.
func (w *world) takenOver(t *testing.T, p *planner, now time.Time) *planner {
	t.Helper()
	next := newPlanner(discard())
	all := w.afterPass(p)
	for _, key := range slices.SortedFunc(maps.Keys(all), api.Key.Compare) {
		next.put(all[key], w.specs[key])
	}
	for _, write := range next.pass(now) {
		if write.moved {
			t.Fatalf("%s moves because another server decides", write.key())
		}
		next.put(write.result(), w.specs[write.key()]) // as it is stored
	}
	if writes := next.pass(now); len(writes) > 0 {
		t.Fatalf("%d decisions are written again", len(writes))
	}
	return next
}

// A server whose clock is an hour ahead has decided, and another one follows. What the
// first has dated ahead holds no longer than a decision of the second.
func TestDecisionsDatedAhead(t *testing.T) {
	ahead := epoch.Add(time.Hour)
	t.Run("a placement may move after reschedule_after", func(t *testing.T) {
		w, p := newWorld(), newPlanner(discard())
		w.write(p, provider())
		for name, value := range map[string]float64{"low": 0.2, "high": 0.6} {
			w.write(p, metric(name, value))
			w.write(p, cluster("c-"+name, nil, api.MetricRef{Name: name, Weight: ptr(1.0)}))
		}
		w.write(p, newPlacement("web", 1, func(s *api.PlacementSpec) { s.RescheduleAfter = "60s" }))
		p.pass(ahead)
		next := w.takenOver(t, p, epoch)
		w.write(next, metric("low", 0.9))
		next.pass(epoch.Add(59 * time.Second))
		if got := webOf(next).status.Clusters; got[0] != "c-high" {
			t.Errorf("after 59 s on %v: it moves too early", got)
		}
		next.pass(epoch.Add(time.Minute))
		if got := webOf(next).status.Clusters; got[0] != "c-low" {
			t.Errorf("after a minute on %v", got)
		}
	})
	t.Run("a capacity report ends reservations", func(t *testing.T) {
		w, p := newWorld(), newPlanner(discard())
		for _, name := range []string{"c1", "c2"} {
			w.write(p, sized(name, "8"))
		}
		w.write(p, newPlacement("web", 1, func(s *api.PlacementSpec) {
			s.ResourceRequests, s.ClusterNames = api.Quantities{"cpu": "1"}, []string{"c1"}
		}))
		w.write(p, policy("p", func(s *api.PropagationPolicySpec) {
			s.Placement.ClusterAffinity = &api.ClusterAffinity{ClusterNames: []string{"c2"}}
		}))
		w.write(p, workload("web", 1, func(w *api.Workload) { w.Spec.ReplicaRequests = api.Quantities{"cpu": "1"} }))
		p.pass(ahead)
		next := w.takenOver(t, p, epoch)
		for _, name := range []string{"c1", "c2"} {
			if !next.reserved.Waiting(name) {
				t.Errorf("nothing is reserved on %s", name)
			}
			reported := sized(name, "8")
			reported.Status.CapacityReportedAt = ptr(epoch.Add(time.Minute))
			w.write(next, reported)
		}
		next.pass(epoch.Add(time.Minute))
		for _, name := range []string{"c1", "c2"} {
			if next.reserved.Waiting(name) {
				t.Errorf("the report of %s did not end what is reserved there", name)
			}
		}
	})
	t.Run("replicas go back after the stabilization", func(t *testing.T) {
		w, p := newWorld(), newPlanner(discard())
		w.write(p, sized("c1", "1"))
		w.write(p, sized("c2", "9"))
		w.write(p, policy("p", func(s *api.PropagationPolicySpec) {
			s.Placement.ReplicaScheduling = dynamic()
			s.Placement.ClusterAffinities = []api.AffinityTerm{
				{AffinityName: "first", ClusterAffinity: api.ClusterAffinity{ClusterNames: []string{"c1"}}},
				{AffinityName: "second", ClusterAffinity: api.ClusterAffinity{ClusterNames: []string{"c2"}}},
			}
			s.FailBack = &api.FailBack{Stabilization: "10m"}
		}))
		w.write(p, workload("web", 4, func(w *api.Workload) { w.Spec.ReplicaRequests = api.Quantities{"cpu": "1"} }))
		p.pass(ahead)
		w.write(p, sized("c1", "9"))
		p.pass(ahead)
		if got := replicasOf(p, "web"); got["c2"] != 4 {
			t.Fatalf("on %v", got)
		}
		next := w.takenOver(t, p, epoch)
		if at := next.nextAt(); !at.Equal(epoch.Add(10 * time.Minute)) {
			t.Errorf("they go back at %v", at)
		}
		next.pass(epoch.Add(10 * time.Minute))
		if got := replicasOf(next, "web"); got["c1"] != 4 {
			t.Errorf("after the stabilization on %v", got)
		}
	})
	t.Run("an eviction ends with its grace period, or with a report on what replaces it", func(t *testing.T) {
		for _, healthy := range []bool{false, true} {
			w, p := newWorld(), newPlanner(discard())
			for _, name := range []string{"c1", "c2"} {
				w.write(p, sized(name, "9"))
			}
			w.write(p, policy("p", func(s *api.PropagationPolicySpec) {
				s.Placement.ClusterAffinities = []api.AffinityTerm{
					{AffinityName: "first", ClusterAffinity: api.ClusterAffinity{ClusterNames: []string{"c1"}}},
					{AffinityName: "second", ClusterAffinity: api.ClusterAffinity{ClusterNames: []string{"c2"}}},
				}
				s.Failover = &api.Failover{Cluster: &api.ClusterFailover{PurgeMode: api.PurgeGracefully, GracePeriod: "10m"}}
			}))
			w.write(p, workload("web", -1))
			p.pass(ahead)
			tainted := sized("c1", "9")
			tainted.Spec.Taints = []api.Taint{{Key: "down", Effect: api.EffectNoSelect}}
			w.write(p, tainted)
			p.pass(ahead)
			web := api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"}
			if n := len(p.bindings.workloads[web].status.Evictions); n != 1 {
				t.Fatalf("it leaves %d clusters", n)
			}
			next, end := w.takenOver(t, p, epoch), epoch.Add(10*time.Minute)
			if healthy {
				end = epoch.Add(time.Minute)
				if err := next.bindings.takeInHealth(web, api.HealthReport{Cluster: "c2", Status: api.Healthy}, end); err != nil {
					t.Fatal(err)
				}
			}
			next.pass(end.Add(-time.Second))
			if n := len(next.bindings.workloads[web].status.Evictions); n != 1 && !healthy {
				t.Errorf("it has left c1 before the grace period is over")
			}
			next.pass(end)
			if e := next.bindings.workloads[web].status.Evictions; len(e) != 0 {
				t.Errorf("at %v it still leaves %+v", end.Sub(epoch), e)
			}
		}
	})
	t.Run("an unhealthy workload is tolerated no longer", func(t *testing.T) {
		w, p := newWorld(), newPlanner(discard())
		for _, name := range []string{"c1", "c2"} {
			w.write(p, sized(name, "9"))
		}
		w.write(p, policy("p", func(s *api.PropagationPolicySpec) {
			s.Placement.ClusterAffinities = []api.AffinityTerm{
				{AffinityName: "first", ClusterAffinity: api.ClusterAffinity{ClusterNames: []string{"c1"}}},
				{AffinityName: "second", ClusterAffinity: api.ClusterAffinity{ClusterNames: []string{"c2"}}},
			}
			s.Failover = &api.Failover{Application: &api.ApplicationFailover{Toleration: "5m"}}
		}))
		w.write(p, workload("web", -1))
		p.pass(ahead)
		web := api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"}
		if err := p.bindings.takeInHealth(web, api.HealthReport{Cluster: "c1", Status: api.Unhealthy}, ahead); err != nil {
			t.Fatal(err)
		}
		p.pass(ahead)
		next := w.takenOver(t, p, epoch)
		next.pass(epoch.Add(5 * time.Minute))
		if names := next.bindings.workloads[web].status.Names(); !slices.Equal(names, []string{"c2"}) {
			t.Errorf("after five minutes on %v", names)
		}
	})
}
