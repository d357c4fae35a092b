package reconcile

import (
	"maps"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestRefillIsOnTheAgenda checks that free capacity in an earlier tier is noticed, that the time at which replicas
// return to it is scheduled, and that this is canceled if others use the capacity in the meantime.
func TestRefillIsOnTheAgenda(t *testing.T) {
	tier := func(name string, clusters ...string) api.OverflowAffinity {
		return api.OverflowAffinity{AffinityName: name, ClusterAffinity: api.ClusterAffinity{ClusterNames: clusters}}
	}
	w, p := newWorld(), newPlanner(discard())
	cpus := func(w *api.Workload) { w.Spec.ReplicaRequests = api.Quantities{"cpu": "1"} }
	w.write(p, sized("c1", "2"))
	w.write(p, sized("c2", "9"))
	w.write(p, policy("p", func(s *api.PropagationPolicySpec) {
		s.ResourceSelectors[0].Name = "web"
		s.Placement.ReplicaScheduling = dynamic()
		s.Placement.ClusterAffinities = []api.AffinityTerm{{
			AffinityName: "main", ClusterAffinity: api.ClusterAffinity{ClusterNames: []string{"c1"}},
			OverflowAffinities: []api.OverflowAffinity{tier("cloud", "c2")},
		}}
		s.FailBack = &api.FailBack{Stabilization: "10m"}
	}))
	w.write(p, policy("others", func(s *api.PropagationPolicySpec) {
		s.ResourceSelectors[0].Name = "other"
		s.Placement.ClusterAffinity = &api.ClusterAffinity{ClusterNames: []string{"c1"}}
		s.Placement.ReplicaScheduling = dynamic()
	}))
	w.write(p, workload("web", 4, cpus))
	web := api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"}
	other := api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "other"}
	look := func(at time.Time, next time.Time, want map[string]int64) {
		t.Helper()
		p.pass(at)
		if got := clustersOf(&p.bindings.workloads[web].status); !maps.Equal(got, want) {
			t.Fatalf("at %v: replicas %v, want %v", at.Sub(epoch), got, want)
		}
		if got := p.nextAt(); !got.Equal(next) {
			t.Fatalf("at %v: nextAt() = %v, want %v", at.Sub(epoch), got, next)
		}
	}
	at := func(minutes int) time.Time { return epoch.Add(time.Duration(minutes) * time.Minute) }
	never := time.Time{}
	overflowed, back := map[string]int64{"c1": 2, "c2": 2}, map[string]int64{"c1": 4}
	look(at(0), never, overflowed)
	w.write(p, sized("c1", "4"))
	look(at(1), at(11), overflowed)
	w.write(p, workload("other", 2, cpus)) // uses the capacity
	look(at(5), never, overflowed)
	w.remove(p, other)
	look(at(6), at(16), overflowed)
	w.write(p, sized("c1", "5"))
	w.write(p, workload("other", 1, cpus)) // leaves enough capacity
	look(at(7), at(16), overflowed)
	w.write(p, workload("other", 1, func(w *api.Workload) { w.Spec.ReplicaRequests = api.Quantities{"cpu": "3"} })) // uses the capacity
	look(at(8), never, overflowed)
	w.remove(p, other)
	look(at(9), at(19), overflowed)
	look(at(18), at(19), overflowed)
	look(at(19), never, back)
}
