package health

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// expectGone checks which resources a cluster has lost.
func (w *world) expectGone(name string, allocatable api.Quantities, reason string, gone ...string) {
	w.t.Helper()
	synctest.Wait()
	s := w.status(name)
	condition := api.FindCondition(s.Conditions, api.ConditionResourcesGone)
	if !maps.Equal(s.Allocatable, allocatable) || !slices.Equal(s.GoneResources, gone) || (condition == nil) != (reason == "") ||
		condition != nil && condition.Reason != reason {
		w.t.Errorf("allocatable %v, gone %v, condition %+v; want %v, %v, reason %q", s.Allocatable, s.GoneResources, condition, allocatable, gone, reason)
	}
}

// TestResourceMissingInHeartbeatIsZero checks that a resource that an agent leaves out of its next report is 0, not unknown.
func TestResourceMissingInHeartbeatIsZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		defer w.run()()
		w.settle(w.put(named("edge")))
		w.beat("edge", api.Heartbeat{Allocatable: api.Quantities{"cpu": "8", "gpu": "2"}, Allocated: api.Quantities{"cpu": "1", "gpu": "1"}})
		w.expectGone("edge", api.Quantities{"cpu": "8", "gpu": "2"}, "")
		w.beat("edge", api.Heartbeat{Allocatable: api.Quantities{"cpu": "8"}, Allocated: api.Quantities{"cpu": "1"}})
		w.expectGone("edge", api.Quantities{"cpu": "8", "gpu": "0"}, api.ReasonNotReported, "gpu")
		if got := w.status("edge").Allocated["gpu"]; got != "0" {
			t.Errorf("allocated gpu %q, want 0", got)
		}
		w.beat("edge", api.Heartbeat{}) // reports no amounts
		w.expectGone("edge", api.Quantities{"cpu": "8", "gpu": "0"}, api.ReasonNotReported, "gpu")

		again := w.restart()
		defer again.run()()
		again.beat("edge", api.Heartbeat{Allocatable: api.Quantities{}})
		again.expectGone("edge", api.Quantities{"cpu": "0", "gpu": "0"}, api.ReasonNotReported, "cpu", "gpu")
		if _, err := again.Report(t.Context(), "edge", Amounts{Allocatable: api.Quantities{"cpu": "4"}}); err != nil {
			t.Fatal(err)
		}
		again.expectGone("edge", api.Quantities{"cpu": "4", "gpu": "0"}, api.ReasonNotReported, "gpu")
		again.beat("edge", api.Heartbeat{Allocatable: api.Quantities{"cpu": "8", "gpu": "2"}})
		again.expectGone("edge", api.Quantities{"cpu": "8", "gpu": "2"}, "")
	})
}

// TestWatchedClusterLosesNodes covers the last node with a GPU, and the last node of all.
func TestWatchedClusterLosesNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		defer w.run()()
		w.put(withKubeconfig("a", "k"))
		observe := func(nodes int64, amounts api.Quantities) {
			t.Helper()
			faketime.Sleep(time.Minute)
			w.Observed("a", api.NewSecret("k"), Observation{Answer: AnswerReady, Message: "well", Condition: seen, Facts: Facts{
				Nodes: &NodeFacts{Total: nodes, Ready: nodes, Capacity: amounts, Allocatable: amounts},
			}})
		}
		observe(2, api.Quantities{"cpu": "8", "gpu": "2", "pods": "220"})
		w.expectGone("a", api.Quantities{"cpu": "8", "gpu": "2", "pods": "220"}, "")
		observe(1, api.Quantities{"cpu": "4", "pods": "110"})
		w.expectGone("a", api.Quantities{"cpu": "4", "gpu": "0", "pods": "110"}, api.ReasonNotReported, "gpu")
		observe(0, api.Quantities{"cpu": "0", "pods": "0"})
		w.expectGone("a", api.Quantities{"cpu": "0", "gpu": "0", "pods": "0"}, api.ReasonNoNodes, "gpu")
		observe(1, api.Quantities{"cpu": "4", "gpu": "1", "pods": "110"})
		w.expectGone("a", api.Quantities{"cpu": "4", "gpu": "1", "pods": "110"}, "")
		observe(0, api.Quantities{"cpu": "0", "gpu": "0", "pods": "0"})
		w.put(named("a")) // unknown without the kubeconfig
		w.expectGone("a", nil, "")
	})
}
