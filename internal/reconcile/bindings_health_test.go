package reconcile

import (
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// What was reported about a cluster ends with it, also while no policy selects the
// workload: one of the same name later has other replicas.
func TestHealthOfAClusterThatIsGone(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	key := api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"}
	w.write(p, cluster("c1", nil))
	w.write(p, policy("before"))
	w.write(p, workload("web", 1))
	p.pass(epoch)
	p.bindings.report(p.bindings.workloads[key], api.HealthReport{Cluster: "c1", Status: api.Unhealthy}, epoch)
	w.remove(p, api.Key{Kind: api.KindPropagationPolicy, Namespace: "shop", Name: "before"})
	p.pass(epoch)
	if status := &p.bindings.workloads[key].status; len(status.Clusters) != 1 || len(status.Health) != 1 {
		t.Fatalf("status without a policy %+v, want one cluster with health", status)
	}
	w.remove(p, api.Key{Kind: api.KindCluster, Name: "c1"})
	p.pass(epoch)
	if status := &p.bindings.workloads[key].status; len(status.Clusters)+len(status.Health) != 0 {
		t.Errorf("status after the cluster was deleted %+v, want neither clusters nor health", status)
	}
	w.write(p, cluster("c1", nil))
	w.write(p, policy("after", func(s *api.PropagationPolicySpec) {
		s.Failover = &api.Failover{Application: &api.ApplicationFailover{Toleration: "0s"}}
	}))
	p.pass(epoch)
	checkBound(t, p, epoch)
	if got := replicasOf(p, "web"); got["c1"] != 1 {
		t.Errorf("replicas %v, want 1 on c1", got)
	}
}
