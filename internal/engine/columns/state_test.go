package columns

import (
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestStateBeforeItIsObserved checks which clusters count as online before anything is observed of them.
func TestStateBeforeItIsObserved(t *testing.T) {
	awaited := api.ClusterSpec{CloudConstraints: &api.CloudConstraints{}}
	for name, test := range map[string]struct {
		spec       api.ClusterSpec
		status     api.ClusterStatus
		generation int64
		want       api.ClusterState
	}{
		"nothing observes it":                    {want: api.StateOnline},
		"with a health check":                    {spec: api.ClusterSpec{Health: &api.HealthSpec{}}, want: api.StatePending},
		"with a health check that was added":     {spec: api.ClusterSpec{Health: &api.HealthSpec{}}, generation: 2, want: api.StateOnline},
		"it does not exist yet":                  {spec: awaited, want: api.StatePending},
		"it does not exist yet, and has a cloud": {spec: awaited, status: api.ClusterStatus{Cloud: "south", ObservedGeneration: 1}, want: api.StatePending},
		"observed":                               {spec: awaited, status: api.ClusterStatus{State: api.StateOffline}, want: api.StateOffline},
	} {
		t.Run(name, func(t *testing.T) {
			c := &api.Cluster{Metadata: api.Metadata{Generation: max(test.generation, 1)}, Spec: test.spec, Status: test.status}
			if got := State(c); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
