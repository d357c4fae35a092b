package columns

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Getters return data that versions of the fleet share. It is read-only (see the package comment).

// Live returns the rows in use.
func (f *Fleet) Live() Bitmap { return f.live }

// Online returns the rows whose cluster accepts workloads.
func (f *Fleet) Online() Bitmap { return f.online }

// Paused returns the rows whose cluster is paused.
func (f *Fleet) Paused() Bitmap { return f.paused }

// Failing returns the rows that list a metric with on_failure = exclude that has no usable value.
func (f *Fleet) Failing() Bitmap { return f.failing }

// Unread reports whether any metric cannot be read.
func (f *Fleet) Unread() bool { return f.unread > 0 }

// Scored returns the rows with at least one usable metric of positive weight.
func (f *Fleet) Scored() Bitmap { return f.scored }

// Owners returns the rows by owner namespace; "" = without owner, visible to all.
func (f *Fleet) Owners() map[string]*RowSet { return f.owners }

// Labels returns the index of rows by label.
func (f *Fleet) Labels() ValueIndex { return ValueIndex{f, f.labels} }

// Claims returns the index of rows by claim.
func (f *Fleet) Claims() ValueIndex { return ValueIndex{f, f.claims} }

// CustomResources returns the rows by custom resource.
func (f *Fleet) CustomResources() map[string]*RowSet { return f.customs }

// APIResources returns the rows by API resource type; "" = clusters that list any.
func (f *Fleet) APIResources() map[string]*RowSet { return f.apiResources }

// Places returns the rows by provider, region and zone.
func (f *Fleet) Places() PlaceIndex { return f.places }

// Taints returns the rows by taint in force.
func (f *Fleet) Taints() map[Taint]*RowSet { return f.taints }

// ByName returns the live rows in name order.
func (f *Fleet) ByName() []int32 { return f.byName }

// NameRank returns the position in ByName, by row.
func (f *Fleet) NameRank() []int32 { return f.nameRank }

// NameHashes returns the hashes of the clusters' names by row, to break ties.
func (f *Fleet) NameHashes() []uint64 { return f.nameHash }

// Ranking returns the live rows, best first: scored ones by score, then unscored ones.
func (f *Fleet) Ranking() []int32 { return f.ranking }

// MeanScores returns the weighted means of the usable metrics by row, without stickiness.
func (f *Fleet) MeanScores() []float64 { return f.score }

// Uncommitted returns the available amount of each resource by row, in thousandths. The slices may
// be shorter than Slots.
func (f *Fleet) Uncommitted() map[string]*amount.Column { return f.amountColumns().uncommitted }

// Metrics returns the metrics by id; nil for free ids.
func (f *Fleet) Metrics() []*MetricState { return f.metrics }

// MetricIDs returns the ids of metrics.
func (f *Fleet) MetricIDs() map[api.Key]int32 { return f.metricIDs }

// MetricsNamed returns the ids of metrics by name, in all namespaces.
func (f *Fleet) MetricsNamed() map[string][]int32 { return f.named }

// Aging returns the ids of the metrics that will become unusable through the passing of time.
func (f *Fleet) Aging() []int32 { return f.aging }

// Sets returns the cluster sets by name.
func (f *Fleet) Sets() map[string]*SetState { return f.sets }

// PlacementScores returns the placement scores by name.
func (f *Fleet) PlacementScores() map[string]*ScoreBundle { return f.scores }

// Rows returns the data of clusters by row; nil for free rows.
func (f *Fleet) Rows() []*Row { return f.rows }

// Index returns the row of each cluster by name.
func (f *Fleet) Index() map[string]int { return f.index }
