package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// placedAt waits until the placement shop/web is on exactly these clusters.
func placedAt(s *runningServer, want ...string) {
	s.t.Helper()
	eventually.True(s.t, "the placement is on the expected clusters", func() bool {
		return slices.Equal(get[*api.Placement](s, placementKey("shop", "web")).Status.Clusters, want)
	})
}

func TestPlacementFollowsHeartbeats(t *testing.T) {
	s := start(t, testConfig(t.TempDir()))
	beating := cluster("berlin")
	beating.Spec.Health = &api.HealthSpec{Interval: "1h", FailureThreshold: 1, SuccessThreshold: 1}
	if c := put(s, beating); c.Status.State != api.StatePending {
		t.Fatalf("state %q before the first heartbeat, want pending", c.Status.State)
	}
	if web := put(s, placement("shop", "web")); len(web.Status.Clusters) != 0 {
		t.Fatalf("clusters %v before the first heartbeat, want none", web.Status.Clusters)
	}
	reported, err := s.client.Heartbeat(t.Context(), "berlin", api.Heartbeat{})
	if err != nil || reported.Status.State != api.StateOnline {
		t.Fatalf("state %q, error %v", reported.Status.State, err)
	}
	// The response to the heartbeat comes after the decision.
	if web := get[*api.Placement](s, placementKey("shop", "web")); !slices.Equal(web.Status.Clusters, []string{"berlin"}) {
		t.Fatalf("clusters %v after the heartbeat, want berlin", web.Status.Clusters)
	}
	put(s, cluster("paris"))
	missing := cluster("berlin")
	missing.Spec.Health = &api.HealthSpec{Interval: "1500ms", FailureThreshold: 1, SuccessThreshold: 1}
	put(s, missing)
	placedAt(s, "paris") // after missed heartbeats
	if state := get[*api.Cluster](s, api.Key{Kind: api.KindCluster, Name: "berlin"}).Status.State; state != api.StateOffline {
		t.Fatalf("state %q, want offline", state)
	}
}

func TestPlacementFollowsHealthProbes(t *testing.T) {
	var sick atomic.Bool
	probed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if sick.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer probed.Close()
	s := start(t, testConfig(t.TempDir()))
	berlin := cluster("berlin")
	berlin.Spec.Health = &api.HealthSpec{URL: probed.URL, Interval: "200ms", FailureThreshold: 2, SuccessThreshold: 2}
	put(s, berlin)
	put(s, placement("shop", "web"))
	placedAt(s, "berlin")
	sick.Store(true)
	placedAt(s)
	state := get[*api.Cluster](s, api.Key{Kind: api.KindCluster, Name: "berlin"}).Status
	if state.State == api.StateOnline || api.FindCondition(state.Conditions, api.ConditionReady) == nil {
		t.Fatalf("unexpected status %+v", state)
	}
	sick.Store(false)
	placedAt(s, "berlin")
}
