package binding

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// epoch is the time at which tests start.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world holds the objects of a fleet.
type world struct{ clusters map[string]*api.Cluster }

func newWorld() *world { return &world{clusters: map[string]*api.Cluster{}} }

// cluster adds a cluster, which the test may change.
func (w *world) cluster(name string, metrics []api.MetricRef) *api.Cluster {
	c := &api.Cluster{Metadata: api.Metadata{Name: name, UID: name}, Spec: api.ClusterSpec{Metrics: metrics}}
	w.clusters[name] = c
	return c
}

func (w *world) fleet() *columns.Fleet {
	f, _ := (&columns.Fleet{}).With(columns.Changes{Clusters: w.clusters}, epoch)
	return f
}
