package reconcile

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestSimulatePolicyShowsTheRoomThatIsLeft checks that the reason of a waiting workload that a simulated policy lists counts
// the room after the pass, whatever the pass has looked at before, on a fork as on a planner that replays every object.
func TestSimulatePolicyShowsTheRoomThatIsLeft(t *testing.T) {
	cpus := func(priority int64) func(*api.Workload) {
		return func(w *api.Workload) {
			w.Spec.ReplicaRequests, w.Spec.Priority = api.Quantities{"cpu": "1"}, priority
		}
	}
	divided := policy("p", func(s *api.PropagationPolicySpec) { s.Placement.ReplicaScheduling = dynamic() })
	w, p := newWorld(), newPlanner(discard())
	for _, o := range []api.Object{sized("c1", "1"), divided, workload("web", 2, cpus(1))} {
		w.write(p, o)
	}
	p.pass(epoch)
	message := func(conditions []api.Condition) string {
		return api.FindCondition(conditions, api.ConditionScheduled).Message
	}
	web := p.bindings.workloads[api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"}]
	if got := message(web.status.Conditions); !strings.Contains(got, "room for 1 of 2") {
		t.Fatalf("before the simulation: %s", got)
	}

	for _, priority := range []int64{0, 2} { // decided after web, and before
		other := workload("other", 1, cpus(priority))
		other.SetDefaults()
		var request api.Simulation
		for _, o := range []api.Object{divided, other} {
			text, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			request.Objects = append(request.Objects, text)
		}
		s := p.snapshot(nil)
		fork := s.fork(newForkIndex(s), discard())
		fork.lose(nil)
		fork.pass(epoch)
		all := w.afterPass(p)
		replayed, _ := replay(all, p.started, epoch)
		for name, base := range map[string]*planner{"fork": fork, "replay": replayed} {
			result, err := newSimulation(nil, all).run(t.Context(), base, request, epoch)
			if err != nil {
				t.Fatal(err)
			}
			told := ""
			for _, b := range result.Objects[0].(*api.PropagationPolicy).Status.Bindings {
				if b.Workload == "shop/web" {
					told = message(b.Conditions)
				}
			}
			if !strings.Contains(told, "room for 0 of 2") {
				t.Errorf("%s, with one of priority %d: the policy says of web: %q, want room for 0 of 2", name, priority, told)
			}
		}
	}
}
