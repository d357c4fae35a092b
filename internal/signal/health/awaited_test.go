package health

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// toCreate returns a cluster for which a cloud is to be chosen.
func toCreate(name string) *api.Cluster {
	c := named(name)
	c.Spec.CloudConstraints = &api.CloudConstraints{}
	return c
}

// TestClusterToBeCreatedIsPending checks that a cluster that is to be created stays pending until something shows that it exists,
// whatever else is written, also after a restart. What has shown it cannot be undone.
func TestClusterToBeCreatedIsPending(t *testing.T) {
	for name, c := range map[string]struct {
		shows func(w *world, c *api.Cluster)
		want  api.ClusterState
	}{
		"nothing":       {func(w *world, c *api.Cluster) { c.Metadata.Labels = map[string]string{"a": "b"}; w.put(c) }, api.StatePending},
		"a heartbeat":   {func(w *world, c *api.Cluster) { w.beat(c.Metadata.Name, api.Heartbeat{}) }, api.StateOnline},
		"amounts":       {func(w *world, c *api.Cluster) { c.Spec.Allocatable = api.Quantities{"cpu": "1"}; w.put(c) }, ""},
		"a zone":        {func(w *world, c *api.Cluster) { c.Spec.OpenStack = &api.ClusterOpenStack{Cloud: "c"}; w.put(c) }, ""},
		"asked no more": {func(w *world, c *api.Cluster) { c.Spec.CloudConstraints = nil; w.put(c) }, ""},
		"capacity pushed": {func(w *world, c *api.Cluster) {
			if _, err := w.Report(w.t.Context(), c.Metadata.Name, Amounts{Allocatable: api.Quantities{"cpu": "1"}}); err != nil {
				t.Fatal(err)
			}
		}, ""},
		"a kubeconfig alone": {func(w *world, c *api.Cluster) { c.Spec.Kubernetes = withKubeconfig("a", "k").Spec.Kubernetes; w.put(c) }, api.StatePending},
		"observed": {func(w *world, c *api.Cluster) {
			c.Spec.Kubernetes = withKubeconfig("a", "k").Spec.Kubernetes
			w.put(c)
			w.Observed("a", api.NewSecret("k"), Observation{Answer: AnswerReady, Message: "well", Condition: seen})
		}, api.StateOnline},
		"observed, then kubeconfig removed": {func(w *world, c *api.Cluster) {
			with := *c
			with.Spec.Kubernetes = withKubeconfig("a", "k").Spec.Kubernetes
			w.put(&with)
			w.Observed("a", api.NewSecret("k"), Observation{Answer: AnswerReady, Message: "well", Condition: seen})
			synctest.Wait()
			w.put(c)
		}, api.StateOnline},
		"heartbeats awaited": {func(w *world, c *api.Cluster) { c.Spec.Health = &api.HealthSpec{}; w.put(c) }, api.StatePending},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, newSite())
				stop := w.run()
				w.settle(w.put(toCreate("a")))
				w.expect("a", api.StatePending)
				ready := api.FindCondition(w.status("a").Conditions, api.ConditionReady)
				if ready == nil || ready.Status != api.ConditionUnknown || ready.Reason != reasonNotCreated {
					t.Errorf("unexpected condition %+v", ready)
				}
				c.shows(w, toCreate("a"))
				synctest.Wait()
				w.expect("a", c.want)
				stop()
				again := w.restart()
				defer again.run()()
				faketime.Sleep(time.Second)
				again.expect("a", c.want)
				if c.want != api.StatePending {
					w := again
					w.put(toCreate("a")) // as first declared
					synctest.Wait()
					if got := w.status("a").State; got == api.StatePending {
						t.Error("the cluster is pending again")
					}
				}
			})
		})
	}
}

// TestCloudRequestedForRunningCluster covers clusters that already run when a cloud is requested, and clusters for which one was requested
// before the server kept such clusters pending.
func TestCloudRequestedForRunningCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		defer w.run()()
		w.put(named("a"))
		w.put(toCreate("a"))
		old := toCreate("old")
		old.Metadata.Generation, old.Status.ObservedGeneration = 1, 1
		w.put(old)
		synctest.Wait()
		w.expect("a", "")
		w.expect("old", "")
	})
}
