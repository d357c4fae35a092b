package columns

import (
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Fleet is the immutable picture that decisions are made on, in columns: every
// cluster has a row, every fact about clusters is a set of rows or a column of
// numbers. With derives the next picture from it by copying only what changed.
// The zero Fleet is empty.
type Fleet struct {
	version uint64    // one more than that of the fleet it was made from
	now     time.Time // moment for which metrics are judged usable

	rows  []*Row         // by row; nil where the slot is free
	index map[string]int // row by cluster name
	free  []int          // free slots, used last in first out

	nameHash []uint64 // of the cluster's name, for ties
	byName   []int32  // live rows in the order of their names
	nameRank []int32  // position in byName, by row

	live    Bitmap // rows in use
	online  Bitmap // state is online
	paused  Bitmap
	failing Bitmap // a metric with on_failure = exclude has no usable value
	scored  Bitmap // at least one usable metric with a positive weight

	owners       map[string]*RowSet // by owner namespace; "" = visible to all
	labels       *keyTable          // nil in the zero Fleet, as is claims
	claims       *keyTable
	customs      map[string]*RowSet // by custom resource
	apiResources map[string]*RowSet // by type of API resource; "" = those that list any
	places       PlaceIndex
	taints       map[Taint]*RowSet // those in force
	amounts      *amountTable      // nil in the zero Fleet

	sets map[string]*SetState
	// scores are the placement scores by their name, waiting those of clusters
	// that do not exist, by cluster and name.
	scores  map[string]*ScoreBundle
	waiting map[string]map[string]*api.PlacementScore

	metricIDs map[api.Key]int32
	metrics   []*MetricState     // by id; nil where it is free
	freeIDs   []int32            // of metrics, used last in first out
	named     map[string][]int32 // ids by metric name
	providers map[api.Key]*api.MetricsProvider
	aging     []int32 // metrics with a staleAt, by id

	// score is the weighted mean of the usable metrics, without stickiness.
	score []float64
	// ranking lists the live rows: scored ones first, by score, best first.
	ranking []int32
}

// Row is what one cluster's object says, in the engine's terms. Immutable.
type Row struct {
	cluster *api.Cluster
	Metrics []RowMetric
	Taints  []RowTaint
	// SumWeights and SumProducts are Σ w and Σ w·m over the usable metrics.
	SumWeights, SumProducts float64
	reportedAt              time.Time // last capacity report, zero if none
	Reports                 bool      // there is an allocatable amount of anything
}

// RowMetric is a metric that a cluster lists, with the weight that it gives it.
type RowMetric struct {
	ID     int32
	Weight float64
}

// Changes are objects that differ from those of a fleet; a nil value is a
// deleted object.
type Changes struct {
	Clusters  map[string]*api.Cluster
	Metrics   map[api.Key]*api.Metric
	Providers map[api.Key]*api.MetricsProvider
	Sets      map[string]*api.ClusterSet
	// Scores of clusters that do not exist take effect when they do.
	Scores map[api.Key]*api.PlacementScore
}

// Len is the number of clusters.
func (f *Fleet) Len() int { return len(f.index) }

// Slots is the number of rows, free ones included: the length of bitmaps.
func (f *Fleet) Slots() int { return len(f.rows) }

// Row finds the row of a cluster.
func (f *Fleet) Row(name string) (int, bool) {
	row, ok := f.index[name]
	return row, ok
}

// Cluster is the object in a row, nil for a free one.
func (f *Fleet) Cluster(row int) *api.Cluster {
	if row >= len(f.rows) || f.rows[row] == nil {
		return nil
	}
	return f.rows[row].cluster
}

// Now is the moment the fleet holds for.
func (f *Fleet) Now() time.Time { return f.now }

// NextAt is the next moment at which time alone changes the fleet, because the
// last good value of a metric becomes too old or a placement score expires. Zero
// if there is none.
func (f *Fleet) NextAt() time.Time {
	next := f.NextExpiry()
	for _, id := range f.aging {
		if at := f.metrics[id].StaleAt; next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// HasMetric reports whether a metric object of the name exists, global or in
// any namespace.
func (f *Fleet) HasMetric(name string) bool {
	return slices.ContainsFunc(f.named[name], func(id int32) bool { return f.metrics[id].Metric != nil })
}

// Metric is the metric of a key, nil where there is none.
func (f *Fleet) Metric(key api.Key) *api.Metric {
	if id, ok := f.metricIDs[key]; ok {
		return f.metrics[id].Metric
	}
	return nil
}

// Provider is the metrics provider of a key, nil where there is none.
func (f *Fleet) Provider(key api.Key) *api.MetricsProvider { return f.providers[key] }

// Name is the cluster's name in a used row.
func (f *Fleet) Name(row int) string { return f.rows[row].cluster.Metadata.Name }

// Description is the cluster's description in a used row.
func (f *Fleet) Description(row int) string { return f.rows[row].cluster.Spec.Description }

// isOnline reports whether the cluster takes workloads.
func isOnline(c *api.Cluster) bool { return State(c) == api.StateOnline }

// State is the state of a cluster: the one observed, else pending where it was
// created with a health check or a kubeconfig, or is itself still to be created,
// else online. What is added later moves nothing before it has spoken.
func State(c *api.Cluster) api.ClusterState {
	switch {
	case c.Status.State != "":
		return c.Status.State
	case (c.Spec.Health != nil || c.HasKubeconfig()) && c.Metadata.Generation <= 1:
		return api.StatePending
	case c.Spec.Awaited(&c.Status) && c.Metadata.Generation <= 1 && c.Status.ObservedGeneration == 0:
		return api.StatePending // which is about to be observed
	}
	return api.StateOnline
}

// Allocatable is the allocatable amount of cpu or memory by row, in thousandths;
// unreported where a cluster gives no such amount, or no capacity. It may be
// shorter than Slots.
func (f *Fleet) Allocatable(resource string) []int64 { return f.amountColumns().usable[resource] }
