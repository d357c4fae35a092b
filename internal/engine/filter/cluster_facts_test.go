package filter_test

import (
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

func withCEL(text string) *api.Placement {
	p := enginetest.NewPlacement("web")
	p.Spec.Predicates = []api.Predicate{{CEL: []string{text}}}
	p.Spec.Tolerations = []api.Toleration{{Operator: api.TolerationExists}}
	return p
}

// TestPredicatesFollowObservations checks that a change in anything that an expression can read about a cluster counts
// as a changed fact, so that the filter is evaluated again.
func TestPredicatesFollowObservations(t *testing.T) {
	for _, tt := range []struct {
		text   string
		change func(c *api.Cluster)
	}{
		{`managedCluster.metadata.uid == "new"`, func(c *api.Cluster) { c.Metadata.UID = "new" }},
		{`managedCluster.metadata.generation == 7`, func(c *api.Cluster) { c.Metadata.Generation = 7 }},
		{`managedCluster.metadata.labels["a"] == "b"`, func(c *api.Cluster) { c.Metadata.Labels = map[string]string{"a": "b"} }},
		{`managedCluster.spec.leaseDurationSeconds == 15`, func(c *api.Cluster) {
			c.Spec.Health, c.Status.State = &api.HealthSpec{Interval: "15s"}, api.StateOnline
		}},
		{`managedCluster.spec.taints.exists(t, t.key == "k1" && t.effect == "NoSelect")`, func(c *api.Cluster) {
			c.Spec.Taints = []api.Taint{{Key: "k1", Effect: api.EffectNoExecute}}
		}},
		{`managedCluster.spec.taints.exists(t, t.timeAdded == "2026-03-01T12:00:00Z")`, func(c *api.Cluster) {
			c.Status.Taints = []api.ClusterTaint{{Key: "k1", Effect: api.EffectNoSelectIfNew, TimeAdded: &enginetest.Epoch}}
		}},
		{`managedCluster.status.conditions.exists(c, c.type == "ManagedClusterConditionAvailable" && c.status == "False")`, func(c *api.Cluster) {
			c.Status.State = api.StateNotReady
			c.Status.Taints = []api.ClusterTaint{{Key: api.TaintUnhealthy, Effect: api.EffectNoSelect}}
		}},
		{`managedCluster.status.conditions.exists(c, c.type == "Observed" && c.reason == "Observed")`, func(c *api.Cluster) {
			c.Status.Conditions = []api.Condition{{Type: api.ConditionObserved, Status: api.ConditionTrue, Reason: api.ReasonObserved}}
		}},
		{`managedCluster.status.conditions.exists(c, c.lastTransitionTime == "2026-03-01T12:00:00Z")`, func(c *api.Cluster) {
			c.Status.Conditions = []api.Condition{{Type: api.ConditionReady, Status: api.ConditionTrue, LastTransitionAt: &enginetest.Epoch}}
		}},
		{`managedCluster.status.version.kubernetes == "v1.33.0"`, func(c *api.Cluster) { c.Status.KubernetesVersion = "v1.33.0" }},
		{`managedCluster.status.version.kubernetes == "v1.32.0"`, func(c *api.Cluster) {
			c.Spec.Claims = map[string]string{columns.KubernetesVersionClaim: "v1.32.0"}
		}},
		{`managedCluster.status.clusterClaims.exists(c, c.name == "a")`, func(c *api.Cluster) { c.Spec.Claims = map[string]string{"a": "b"} }},
		{`managedCluster.status.allocatable.cpu == "4"`, func(c *api.Cluster) { c.Status.Allocatable = api.Quantities{"cpu": "4"} }},
		{`managedCluster.status.capacity.cpu == "4"`, func(c *api.Cluster) { c.Spec.Capacity = api.Quantities{"cpu": "4"} }},
	} {
		t.Run(tt.text, func(t *testing.T) {
			before := &api.Cluster{Metadata: api.Metadata{Name: "c1", Generation: 1}}
			f, _ := (&columns.Fleet{}).With(columns.Changes{Clusters: map[string]*api.Cluster{"c1": before}}, enginetest.Epoch)
			q := enginetest.Compile(t, placement.NewQuery, withCEL(tt.text))
			view := placement.NewView(f, q, ledger.Others{}, nil)
			if view.Mask.Has(0) {
				t.Fatal("the cluster matches before the change")
			}
			after := *before
			tt.change(&after)
			f, delta := f.With(columns.Changes{Clusters: map[string]*api.Cluster{"c1": &after}}, enginetest.Epoch)
			if !slices.Equal(delta.Rows, []int{0}) || !delta.ConcernsRow(0, ^(columns.MetricValues|columns.ScoreValues)) {
				t.Errorf("rows %v changed, facts %t; want row 0 and its facts", delta.Rows, delta.ConcernsRow(0, ^(columns.MetricValues|columns.ScoreValues)))
			}
			view.Judge(f, q, ledger.Others{}, 0)
			if !view.Mask.Has(0) || !placement.NewView(f, q, ledger.Others{}, nil).Mask.Has(0) {
				t.Error("the cluster does not match after the change")
			}
			beat := after
			beat.Status.LastHeartbeatAt = new(enginetest.Epoch.Add(time.Second))
			if _, delta := f.With(columns.Changes{Clusters: map[string]*api.Cluster{"c1": &beat}}, enginetest.Epoch); !delta.Empty() {
				t.Errorf("a heartbeat without news changed rows %v", delta.Rows)
			}
		})
	}
}

// TestAbsentLabelsAreNotShared: clusters without any label fail where others are
// false or true, although neither has the label that is asked for.
func TestAbsentLabelsAreNotShared(t *testing.T) {
	w := enginetest.NewWorld()
	w.Cluster("bare", nil)
	w.Cluster("other", nil).Metadata.Labels = map[string]string{"tier": "a"}
	w.Cluster("zoned", nil).Metadata.Labels = map[string]string{"zone": "a"}
	w.Clusters["bare"].Metadata.Labels = nil
	f := w.Fleet()
	q := enginetest.Compile(t, placement.NewQuery, withCEL(`!("zone" in managedCluster.metadata.labels)`))
	mask := placement.NewView(f, q, ledger.Others{}, nil).Mask
	for name, want := range map[string]bool{"bare": false, "other": true, "zoned": false} {
		row, _ := f.Row(name)
		if mask.Has(row) != want || placement.Admits(f, q, nil, row, false) != want {
			t.Errorf("%s: %t in the mask, admitted %t, want %t", name, mask.Has(row), placement.Admits(f, q, nil, row, false), want)
		}
	}
}
