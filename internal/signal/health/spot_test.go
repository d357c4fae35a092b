package health

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// splitting returns a cluster with a kubeconfig and spot enabled.
func splitting(name string) *api.Cluster {
	c := withKubeconfig(name, "k")
	c.Spec.Spot = &api.SpotSpec{Enabled: true}
	return c
}

var works = api.Condition{Status: api.ConditionTrue, Reason: "Ready", Message: "new pods pass through the server"}

// expectSpot checks the spot status; nil nodes mean no status, and an empty reason no condition.
func (w *world) expectSpot(name string, nodes *int64, status api.ConditionStatus, reason string) {
	w.t.Helper()
	s := w.status(name)
	if (s.Spot == nil) != (nodes == nil) || nodes != nil && s.Spot.SpotNodes != *nodes {
		w.t.Errorf("%s: got spot status %+v", name, s.Spot)
	}
	c := api.FindCondition(s.Conditions, api.ConditionSpotReady)
	if (c == nil) != (reason == "") || c != nil && (c.Status != status || c.Reason != reason || c.Message == "" || c.LastTransitionAt == nil) {
		w.t.Errorf("%s: got condition %+v, want %s %s", name, c, status, reason)
	}
}

func count(n int64) *int64 { return &n }

// TestSpotStatus checks that the status appears with an observation, and disappears with the spot block.
func TestSpotStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		defer w.run()()
		w.put(splitting("a"))
		w.Observed("a", api.NewSecret("k"), Observation{Answer: AnswerReady, Message: "well", Condition: seen})
		synctest.Wait()
		w.expectSpot("a", nil, api.ConditionUnknown, api.ReasonNotObserved)

		told := api.SpotStatus{SpotNodes: 3, OnDemandNodes: 2}
		w.ObservedSpot("a", "uid", &told, works)
		told.SpotNodes = 9 // the caller may reuse the value
		synctest.Wait()
		w.expectSpot("a", count(3), api.ConditionTrue, "Ready")
		since := *api.FindCondition(w.status("a").Conditions, api.ConditionSpotReady).LastTransitionAt

		writes := w.count()
		faketime.Sleep(time.Minute)
		w.ObservedSpot("a", "uid", &api.SpotStatus{SpotNodes: 3, OnDemandNodes: 2}, works)
		synctest.Wait()
		if n := w.count(); n != writes {
			t.Errorf("%d writes of an unchanged status", n-writes)
		}
		w.ObservedSpot("a", "uid", &api.SpotStatus{SpotNodes: 4}, works)
		synctest.Wait()
		w.expectSpot("a", count(4), api.ConditionTrue, "Ready")
		if at := *api.FindCondition(w.status("a").Conditions, api.ConditionSpotReady).LastTransitionAt; !at.Equal(since) {
			t.Errorf("ready since %s, previously since %s", at, since)
		}
		w.expect("a", api.StateOnline) // the state does not depend on it

		off := splitting("a")
		off.Spec.Spot.Enabled = false
		w.settle(w.put(off))
		w.expectSpot("a", nil, "", "")
		w.ObservedSpot("a", "uid", &api.SpotStatus{SpotNodes: 5}, works)
		synctest.Wait()
		w.expectSpot("a", nil, "", "")

		gone := withKubeconfig("a", "k")
		w.settle(w.put(gone))
		w.settle(w.put(splitting("a")))
		w.expectSpot("a", nil, api.ConditionUnknown, api.ReasonNotObserved)
	})
}

// TestSpotWithoutKubeconfig checks that the condition says what to do, and is removed when it is done.
func TestSpotWithoutKubeconfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		defer w.run()()
		blind := named("a")
		blind.Spec.Spot = &api.SpotSpec{Enabled: true}
		w.settle(w.put(blind))
		w.expectSpot("a", nil, api.ConditionFalse, "NoKubeconfig")
		if s := w.status("a"); s.State != "" || s.ObservedGeneration != 1 {
			t.Errorf("unexpected status %+v", s)
		}
		w.ObservedSpot("a", "uid", &api.SpotStatus{SpotNodes: 1}, works) // observed a moment ago
		synctest.Wait()
		w.expectSpot("a", nil, api.ConditionFalse, "NoKubeconfig")
		w.Remove("a", 1)
		w.put(named("a"))

		revision := w.put(splitting("a"))
		w.Observed("a", api.NewSecret("k"), Observation{Answer: AnswerReady, Message: "well", Condition: seen})
		w.settle(revision)
		w.expectSpot("a", nil, api.ConditionUnknown, api.ReasonNotObserved)
		w.settle(w.put(blind))
		w.expectSpot("a", nil, api.ConditionFalse, "NoKubeconfig")
	})
}

// TestSpotOfAnotherCluster checks that an observation does not count for a later cluster with the same name.
func TestSpotOfAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		defer w.run()()
		w.put(splitting("a"))
		w.Observed("a", api.NewSecret("k"), Observation{Answer: AnswerReady, Message: "well", Condition: seen})
		w.ObservedSpot("a", "another", &api.SpotStatus{SpotNodes: 3}, works)
		synctest.Wait()
		w.expectSpot("a", nil, api.ConditionUnknown, api.ReasonNotObserved)
	})
}

// TestSpotBeforeTheMonitorKnows covers an observation of a cluster, or of its spot block, that arrives before the
// monitor knows them.
func TestSpotBeforeTheMonitorKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		defer w.run()()
		w.ObservedSpot("a", "uid", &api.SpotStatus{SpotNodes: 3}, works)
		w.put(splitting("a"))
		w.Observed("a", api.NewSecret("k"), Observation{Answer: AnswerReady, Message: "well", Condition: seen})
		synctest.Wait()
		w.expectSpot("a", count(3), api.ConditionTrue, "Ready")

		w.put(withKubeconfig("b", "k"))
		w.Observed("b", api.NewSecret("k"), Observation{Answer: AnswerReady, Message: "well", Condition: seen})
		w.ObservedSpot("b", "uid", &api.SpotStatus{SpotNodes: 2}, works)
		synctest.Wait()
		w.expectSpot("b", nil, "", "")
		w.settle(w.put(splitting("b")))
		w.expectSpot("b", count(2), api.ConditionTrue, "Ready")
	})
}

// TestSpotSurvivesARestart checks that the status stays until there is a new observation.
func TestSpotSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		stop := w.run()
		w.put(splitting("a"))
		w.Observed("a", api.NewSecret("k"), Observation{Answer: AnswerReady, Message: "well", Condition: seen})
		w.ObservedSpot("a", "uid", &api.SpotStatus{SpotNodes: 3}, works)
		synctest.Wait()
		stop()
		again := w.restart()
		defer again.run()()
		synctest.Wait()
		if n := again.count(); n != 0 {
			t.Errorf("%d writes after a restart, want none", n)
		}
		again.expectSpot("a", count(3), api.ConditionTrue, "Ready")
	})
}

// TestSpotIsWrittenOnceTheStoreWorks checks that reporting does not block while the store is down, and that the report
// is not lost.
func TestSpotIsWrittenOnceTheStoreWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		defer w.run()()
		w.put(splitting("a"))
		w.Observed("a", api.NewSecret("k"), Observation{Answer: AnswerReady, Message: "well", Condition: seen})
		synctest.Wait()
		fail := func(err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.broken = err
		}
		fail(errors.New("full"))
		for n := range int64(100) {
			w.ObservedSpot("a", "uid", &api.SpotStatus{SpotNodes: n + 1}, works)
		}
		synctest.Wait()
		w.expectSpot("a", nil, api.ConditionUnknown, api.ReasonNotObserved)
		fail(nil)
		faketime.Sleep(2 * time.Second)
		w.expectSpot("a", count(100), api.ConditionTrue, "Ready")
	})
}
