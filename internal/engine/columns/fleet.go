package columns

import (
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Fleet is the immutable state that decisions are based on, stored in columns: every cluster has a
// row, and every fact about clusters is a set of rows or a column of numbers. With derives the next
// version by copying only what changed. The zero Fleet is empty.
type Fleet struct {
	version uint64    // one more than that of the previous version
	now     time.Time // time for which metrics are evaluated

	rows  []*Row         // by row; nil for free slots
	index map[string]int // row by cluster name
	free  []int          // free slots, reused last in, first out

	nameHash []uint64 // of the cluster's name, to break ties
	byName   []int32  // live rows in name order
	nameRank []int32  // position in byName, by row

	live    Bitmap // rows in use
	online  Bitmap // state is online
	paused  Bitmap
	failing Bitmap // a metric with on_failure = exclude has no usable value
	scored  Bitmap // at least one usable metric with a positive weight

	owners       map[string]*RowSet // by owner namespace; "" = without owner, visible to all
	labels       *keyTable          // nil in the zero Fleet, as is claims
	claims       *keyTable
	customs      map[string]*RowSet // by custom resource
	apiResources map[string]*RowSet // by API resource type; "" = clusters that list any
	places       PlaceIndex
	taints       map[Taint]*RowSet // taints in force
	amounts      *amountTable      // nil in the zero Fleet

	sets map[string]*SetState
	// scores are the placement scores by name. waiting holds the scores of clusters that do not
	// exist, by cluster and name.
	scores  map[string]*ScoreBundle
	waiting map[string]map[string]*api.PlacementScore

	windows moveWindows

	metricIDs map[api.Key]int32
	metrics   []*MetricState     // by id; nil for free ids
	freeIDs   []int32            // of metrics, reused last in, first out
	named     map[string][]int32 // metric ids by name
	providers map[api.Key]*api.MetricsProvider
	aging     []int32 // metrics with a staleAt, by id
	unread    int     // metrics that cannot be read

	// score is the weighted mean of the usable metrics, without stickiness.
	score []float64
	// ranking lists the live rows, best first: scored ones by score, then unscored ones.
	ranking []int32
}

// Row holds the data of one cluster. Immutable.
type Row struct {
	cluster *api.Cluster
	Metrics []RowMetric
	Taints  []RowTaint
	// SumWeights and SumProducts are Σ w and Σ w·m over the usable metrics.
	SumWeights, SumProducts float64
	reportedAt              time.Time // last capacity report, zero if none
	Reports                 bool      // has an allocatable amount of any resource
}

// RowMetric is a metric that a cluster lists, with its weight.
type RowMetric struct {
	ID     int32
	Weight float64
}

// Changes are objects that differ from those of a fleet. A nil value is a deleted object.
type Changes struct {
	Clusters  map[string]*api.Cluster
	Metrics   map[api.Key]*api.Metric
	Providers map[api.Key]*api.MetricsProvider
	Sets      map[string]*api.ClusterSet
	// Scores of clusters that do not exist take effect when the cluster is created.
	Scores  map[api.Key]*api.PlacementScore
	Windows map[api.Key]*api.MoveWindow
}

// Len returns the number of clusters.
func (f *Fleet) Len() int { return len(f.index) }

// Slots returns the number of rows, including free ones, which is the length of bitmaps.
func (f *Fleet) Slots() int { return len(f.rows) }

// Row returns the row of a cluster.
func (f *Fleet) Row(name string) (int, bool) {
	row, ok := f.index[name]
	return row, ok
}

// Cluster returns the object in a row, or nil for a free row.
func (f *Fleet) Cluster(row int) *api.Cluster {
	if row >= len(f.rows) || f.rows[row] == nil {
		return nil
	}
	return f.rows[row].cluster
}

// Now returns the time for which the fleet is evaluated.
func (f *Fleet) Now() time.Time { return f.now }

// NextAt returns when the fleet next changes through the passing of time alone, because the last
// good value of a metric becomes too old or a placement score expires. It is zero if it never does.
func (f *Fleet) NextAt() time.Time {
	next := f.NextExpiry()
	for _, id := range f.aging {
		if at := f.metrics[id].StaleAt; next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// HasMetric reports whether a metric object with this name exists, global or in any namespace.
func (f *Fleet) HasMetric(name string) bool {
	return slices.ContainsFunc(f.named[name], func(id int32) bool { return f.metrics[id].Metric != nil })
}

// Metric returns the metric with this key, or nil.
func (f *Fleet) Metric(key api.Key) *api.Metric {
	if id, ok := f.metricIDs[key]; ok {
		return f.metrics[id].Metric
	}
	return nil
}

// Provider returns the metrics provider with this key, or nil.
func (f *Fleet) Provider(key api.Key) *api.MetricsProvider { return f.providers[key] }

// Name returns the name of the cluster in a live row.
func (f *Fleet) Name(row int) string { return f.rows[row].cluster.Metadata.Name }

// Description returns the description of the cluster in a live row.
func (f *Fleet) Description(row int) string { return f.rows[row].cluster.Spec.Description }

// isOnline reports whether the cluster accepts workloads.
func isOnline(c *api.Cluster) bool { return State(c) == api.StateOnline }

// State returns the state of a cluster: the observed one if there is one; otherwise pending if the
// cluster was created with a health check or a kubeconfig, or does not exist yet; otherwise online.
// A health check or kubeconfig that is added later has no effect until there is an observation.
func State(c *api.Cluster) api.ClusterState {
	switch {
	case c.Status.State != "":
		return c.Status.State
	case (c.Spec.Health != nil || c.HasKubeconfig()) && c.Metadata.Generation <= 1:
		return api.StatePending
	case c.Spec.Awaited(&c.Status) && c.Metadata.Generation <= 1:
		return api.StatePending // also once its cloud is decided, which may be before it is observed
	}
	return api.StateOnline
}

// Allocatable returns the allocatable amount of cpu or memory by row, in thousandths. It is
// Unreported if a cluster has no such amount, or no capacity. The column may be shorter than Slots.
func (f *Fleet) Allocatable(resource string) *amount.Column {
	return f.amountColumns().usable[resource]
}
