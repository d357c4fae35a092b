package health

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// TestJudge checks that one unhealthy node of many never takes a cluster offline, and that more than half do.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer Answer
		nodes  *NodeFacts
		want   outcome
	}{
		{"ready, nodes unknown", AnswerReady, nil, success},
		{"no nodes", AnswerReady, &NodeFacts{}, success},
		{"all nodes ready", AnswerReady, &NodeFacts{Total: 3, Ready: 3}, success},
		{"one of 1000 nodes not ready", AnswerReady, &NodeFacts{Total: 1000, Ready: 999, NotReady: 1}, success},
		{"half of the nodes not ready", AnswerReady, &NodeFacts{Total: 4, Ready: 2, NotReady: 2}, success},
		{"more than half of the nodes not ready", AnswerReady, &NodeFacts{Total: 4, Ready: 1, NotReady: 3}, notReady},
		{"the only node not ready", AnswerReady, &NodeFacts{Total: 1, NotReady: 1}, notReady},
		{"half of the nodes under pressure", AnswerReady, &NodeFacts{Total: 2, Ready: 1, Pressure: 1}, success},
		{"more than half of the nodes under pressure", AnswerReady, &NodeFacts{Total: 3, Ready: 1, Pressure: 2}, pressed},
		{"the only node not ready and under pressure", AnswerReady, &NodeFacts{Total: 1, NotReady: 1, Pressure: 1}, pressed},
		{"half not ready, half under pressure", AnswerReady, &NodeFacts{Total: 4, NotReady: 2, Pressure: 2}, success},
		{"API server not ready", AnswerNotReady, &NodeFacts{Total: 3, Ready: 3}, refused},
		{"no answer", AnswerNone, &NodeFacts{Total: 3, Ready: 3}, unreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Observation{Answer: c.answer, Message: "said", Facts: Facts{Nodes: c.nodes}}
			got, reason, message := o.judge()
			if got != c.want || reason == "" || message == "" {
				t.Errorf("%v %q %q, want %v", got, reason, message, c.want)
			}
		})
	}
}

var seen = api.Condition{Status: api.ConditionTrue, Reason: api.ReasonObserved, Message: "seen"}

func withKubeconfig(name, text string) *api.Cluster {
	c := named(name)
	c.Spec.Kubernetes = &api.KubernetesSpec{Kubeconfig: api.NewSecret(text)}
	return c
}

// TestKubeconfigOlderThanTheServer covers a server that starts to watch clusters that already had a kubeconfig. What runs on
// them stays until they have failed; a new cluster is unknown.
func TestKubeconfigOlderThanTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := time.Now()
		faketime.Sleep(time.Minute)
		w := newWorld(t, newSite())
		faketime.Sleep(time.Second)
		defer w.run()()
		old, fresh := withKubeconfig("old", "k"), withKubeconfig("fresh", "k")
		now := time.Now()
		old.Metadata.CreatedAt, fresh.Metadata.CreatedAt = &before, &now
		w.put(old)
		w.put(fresh)
		fail := func() {
			for _, name := range []string{"old", "fresh"} {
				w.Observed(name, api.NewSecret("k"), Observation{Answer: AnswerNone, Message: "gone", Condition: seen})
			}
			faketime.Sleep(10 * time.Second)
		}
		fail()
		w.expect("old", api.StateOnline)
		w.expect("fresh", api.StatePending)
		for range api.DefaultFailureThreshold - 1 {
			fail()
		}
		w.expect("old", api.StateOffline)
	})
}

// TestObservationOfAnotherKubeconfig checks that a late observation is ignored.
func TestObservationOfAnotherKubeconfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		defer w.run()()
		revision := w.put(withKubeconfig("a", "two"))
		w.Observed("a", api.NewSecret("one"), Observation{Answer: AnswerReady, Message: "late", Condition: seen})
		w.Observed("b", api.NewSecret("two"), Observation{Answer: AnswerReady, Message: "unknown", Condition: seen})
		synctest.Wait()
		if w.count() != 0 {
			t.Errorf("%d writes, want none", w.count())
		}
		w.Observed("a", api.NewSecret("two"), Observation{Answer: AnswerReady, Message: "in time", Condition: seen})
		w.settle(revision)
		w.expect("a", api.StateOnline)
	})
}

// TestCapacityReportFromPods checks that an observation only counts as a capacity report, which ends the reservations
// of older decisions, if the pods or their requests have changed.
func TestCapacityReportFromPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		defer w.run()()
		observe := func(cpu api.Quantity, pods uint64) time.Time {
			t.Helper()
			faketime.Sleep(time.Minute)
			w.Observed("a", api.NewSecret("k"), Observation{
				Answer: AnswerReady, Message: "well", Condition: seen,
				Facts: Facts{Allocated: api.Quantities{"cpu": cpu}, Pods: pods},
			})
			synctest.Wait()
			return *w.status("a").CapacityReportedAt
		}
		w.put(withKubeconfig("a", "k"))
		first := observe("1", 1)
		if again := observe("1", 1); !again.Equal(first) {
			t.Errorf("reported at %s without a change, previously at %s", again, first)
		}
		moved := observe("1", 2)
		if !moved.After(first) {
			t.Error("a change of the pods does not count as a report")
		}
		if more := observe("2", 3); !more.After(moved) {
			t.Error("higher usage does not count as a report")
		}
		// An unknown amount keeps the previous one.
		w.Observed("a", api.NewSecret("k"), Observation{Answer: AnswerReady, Message: "well", Condition: seen})
		synctest.Wait()
		if got := w.status("a").Allocated["cpu"]; got != "2" {
			t.Errorf("allocated cpu %q, want 2", got)
		}
		// After a restart, the same pods are not a report.
		stop := w.restart()
		defer stop.run()()
		before := *stop.status("a").CapacityReportedAt
		stop.Observed("a", api.NewSecret("k"), Observation{
			Answer: AnswerReady, Message: "well", Condition: seen, Facts: Facts{Allocated: api.Quantities{"cpu": "2"}, Pods: 1},
		})
		synctest.Wait()
		if got := *stop.status("a").CapacityReportedAt; !got.Equal(before) {
			t.Errorf("reported at %s after a restart, previously at %s", got, before)
		}
	})
}
