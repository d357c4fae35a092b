package columns_test

import (
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
)

// TestManagedConditions checks that the conditions of Open Cluster Management follow the state of the cluster.
func TestManagedConditions(t *testing.T) {
	for state, want := range map[api.ClusterState]string{
		"": "True", api.StateOnline: "True", api.StateOffline: "Unknown", api.StateConnecting: "Unknown",
		api.StatePending: "Unknown", api.StateUnhealthy: "False", api.StateNotReady: "False",
	} {
		c := &api.Cluster{Metadata: api.Metadata{Name: "c1", CreatedAt: &enginetest.Epoch}}
		c.Status.State = state
		c.Status.Conditions = []api.Condition{{Type: api.ConditionReady, Message: "why", LastTransitionAt: new(enginetest.Epoch.Add(time.Minute))}}
		f, _ := (&columns.Fleet{}).With(columns.Changes{Clusters: map[string]*api.Cluster{"c1": c}}, enginetest.Epoch)
		got := map[string]string{}
		for _, o := range columns.ManagedConditions(f.Cluster(0)) {
			got[o.Type] = o.Status
			if o.Type == "ManagedClusterConditionAvailable" && (!o.LastTransitionAt.Equal(enginetest.Epoch.Add(time.Minute)) || o.Message != "why") {
				t.Errorf("%s: got %+v, want the time and message of Ready", state, o)
			}
		}
		if got["ManagedClusterConditionAvailable"] != want || got["HubAcceptedManagedCluster"] != "True" || (got["ManagedClusterJoined"] == "True") != (state != api.StatePending) {
			t.Errorf("%s: got %v, want %s to be %s", state, got, "ManagedClusterConditionAvailable", want)
		}
	}
}
