package columns

import (
	"fmt"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestDeletedMetricsAreFreed adds and deletes many names, and checks that the fleet keeps memory only for metrics that
// exist or are listed by a cluster.
func TestDeletedMetricsAreFreed(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	key := func(n int) api.Key {
		return api.Key{Kind: api.KindMetric, Namespace: fmt.Sprintf("n%d", n%3), Name: fmt.Sprintf("m%d", n/2)}
	}
	metric := func(n int) *api.Metric {
		low, high, value := 0.0, 10.0, float64(n%10)
		return &api.Metric{
			Metadata: api.Metadata{Namespace: key(n).Namespace, Name: key(n).Name},
			Spec:     api.MetricSpec{Min: &low, Max: &high},
			Status:   api.MetricStatus{Value: &value},
		}
	}
	listing := func(n int) *api.Cluster {
		return &api.Cluster{
			Metadata: api.Metadata{Name: "c"},
			Spec:     api.ClusterSpec{Metrics: []api.MetricRef{{Name: key(n).Name, Namespace: key(n).Namespace}}},
		}
	}
	f := &Fleet{}
	with := func(changes Changes) { f, _ = f.With(changes, now) }
	for n := range 200 {
		before, had := f, f.metrics
		// The cluster lists a metric before it exists, and one that has been deleted.
		with(Changes{Clusters: map[string]*api.Cluster{"c": listing(n)}})
		with(Changes{Metrics: map[api.Key]*api.Metric{key(n): metric(n)}})
		state := f.metrics[f.rows[0].Metrics[0].ID]
		if state.Key != key(n) || state.Metric == nil || !f.HasMetric(key(n).Name) {
			t.Fatalf("metric %d: unexpected state %+v of the cluster's metric", n, state)
		}
		for id, state := range had {
			if before.metrics[id] != state {
				t.Fatalf("metric %d: an earlier fleet has changed", n)
			}
		}
		with(Changes{Metrics: map[api.Key]*api.Metric{key(n): nil}})
		if f.HasMetric(key(n).Name) || f.metrics[f.rows[0].Metrics[0].ID].Reason != api.ReasonUnknownMetric {
			t.Fatalf("metric %d was deleted, but the cluster has %+v", n, f.metrics[f.rows[0].Metrics[0].ID])
		}
		// A metric that no cluster lists is created and deleted at once.
		with(Changes{Metrics: map[api.Key]*api.Metric{key(1000 + n): metric(1000 + n)}})
		with(Changes{Metrics: map[api.Key]*api.Metric{key(1000 + n): nil}})
	}
	if len(f.metrics) > 4 || len(f.metricIDs) != 1 || len(f.named) != 1 || len(f.freeIDs) != len(f.metrics)-1 {
		t.Errorf("%d metrics, %d IDs, %d names, %d free IDs, which is too much for one listed metric", len(f.metrics), len(f.metricIDs), len(f.named), len(f.freeIDs))
	}
	with(Changes{Clusters: map[string]*api.Cluster{"c": nil}})
	if len(f.metricIDs) != 0 || len(f.freeIDs) != len(f.metrics) {
		t.Errorf("%d IDs, %d of %d free, want no IDs and all free", len(f.metricIDs), len(f.freeIDs), len(f.metrics))
	}
}
