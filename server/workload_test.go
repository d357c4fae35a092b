package main

import (
	"maps"
	"net/http"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

func workload(namespace, name string, replicas int64) *api.Workload {
	return &api.Workload{
		Metadata: api.Metadata{Namespace: namespace, Name: name},
		Spec:     api.WorkloadSpec{APIVersion: "apps/v1", Kind: "Deployment", Replicas: &replicas},
	}
}

func policy(name string, clusters ...string) *api.PropagationPolicy {
	return &api.PropagationPolicy{
		Metadata: api.Metadata{Name: name},
		Spec: api.PropagationPolicySpec{
			ResourceSelectors: []api.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
			Placement: api.PropagationPlacement{
				ClusterAffinity:   &api.ClusterAffinity{ClusterNames: clusters},
				ReplicaScheduling: &api.ReplicaScheduling{},
			},
			Failover: &api.Failover{Application: &api.ApplicationFailover{Toleration: "0s", PurgeMode: api.PurgeDirectly}},
		},
	}
}

func replicas(w *api.Workload) map[string]int64 {
	byCluster := map[string]int64{}
	for _, c := range w.Status.Clusters {
		byCluster[c.Name] = c.Replicas
	}
	return byCluster
}

// A previewed binding is committed, explained and shown by the policy. It moves when a cluster is reported to be
// unhealthy, and survives a restart.
func TestWorkloadFromPreviewToFailover(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, testConfig(dir))
	for _, name := range []string{"berlin", "paris", "tokyo"} {
		put(s, cluster(name))
	}
	ctx := t.Context()
	commit := func(object api.Object) *api.Preview {
		t.Helper()
		preview, err := s.client.Preview(ctx, object)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.client.Put(ctx, object, client.PutOptions{PreviewToken: preview.Token}); err != nil {
			t.Fatal(err)
		}
		return preview
	}
	commit(policy("europe", "berlin", "paris"))
	preview := commit(workload("shop", "web", 6))
	key := api.KeyOf(workload("shop", "web", 6))
	even := map[string]int64{"berlin": 3, "paris": 3}
	if got := get[*api.Workload](s, key); !maps.Equal(replicas(got), even) || !maps.Equal(preview.Replicas, even) || got.Status.Policy != "europe" {
		t.Fatalf("unexpected status %+v, previewed %+v", got.Status, preview)
	}
	explanation, err := s.client.Explain(ctx, key)
	if err != nil || explanation.Kind != api.KindWorkload || explanation.Policy != "europe" || len(explanation.Candidates) != 3 {
		t.Errorf("explanation %+v, error %v", explanation, err)
	}

	moved, err := s.client.ReportHealth(ctx, key, api.HealthReport{Cluster: "paris", Status: api.Unhealthy, Message: "crash loop"})
	if err != nil || !maps.Equal(replicas(moved), map[string]int64{"berlin": 6}) {
		t.Fatalf("%+v, %v", moved, err)
	}
	if _, err := s.client.ReportHealth(ctx, key, api.HealthReport{Cluster: "tokyo", Status: api.Healthy}); client.StatusOf(err) != 422 {
		t.Errorf("health report from a cluster without the workload: error %v", err)
	}
	bound := get[*api.PropagationPolicy](s, api.KeyOf(policy("europe")))
	if len(bound.Status.Bindings) != 1 || bound.Status.Bindings[0].Workload != "shop/web" || len(bound.Status.Bindings[0].Clusters) != 1 {
		t.Errorf("got %+v", bound.Status)
	}

	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = start(t, testConfig(dir))
	if got := get[*api.Workload](s, key); !maps.Equal(replicas(got), map[string]int64{"berlin": 6}) || got.Status.DecisionRevision != moved.Status.DecisionRevision {
		t.Errorf("status after a restart %+v", got.Status)
	}
	fresh, err := s.client.Reschedule(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	// It is a new attempt, also on the cluster on which the workload has just failed.
	if got, ok := fresh.(*api.Workload); !ok || !maps.Equal(replicas(got), even) || len(got.Status.Evictions) > 0 || got.Status.ObservedRescheduleRequests != 1 {
		t.Errorf("after a reschedule request: %+v", fresh)
	}
	outdated, err := s.client.Preview(ctx, workload("shop", "web", 4))
	if err != nil {
		t.Fatal(err)
	}
	put(s, policy("europe", "tokyo"))
	if _, err := s.client.Put(ctx, workload("shop", "web", 4), client.PutOptions{PreviewToken: outdated.Token}); client.StatusOf(err) != http.StatusPreconditionFailed {
		t.Errorf("outdated preview: error %v", err)
	}
}

// TestPreviewedPreemptionIsCommitted previews a workload that only fits if another one gives room. The write does what
// the preview says.
func TestPreviewedPreemptionIsCommitted(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(t.TempDir()))
	berlin := cluster("berlin")
	berlin.Spec.Allocatable = api.Quantities{"cpu": "4"}
	put(s, berlin)
	first := policy("europe", "berlin")
	first.Spec.WorkloadPreemption = api.WorkloadPreemptionLowerPriority
	put(s, first)
	needing := func(name string, replicas, priority int64) *api.Workload {
		w := workload("shop", name, replicas)
		w.Spec.ReplicaRequests, w.Spec.Priority = api.Quantities{"cpu": "1"}, priority
		return w
	}
	put(s, needing("low", 4, 1))
	preview, err := s.client.Preview(t.Context(), needing("high", 3, 2))
	if err != nil || !maps.Equal(preview.Replicas, map[string]int64{"berlin": 3}) || !preview.Satisfied {
		t.Fatalf("preview %+v, error %v, want 3 on berlin", preview, err)
	}
	low := api.KeyOf(needing("low", 4, 1))
	if got := get[*api.Workload](s, low); !maps.Equal(replicas(got), map[string]int64{"berlin": 4}) {
		t.Fatalf("after the preview: low on %v, want 4 on berlin", replicas(got))
	}
	if _, err := s.client.Put(t.Context(), needing("high", 3, 2), client.PutOptions{PreviewToken: preview.Token}); err != nil {
		t.Fatal(err)
	}
	if got := get[*api.Workload](s, api.KeyOf(needing("high", 3, 2))); !maps.Equal(replicas(got), map[string]int64{"berlin": 3}) {
		t.Errorf("high on %v, want 3 on berlin", replicas(got))
	}
	eventually.True(t, "low has given what high needs", func() bool {
		got := get[*api.Workload](s, low)
		return maps.Equal(replicas(got), map[string]int64{"berlin": 1}) && len(got.Status.Preemptions) == 1 && got.Status.Preemptions[0].Replicas == 3
	})
}
