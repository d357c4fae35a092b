package reconcile

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// takenOver returns a planner that takes over the stored decisions of another one, at a time that may be before them,
// because its clock is different.
func (w *world) takenOver(t *testing.T, p *planner, now time.Time) *planner {
	t.Helper()
	next := newPlanner(discard())
	all := w.afterPass(p)
	for _, key := range slices.SortedFunc(maps.Keys(all), api.Key.Compare) {
		next.put(all[key], w.specs[key])
	}
	for _, write := range next.pass(now) {
		if write.moved {
			t.Fatalf("%s moves because the leader changed", write.key())
		}
		next.put(write.result(), w.specs[write.key()]) // as stored
	}
	if writes := next.pass(now); len(writes) > 0 {
		t.Fatalf("%d decisions are written again, want none", len(writes))
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
			t.Errorf("on %v after 59 s, want c-high until reschedule_after", got)
		}
		next.pass(epoch.Add(time.Minute))
		if got := webOf(next).status.Clusters; got[0] != "c-low" {
			t.Errorf("on %v after a minute, want c-low", got)
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
				t.Errorf("no reservation on %s", name)
			}
			reported := sized(name, "8")
			reported.Status.CapacityReportedAt = ptr(epoch.Add(time.Minute))
			w.write(next, reported)
		}
		next.pass(epoch.Add(time.Minute))
		for _, name := range []string{"c1", "c2"} {
			if next.reserved.Waiting(name) {
				t.Errorf("the report of %s did not end the reservation", name)
			}
		}
	})
	t.Run("replicas return after the stabilization window", func(t *testing.T) {
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
			t.Fatalf("replicas %v, want 4 on c2", got)
		}
		next := w.takenOver(t, p, epoch)
		if at := next.nextAt(); !at.Equal(epoch.Add(10 * time.Minute)) {
			t.Errorf("nextAt() = %v, want the end of the stabilization window", at)
		}
		next.pass(epoch.Add(10 * time.Minute))
		if got := replicasOf(next, "web"); got["c1"] != 4 {
			t.Errorf("replicas %v after the stabilization window, want 4 on c1", got)
		}
	})
	t.Run("an eviction ends with its grace period, or with a health report on the replacement", func(t *testing.T) {
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
				t.Fatalf("%d evictions, want 1", n)
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
				t.Errorf("the eviction of c1 ended before its grace period")
			}
			next.pass(end)
			if e := next.bindings.workloads[web].status.Evictions; len(e) != 0 {
				t.Errorf("at %v: evictions %+v, want none", end.Sub(epoch), e)
			}
		}
	})
	t.Run("toleration of an unhealthy workload ends", func(t *testing.T) {
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
			t.Errorf("on %v after five minutes, want c2", names)
		}
	})
}
