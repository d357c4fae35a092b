package reconcile

import (
	"maps"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// unreachable returns a metric whose provider does not answer any more, and whose last value is too old.
func unreachable(name string) *api.Metric {
	m := metric(name, 0)
	m.Status.Value = nil
	m.Status.Conditions = []api.Condition{{Type: api.ConditionAvailable, Status: api.ConditionFalse, Reason: api.ReasonUnreachableMetricsProvider}}
	return m
}

// TestWorkloadsStayWhileMetricsCannotBeRead checks that a workload keeps its clusters and replicas while a metric of one
// cannot be read, that a condition says which and since when, and that it goes when the metric is read again.
func TestWorkloadsStayWhileMetricsCannotBeRead(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, provider())
	w.write(p, metric("m1", 0.5))
	w.write(p, metric("m2", 0.5))
	w.write(p, cluster("c1", nil, api.MetricRef{Name: "m1"}))
	w.write(p, cluster("c2", nil, api.MetricRef{Name: "m2"}))
	w.write(p, policy("all", func(s *api.PropagationPolicySpec) { s.Placement.ReplicaScheduling = dynamic() }))
	w.write(p, workload("web", 4))
	w.stored(p, p.pass(epoch))
	want := map[string]int64{"c1": 2, "c2": 2}
	check := func(at time.Duration, since time.Duration) {
		t.Helper()
		w.stored(p, p.pass(epoch.Add(at)))
		checkBound(t, p, epoch.Add(at))
		if got := replicasOf(p, "web"); !maps.Equal(got, want) {
			t.Fatalf("after %s it runs on %v, want %v", at, got, want)
		}
		status := p.bindings.workloads[api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"}].status
		unread := api.FindCondition(status.Conditions, api.ConditionMetricsUnread)
		switch {
		case since < 0 && unread != nil:
			t.Fatalf("after %s it has the condition %+v, want none", at, unread)
		case since >= 0 && (unread == nil || unread.Status != api.ConditionTrue || !unread.LastTransitionAt.Equal(epoch.Add(since)) ||
			unread.Message != `metric "m1" cannot be read; clusters that were chosen with it stay until it can be`):
			t.Fatalf("after %s it has the condition %+v, want one that says since when m1 cannot be read", at, unread)
		}
	}
	check(0, -1)
	w.write(p, unreachable("m1"))
	check(10*time.Second, 10*time.Second)
	w.write(p, unreachable("m2"))
	check(20*time.Second, 10*time.Second)
	w.write(p, metric("m2", 0.1))
	check(30*time.Second, 10*time.Second)
	w.write(p, metric("m1", 0.9))
	check(40*time.Second, -1)
}
