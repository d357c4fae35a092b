package reconcile

import (
	"maps"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// wantReplicas checks on which clusters a workload of the namespace shop runs, and with how many replicas.
func wantReplicas(t *testing.T, p *planner, workload string, want map[string]int64) {
	t.Helper()
	if got := replicasOf(p, workload); !maps.Equal(got, want) {
		t.Errorf("%s is on %v, want %v", workload, got, want)
	}
}

// TestReplicasThatHaveGrownMoveAfterAStart changes what a replica needs, and then kills the server before it has
// decided: what the replicas needed when they were placed is not stored, and does not matter.
func TestReplicasThatHaveGrownMoveAfterAStart(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, policy("base", func(s *api.PropagationPolicySpec) { s.Placement.ReplicaScheduling = dynamic() }))
	w.write(p, sized("a", "4"))
	w.write(p, sized("b", "2"))
	w.write(p, workload("web", 6, important(0, "1")))
	p.pass(epoch)
	w.last = w.afterPass(p)
	w.write(p, sized("b", "8"))
	p.pass(epoch)
	w.last = w.afterPass(p)
	w.write(p, workload("web", 6, important(0, "1500m")))
	p.pass(epoch)
	wantReplicas(t, p, "web", map[string]int64{"a": 2, "b": 4})
	checkKilled(t, w, p, epoch)
}

// TestOthersSeeReplicasThatHaveGrownAtOnce has a more important workload, which is decided first, find room in a cluster
// on which replicas have grown in the meantime.
func TestOthersSeeReplicasThatHaveGrownAtOnce(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, policy("base", func(s *api.PropagationPolicySpec) { s.Placement.ReplicaScheduling = dynamic() }))
	w.write(p, sized("a", "8"))
	w.write(p, workload("web", 4, important(0, "1")))
	p.pass(epoch)
	w.write(p, workload("big", 6, important(1, "1")))
	p.pass(epoch)
	w.last = w.afterPass(p)
	w.write(p, sized("a", "10"))
	w.write(p, workload("web", 4, important(0, "1500m")))
	p.pass(epoch)
	wantReplicas(t, p, "web", map[string]int64{"a": 4})
	wantReplicas(t, p, "big", nil)
	checkKilled(t, w, p, epoch)
}

// TestWhoWaitsNeedNotStay has a copy that cannot grow with the others, so that its workload waits, on a cluster that then
// loses the room for what runs there: the other clusters are enough.
func TestWhoWaitsNeedNotStay(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, policy("base"))
	w.write(p, sized("a", "1"))
	w.write(p, sized("b", "4"))
	w.write(p, workload("web", 1, important(0, "1")))
	p.pass(epoch)
	w.write(p, workload("web", 2, important(0, "1")))
	p.pass(epoch)
	wantReplicas(t, p, "web", map[string]int64{"a": 1, "b": 1})
	w.last = w.afterPass(p)
	w.write(p, sized("a", "0"))
	p.pass(epoch)
	wantReplicas(t, p, "web", map[string]int64{"b": 2})
	checkKilled(t, w, p, epoch)
}

// TestWhoWaitsNeedNotStayBesideReplicasThatHaveGrown has the room of TestWhoWaitsNeedNotStay go because the replicas of
// another workload need more.
func TestWhoWaitsNeedNotStayBesideReplicasThatHaveGrown(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, policy("base"))
	w.write(p, policy("only-a", func(s *api.PropagationPolicySpec) {
		s.ResourceSelectors[0].Name, s.Placement.ReplicaScheduling = "low", dynamic()
		s.Placement.ClusterAffinity = &api.ClusterAffinity{ClusterNames: []string{"a"}}
	}))
	w.write(p, sized("a", "4"))
	w.write(p, sized("b", "4"))
	w.write(p, workload("low", 3, important(0, "1")))
	w.write(p, workload("web", 1, important(1, "1")))
	p.pass(epoch)
	w.write(p, workload("web", 2, important(1, "1")))
	p.pass(epoch)
	wantReplicas(t, p, "web", map[string]int64{"a": 1, "b": 1})
	w.last = w.afterPass(p)
	w.write(p, workload("low", 3, important(0, "1500m")))
	p.pass(epoch)
	wantReplicas(t, p, "web", map[string]int64{"b": 2})
	checkKilled(t, w, p, epoch)
}

// TestWhoBeginsToWaitNeedNotStay has a cluster shrink, where what runs stays, and then a policy ask for more than
// has room there.
func TestWhoBeginsToWaitNeedNotStay(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, policy("base", func(s *api.PropagationPolicySpec) { s.Placement.ReplicaScheduling = dynamic() }))
	w.write(p, sized("a", "2"))
	w.write(p, sized("b", "4"))
	w.write(p, workload("web", 3, important(0, "1")))
	p.pass(epoch)
	w.write(p, sized("a", "0"))
	p.pass(epoch)
	wantReplicas(t, p, "web", map[string]int64{"a": 1, "b": 2})
	w.last = w.afterPass(p)
	w.write(p, policy("base")) // every cluster has all replicas
	p.pass(epoch)
	wantReplicas(t, p, "web", map[string]int64{"b": 3})
	checkKilled(t, w, p, epoch)
}

// TestVictimsAreDividedAfterAStart has a workload displace one that is decided after it: its policy says whether a part of
// it can go.
func TestVictimsAreDividedAfterAStart(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	preempting(w, p)
	w.write(p, sized("a", "4"))
	w.write(p, workload("low", 4, important(1, "1")))
	p.pass(epoch)
	w.last = w.afterPass(p)
	w.write(p, workload("high", 1, important(2, "1")))
	p.pass(epoch)
	wantReplicas(t, p, "low", map[string]int64{"a": 3})
	checkKilled(t, w, p, epoch)
}

// TestWhatIsTakenBackMayBeDisplaced has a cluster return. The waiting workload has its turn before the one that takes
// the cluster back, and displaces it afterwards.
func TestWhatIsTakenBackMayBeDisplaced(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	preempting(w, p)
	a := sized("a", "4")
	w.write(p, a)
	w.write(p, workload("low", 4, important(1, "1")))
	p.pass(epoch)
	down := *a
	lose(&down, epoch)
	w.write(p, &down)
	w.write(p, workload("high", 4, important(2, "1")))
	p.pass(epoch)
	w.last = w.afterPass(p)
	w.write(p, sized("a", "4"))
	p.pass(epoch.Add(time.Minute))
	wantReplicas(t, p, "high", map[string]int64{"a": 4})
	checkKilled(t, w, p, epoch.Add(time.Minute))
}

// TestACommittedBindingMakesRoomOnce: what a preview displaces is displaced after the commit, also by a server that starts or
// takes over in between. A binding that has been written again since has made its room.
func TestACommittedBindingMakesRoomOnce(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	preempting(w, p)
	w.write(p, sized("a", "4"))
	w.write(p, workload("low", 4, important(1, "1")))
	w.write(p, workload("high", 2, important(2, "1")))
	p.pass(epoch)
	all := w.afterPass(p)
	low, high := api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "low"}, api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "high"}
	full, _ := all[low].Copy().(*api.Workload)
	full.Status.Clusters = []api.WorkloadCluster{{Name: "a", Replicas: 4, Since: &epoch}} // as before the commit
	all[low] = full
	for _, tt := range []struct {
		name    string
		status  int64 // revision of high's status; that of its spec is 7
		want    map[string]int64
		leads   bool // only later
		changed bool // its policy, since
	}{
		{name: "committed before the start", status: 7, want: map[string]int64{"a": 2}},
		{name: "committed before the takeover", status: 7, want: map[string]int64{"a": 2}, leads: true},
		{name: "written since", status: 8, want: map[string]int64{"a": 4}},
		{name: "written since, takeover", status: 8, want: map[string]int64{"a": 4}, leads: true},
		{name: "committed under the policy as it was", status: 7, want: map[string]int64{"a": 4}, changed: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			next := newPlanner(discard())
			next.following = tt.leads
			for key, object := range all {
				if tt.changed && key.Kind == api.KindPropagationPolicy {
					object = object.Copy()
					object.Meta().Generation++
				}
				if key != high {
					next.put(object, 1)
				}
			}
			stored := func(key api.Key) *fleet.Entry {
				if key != high {
					return &fleet.Entry{Object: all[key], SpecRevision: 1, StatusRevision: 2}
				}
				return &fleet.Entry{Object: all[key], SpecRevision: 7, StatusRevision: tt.status}
			}
			next.pass(epoch)
			next.putEntry(stored(high))
			if tt.leads {
				ahead := map[api.Key]struct{}{}
				for _, write := range next.pass(epoch) {
					ahead[write.key()] = struct{}{}
				}
				next.lead(ahead, stored)
			}
			rewritten := false
			for _, write := range next.pass(epoch) {
				rewritten = rewritten || write.key() == high
			}
			wantReplicas(t, next, "low", tt.want)
			if committed := tt.status == 7; rewritten != committed {
				t.Errorf("high was written: %t, want %t", rewritten, committed)
			}
		})
	}
}
