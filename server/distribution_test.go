package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// A workload requests a split, which is decided and explained. A cluster that cannot be observed reports it, and the
// split is still there after a restart.
func TestSplitFromWriteToRestart(t *testing.T) {
	dir := t.TempDir()
	s := start(t, testConfig(dir))
	blind := cluster("berlin")
	blind.Spec.Spot = &api.SpotSpec{Enabled: true}
	berlin := put(s, blind)
	if ready := api.FindCondition(berlin.Status.Conditions, api.ConditionSpotReady); ready == nil || ready.Reason != "NoKubeconfig" || !strings.Contains(ready.Message, "kubernetes.kubeconfig") {
		t.Errorf("conditions of a cluster with spot, but without a kubeconfig: %+v", berlin.Status.Conditions)
	}
	put(s, cluster("paris"))
	put(s, policy("europe", "berlin", "paris"))
	web := workload("shop", "web", 6)
	web.Spec.Distribution = &api.DistributionSpec{Mode: api.ModeCustom, CustomOnDemand: "3"}
	check := func(got *api.Workload, berlin, paris int64) {
		t.Helper()
		c := got.Status.Clusters
		if len(c) != 2 || c[0].OnDemand == nil || *c[0].OnDemand != berlin || *c[0].Spot != c[0].Replicas-berlin || c[1].OnDemand == nil || *c[1].OnDemand != paris {
			t.Errorf("got %+v", c)
		}
	}
	got := put(s, web)
	check(got, 2, 1)
	distributed := api.FindCondition(got.Status.Conditions, api.ConditionDistributed)
	// Berlin's problem is detected concurrently with the decision.
	known := []string{
		`cluster "paris" does not have spot enabled; cluster "berlin" has not been observed yet`,
		`cluster "berlin": the cluster has no kubeconfig; cluster "paris" does not have spot enabled`,
	}
	if distributed == nil || distributed.Reason != api.ReasonNotSplit || !slices.Contains(known, distributed.Message) {
		t.Errorf("got %+v", distributed)
	}
	explanation, err := s.client.Explain(t.Context(), api.KeyOf(web))
	if err != nil || !strings.HasSuffix(explanation.Summary, "; 3 of the replicas go to on-demand nodes, 3 to spot nodes") {
		t.Errorf("explanation %+v, error %v", explanation, err)
	}
	web.Spec.Distribution.CustomOnDemand = "100%"
	got = put(s, web)
	check(got, 3, 3)

	if _, err := s.client.Interrupt(t.Context(), "paris", "node-1", time.Time{}); client.StatusOf(err) != 409 || !strings.Contains(err.Error(), "spot is not enabled") {
		t.Errorf("Interrupt() on a cluster without spot: error %v", err)
	}
	if _, err := s.client.ListDistributions(t.Context(), "berlin"); client.StatusOf(err) != 409 || !strings.Contains(err.Error(), "kubeconfig") {
		t.Errorf("ListDistributions() of a cluster without a kubeconfig: error %v", err)
	}
	if err := s.client.WithdrawInterruption(t.Context(), "tokyo", "node-1"); client.StatusOf(err) != 404 {
		t.Errorf("WithdrawInterruption() on an unknown cluster: error %v", err)
	}

	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = start(t, testConfig(dir))
	again := get[*api.Workload](s, api.KeyOf(web))
	check(again, 3, 3)
	if again.Status.DecisionRevision != got.Status.DecisionRevision || !again.Status.ScheduledAt.Equal(*got.Status.ScheduledAt) {
		t.Errorf("status after a restart %+v, want %+v", again.Status, got.Status)
	}
}
