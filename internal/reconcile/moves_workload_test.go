package reconcile

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// heldWorkload returns the condition MoveHeld of a workload, as readers see it.
func heldWorkload(p *planner, name string) string {
	w := p.bindings.workloads[key(api.KindWorkload, "shop", name)]
	c := api.FindCondition(*api.ConditionsOf(p.snapshot(nil).withMoveHeld(w.result())), api.ConditionMoveHeld)
	if c == nil {
		return ""
	}
	return c.Reason + ": " + c.Message
}

func wantReplicas(t *testing.T, p *planner, when, name string, want map[string]int64) {
	t.Helper()
	if got := replicasOf(p, name); !maps.Equal(got, want) {
		t.Errorf("%s: replicas of %s are %v, want %v", when, name, got, want)
	}
}

// TestFailBackIsHeld checks that a workload does not return to its first group while a window is
// closed, and then at once: it does not wait for the stabilization again.
func TestFailBackIsHeld(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	group := func(name, cluster string) api.AffinityTerm {
		return api.AffinityTerm{AffinityName: name, ClusterAffinity: api.ClusterAffinity{ClusterNames: []string{cluster}}}
	}
	away := sized("c1", "9")
	away.Status.State = api.StateOffline
	for _, object := range []api.Object{
		away, sized("c2", "9"), workload("web", 2),
		policy("p", func(s *api.PropagationPolicySpec) {
			s.Placement.ReplicaScheduling = dynamic()
			s.Placement.ClusterAffinities = []api.AffinityTerm{group("first", "c1"), group("second", "c2")}
			s.FailBack = &api.FailBack{Stabilization: "10m"}
		}),
		window(api.WindowAllow, func(s *api.MoveWindowSpec) { s.Reasons = []api.CauseType{api.CauseFailBack} }),
	} {
		w.write(p, object)
	}
	p.pass(epoch)
	wantReplicas(t, p, "at first", "web", map[string]int64{"c2": 2})
	w.write(p, sized("c1", "9"))
	p.pass(epoch.Add(time.Minute))
	p.pass(epoch.Add(12 * time.Minute))
	wantReplicas(t, p, "by day", "web", map[string]int64{"c2": 2})
	if got, want := heldWorkload(p, "web"), "HeldByWindow: kept: window evenings until 2026-03-01 18:00 UTC, else c1"; got != want {
		t.Errorf("held as %q, want %q", got, want)
	}
	checkBound(t, p, epoch.Add(12*time.Minute))
	if x := p.bindings.explain(p.bindings.workloads[key(api.KindWorkload, "shop", "web")], epoch.Add(12*time.Minute)); x.Held == nil || !strings.Contains(x.Summary, "kept: window evenings") {
		t.Errorf("explained as %+v: %s", x.Held, x.Summary)
	}
	evening := time.Date(2026, 3, 1, 18, 0, 0, 0, time.UTC)
	if got := p.nextAt(); !got.Equal(evening) {
		t.Errorf("looked at again at %v, want %v", got, evening)
	}
	p.pass(evening)
	wantReplicas(t, p, "in the evening", "web", map[string]int64{"c1": 2})
	if got := heldWorkload(p, "web"); got != "" {
		t.Errorf("in the end held as %q", got)
	}
}

// TestOnlyLostReplicasMove checks that static weights are not divided anew while everything is
// frozen, except for the replicas of a cluster that is lost.
func TestOnlyLostReplicasMove(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	for _, name := range []string{"c1", "c2"} {
		w.write(p, cluster(name, nil))
	}
	w.write(p, freeze("shop", nil))
	w.write(p, policy("p", func(s *api.PropagationPolicySpec) {
		s.Placement.ReplicaScheduling = &api.ReplicaScheduling{WeightPreference: &api.WeightPreference{StaticWeights: []api.StaticWeight{{Weight: 1}}}}
	}))
	w.write(p, workload("web", 6))
	p.pass(epoch)
	wantReplicas(t, p, "at first", "web", map[string]int64{"c1": 3, "c2": 3})
	w.write(p, cluster("c3", nil))
	p.pass(epoch)
	wantReplicas(t, p, "frozen", "web", map[string]int64{"c1": 3, "c2": 3})
	if got := heldWorkload(p, "web"); !strings.HasPrefix(got, "HeldByFreeze: kept: freeze (incident), else c1, c2, c3") {
		t.Errorf("held as %q", got)
	}
	checkBound(t, p, epoch)
	w.remove(p, key(api.KindCluster, "", "c1"))
	p.pass(epoch)
	wantReplicas(t, p, "after the loss of c1", "web", map[string]int64{"c2": 3, "c3": 3})
	w.write(p, workload("web", 9))
	p.pass(epoch)
	if got := replicasOf(p, "web"); got["c2"]+got["c3"] != 9 {
		t.Errorf("after a change of the spec, replicas are %v, want 9", got)
	}
	w.write(p, cluster("c4", nil))
	w.remove(p, key(api.KindFreeze, "shop", api.FreezeName))
	p.pass(epoch)
	wantReplicas(t, p, "thawed", "web", map[string]int64{"c2": 3, "c3": 3, "c4": 3})
}

// TestFurtherClustersOfAWorkloadAreHeld checks that a workload that runs everywhere does not run on
// a new cluster while everything is frozen.
func TestFurtherClustersOfAWorkloadAreHeld(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, cluster("c1", nil))
	w.write(p, freeze("", nil))
	w.write(p, policy("p"))
	w.write(p, workload("web", 2))
	p.pass(epoch)
	w.write(p, cluster("c2", nil))
	p.pass(epoch)
	wantReplicas(t, p, "frozen", "web", map[string]int64{"c1": 2})
	checkBound(t, p, epoch)
	w.remove(p, key(api.KindFreeze, "", api.FreezeName))
	p.pass(epoch)
	wantReplicas(t, p, "thawed", "web", map[string]int64{"c1": 2, "c2": 2})
}

// TestBrokenConstraintsAreNotHeld checks that a workload whose clusters no longer comply with the
// spread constraints of its policy moves although everything is frozen.
func TestBrokenConstraintsAreNotHeld(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	in := func(name, region string) *api.Cluster {
		c := sized(name, "2")
		c.Spec.Region = region
		return c
	}
	needy := workload("web", 4, func(w *api.Workload) { w.Spec.ReplicaRequests = api.Quantities{"cpu": "1"} })
	for _, object := range []api.Object{in("c1", "eu"), in("c2", "eu"), freeze("", nil), needy, policy("p", func(s *api.PropagationPolicySpec) {
		s.Placement.ReplicaScheduling = dynamic()
		s.Placement.SpreadConstraints = []api.GroupConstraint{
			{SpreadByField: api.GroupByCluster}, {SpreadByField: api.GroupByRegion, MaxGroups: ptr[int64](1)},
		}
	})} {
		w.write(p, object)
	}
	p.pass(epoch)
	wantReplicas(t, p, "at first", "web", map[string]int64{"c1": 2, "c2": 2})
	w.write(p, in("c3", "us"))
	w.write(p, in("c4", "eu"))
	p.pass(epoch)
	wantReplicas(t, p, "frozen", "web", map[string]int64{"c1": 2, "c2": 2})
	w.write(p, in("c2", "us"))
	p.pass(epoch)
	if got := replicasOf(p, "web"); maps.Equal(got, map[string]int64{"c1": 2, "c2": 2}) || got["c1"]+got["c4"] != 4 && got["c2"]+got["c3"] != 4 {
		t.Errorf("with clusters in two regions, replicas are %v, want 4 in one", got)
	}
	checkBound(t, p, epoch)
}

// TestClusterThatFitsAnotherGroupStays checks that a cluster is kept under a freeze which no longer fits the affinity
// group that was chosen, but fits the next one.
func TestClusterThatFitsAnotherGroupStays(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	zone := func(zone string) map[string]string { return map[string]string{"zone": zone} }
	for _, object := range []api.Object{cluster("c1", zone("a")), freeze("", nil), workload("web", 1), policy("p", func(s *api.PropagationPolicySpec) {
		s.Placement.ClusterAffinities = []api.AffinityTerm{
			{AffinityName: "near", ClusterAffinity: api.ClusterAffinity{LabelSelector: &api.LabelSelector{MatchLabels: zone("a")}}},
			{AffinityName: "any"},
		}
	})} {
		w.write(p, object)
	}
	p.pass(epoch)
	wantReplicas(t, p, "at first", "web", map[string]int64{"c1": 1})
	w.write(p, cluster("c1", zone("b")))
	w.write(p, cluster("c0", zone("b")))
	p.pass(epoch)
	wantReplicas(t, p, "in the next group", "web", map[string]int64{"c1": 1})
	if got, want := heldWorkload(p, "web"), "HeldByFreeze: kept: freeze (incident), else c0, c1"; got != want {
		t.Errorf("held as %q, want %q", got, want)
	}
	checkBound(t, p, epoch)
}

// TestHeldWorkloadFollowsTheRoom checks that nothing is held any more when others have taken the
// room for which a workload would move.
func TestHeldWorkloadFollowsTheRoom(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	needy := workload("web", 4, func(w *api.Workload) { w.Spec.ReplicaRequests = api.Quantities{"cpu": "1"} })
	for _, object := range []api.Object{cluster("c1", nil), freeze("", nil), policy("p"), needy} {
		w.write(p, object)
	}
	p.pass(epoch)
	w.write(p, sized("c2", "4"))
	p.pass(epoch)
	if got, want := heldWorkload(p, "web"), "HeldByFreeze: kept: freeze (incident), else c1, c2"; got != want {
		t.Fatalf("held as %q, want %q", got, want)
	}
	w.write(p, policy("narrow", func(s *api.PropagationPolicySpec) {
		s.Priority, s.ResourceSelectors[0].Name = 1, "other"
		s.Placement.ClusterAffinity = &api.ClusterAffinity{ClusterNames: []string{"c2"}}
	}))
	w.write(p, workload("other", 2, func(w *api.Workload) { w.Spec.ReplicaRequests = api.Quantities{"cpu": "1"} }))
	p.pass(epoch)
	wantReplicas(t, p, "beside it", "other", map[string]int64{"c2": 2})
	if got := heldWorkload(p, "web"); got != "" {
		t.Errorf("held as %q, although there is no room on c2", got)
	}
	checkBound(t, p, epoch)
}

// TestPreemptionIsHeld checks that a workload is not displaced while a window denies it, and then
// without anything else.
func TestPreemptionIsHeld(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	needy := func(priority int64) func(*api.Workload) {
		return func(w *api.Workload) {
			w.Spec.ReplicaRequests, w.Spec.Priority = api.Quantities{"cpu": "1"}, priority
		}
	}
	for _, object := range []api.Object{
		policy("base", func(s *api.PropagationPolicySpec) {
			s.Placement.ReplicaScheduling = dynamic()
			s.WorkloadPreemption = api.WorkloadPreemptionLowerPriority
		}),
		sized("c0", "4"), workload("there", 4, needy(1)),
		window(api.WindowDeny, func(s *api.MoveWindowSpec) {
			s.Schedule, s.Duration, s.Reasons = "0 10 * * *", "8h", []api.CauseType{api.CausePreemption}
		}),
	} {
		w.write(p, object)
	}
	p.pass(epoch)
	w.write(p, workload("urgent", 4, needy(5)))
	p.pass(epoch)
	wantReplicas(t, p, "by day", "there", map[string]int64{"c0": 4})
	wantReplicas(t, p, "by day", "urgent", map[string]int64{})
	evening := time.Date(2026, 3, 1, 18, 0, 0, 0, time.UTC)
	if got := p.nextAt(); !got.Equal(evening) {
		t.Errorf("looked at again at %v, want %v", got, evening)
	}
	p.pass(evening)
	wantReplicas(t, p, "in the evening", "urgent", map[string]int64{"c0": 4})
}

// TestPolicyBudgetIsShared checks that the workloads of a policy use its budget together.
func TestPolicyBudgetIsShared(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	group := func(name, cluster string) api.AffinityTerm {
		return api.AffinityTerm{AffinityName: name, ClusterAffinity: api.ClusterAffinity{ClusterNames: []string{cluster}}}
	}
	away := cluster("c1", nil)
	away.Status.State = api.StateOffline
	w.write(p, away)
	w.write(p, cluster("c2", nil))
	w.write(p, policy("p", func(s *api.PropagationPolicySpec) {
		s.Placement.ReplicaScheduling = dynamic()
		s.Placement.ClusterAffinities = []api.AffinityTerm{group("first", "c1"), group("second", "c2")}
		s.FailBack, s.MoveBudget = &api.FailBack{Stabilization: "0s"}, &api.MoveBudgetSpec{MaxMoves: "40%", Per: "10m"}
	}))
	for i := range 4 {
		w.write(p, workload(fmt.Sprint("w", i), 1))
	}
	p.pass(epoch)
	w.write(p, cluster("c1", nil))
	returned := func() (n int) {
		for i := range 4 {
			if replicasOf(p, fmt.Sprint("w", i))["c1"] == 1 {
				n++
			}
		}
		return n
	}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 2}, {5 * time.Minute, 2}, {10 * time.Minute, 4}} {
		p.pass(epoch.Add(step.after))
		if got := returned(); got != step.want {
			t.Errorf("after %v, %d have returned, want %d", step.after, got, step.want)
		}
		checkBound(t, p, epoch.Add(step.after))
	}
}
