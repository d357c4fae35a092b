package reconcile

import (
	"maps"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestBindingsWake: what a workload waits for, or would rather have, is not missed
// when it comes.
func TestBindingsWake(t *testing.T) {
	group := func(name string, clusters ...string) api.AffinityTerm {
		return api.AffinityTerm{AffinityName: name, ClusterAffinity: api.ClusterAffinity{ClusterNames: clusters}}
	}
	offline := func(name, cpu string) *api.Cluster {
		c := sized(name, cpu)
		lose(c, epoch)
		return c
	}
	tainted := func(name, cpu string) *api.Cluster {
		c := sized(name, cpu)
		c.Spec.Taints = []api.Taint{{Key: "k", Effect: api.EffectNoSelectIfNew}}
		return c
	}
	measured := func(name, cpu string) *api.Cluster {
		c := sized(name, cpu)
		c.Spec.Metrics = []api.MetricRef{{Name: "load"}}
		return c
	}
	unread := metric("load", 0)
	unread.Status.Value = nil
	cpus := func(w *api.Workload) { w.Spec.ReplicaRequests = api.Quantities{"cpu": "1"} }
	web := api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"}
	type event func(w *world, p *planner, now time.Time)
	put := func(objects ...api.Object) event {
		return func(w *world, p *planner, _ time.Time) {
			for _, o := range objects {
				w.write(p, o)
			}
		}
	}
	for _, tt := range []struct {
		name   string
		events []event
		want   map[string]int64
		held   bool
	}{
		{"an earlier group that selects the same cluster as a later one", []event{
			put(offline("c1", "9"), sized("c2", "9"), policy("p", func(s *api.PropagationPolicySpec) {
				s.Placement.ReplicaScheduling = dynamic()
				s.Placement.ClusterAffinities = []api.AffinityTerm{group("first", "c1"), group("second", "c2"), group("third", "c1")}
				s.FailBack = &api.FailBack{Stabilization: "0s"}
			}), workload("web", 2, cpus)),
			put(sized("c1", "9")),
		}, map[string]int64{"c1": 2}, false},
		{"a cluster whose metric gets its first value", []event{
			put(provider(), unread, measured("c1", "9"), policy("p"), workload("web", 2, cpus)),
			put(metric("load", 0.5)),
		}, map[string]int64{"c1": 2}, false},
		{"a cluster that was evicted, once the workload is healthy elsewhere", []event{
			put(sized("c1", "9"), sized("c2", "9"), policy("p"), workload("web", 2, cpus)),
			put(offline("c1", "9")),
			put(sized("c1", "9")),
			func(_ *world, p *planner, now time.Time) {
				p.bindings.report(p.bindings.workloads[web], api.HealthReport{Cluster: "c2", Status: api.Healthy}, now)
			},
		}, map[string]int64{"c1": 2, "c2": 2}, false},
		{"a cluster that returns while failover is held", []event{
			put(sized("c1", "9"), sized("c2", "9"), sized("c3", "9"), sized("c4", "9"), sized("c5", "9"), policy("p", func(s *api.PropagationPolicySpec) {
				s.Placement.ReplicaScheduling = &api.ReplicaScheduling{DivisionPreference: api.Aggregated}
			}), workload("web", 2, cpus)),
			put(offline("c1", "9"), offline("c2", "9"), offline("c3", "9"), offline("c4", "9"), offline("c5", "9")),
			put(sized("c1", "9")), // four of five are still lost
		}, map[string]int64{"c1": 2}, false},
		{"no cluster while failover is held", []event{
			put(sized("c1", "9"), sized("c2", "9"), sized("c3", "9"), sized("c4", "9"), sized("c5", "9"), policy("p", func(s *api.PropagationPolicySpec) {
				s.Placement.ReplicaScheduling = &api.ReplicaScheduling{DivisionPreference: api.Aggregated}
			}), workload("web", 2, cpus)),
			put(offline("c1", "9"), offline("c2", "9"), offline("c3", "9"), offline("c4", "9"), sized("c5", "8")),
		}, map[string]int64{"c1": 2}, true},
		{"more room on a present cluster with a taint", []event{
			put(sized("c1", "3"), policy("p", func(s *api.PropagationPolicySpec) { s.Placement.ReplicaScheduling = dynamic() }), workload("web", 2, cpus)),
			put(tainted("c1", "3"), workload("web", 4, cpus)),
			put(tainted("c1", "4")),
		}, map[string]int64{"c1": 4}, false},
		{"room that another workload frees on a present cluster with a taint", []event{
			put(sized("c1", "4"), policy("p", func(s *api.PropagationPolicySpec) { s.Placement.ReplicaScheduling = dynamic() }), workload("web", 2, cpus), workload("other", 2, cpus)),
			put(tainted("c1", "4"), workload("web", 4, cpus)),
			func(w *world, p *planner, _ time.Time) {
				w.remove(p, api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "other"})
			},
		}, map[string]int64{"c1": 4}, false},
	} {
		w, p := newWorld(), newPlanner(discard())
		now := epoch
		for _, happens := range tt.events {
			now = now.Add(time.Second)
			happens(w, p, now)
			p.pass(now)
			checkBound(t, p, now)
		}
		if got := replicasOf(p, "web"); !maps.Equal(got, tt.want) {
			t.Errorf("%s: replicas %v, want %v", tt.name, got, tt.want)
		}
		held := api.FindCondition(p.bindings.workloads[web].status.Conditions, api.ConditionFailoverHeld)
		if (held != nil && held.Status == api.ConditionTrue) != tt.held {
			t.Errorf("%s: unexpected condition FailoverHeld %+v", tt.name, held)
		}
	}
}
