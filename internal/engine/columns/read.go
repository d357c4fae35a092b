package columns

import "github.com/scheduler/terraform-provider-scheduler/internal/api"

// What the getters return is the fleet's own and shared by its versions: it is for
// reading only (see the package's doc).

// Live are the rows in use.
func (f *Fleet) Live() Bitmap { return f.live }

// Online are the rows whose cluster takes workloads.
func (f *Fleet) Online() Bitmap { return f.online }

// Paused are the rows whose cluster takes no more.
func (f *Fleet) Paused() Bitmap { return f.paused }

// Failing are the rows that list a metric which has no usable value and excludes
// the cluster then.
func (f *Fleet) Failing() Bitmap { return f.failing }

// Scored are the rows with at least one usable metric of a positive weight.
func (f *Fleet) Scored() Bitmap { return f.scored }

// Owners are the rows by the namespace that owns them; "" = visible to all.
func (f *Fleet) Owners() map[string]*RowSet { return f.owners }

// Labels finds rows by labels.
func (f *Fleet) Labels() ValueIndex { return ValueIndex{f, f.labels} }

// Claims finds rows by claims.
func (f *Fleet) Claims() ValueIndex { return ValueIndex{f, f.claims} }

// CustomResources are the rows by custom resource.
func (f *Fleet) CustomResources() map[string]*RowSet { return f.customs }

// APIResources are the rows by type of API resource; "" = those that list any.
func (f *Fleet) APIResources() map[string]*RowSet { return f.apiResources }

// Places are the rows by provider, region and zone.
func (f *Fleet) Places() PlaceIndex { return f.places }

// Taints are the rows by the taints in force.
func (f *Fleet) Taints() map[Taint]*RowSet { return f.taints }

// ByName are the live rows in the order of their names.
func (f *Fleet) ByName() []int32 { return f.byName }

// NameRank is the position in ByName, by row.
func (f *Fleet) NameRank() []int32 { return f.nameRank }

// NameHashes are the hashes of the clusters' names by row, for ties.
func (f *Fleet) NameHashes() []uint64 { return f.nameHash }

// Ranking lists the live rows: scored ones first, by score, best first.
func (f *Fleet) Ranking() []int32 { return f.ranking }

// MeanScores are the weighted means of the usable metrics by row, without
// stickiness.
func (f *Fleet) MeanScores() []float64 { return f.score }

// Uncommitted is what is left of a resource by row, in thousandths. It may be
// shorter than Slots.
func (f *Fleet) Uncommitted() map[string][]int64 { return f.amountColumns().uncommitted }

// Metrics are the metrics by id, nil where it is free.
func (f *Fleet) Metrics() []*MetricState { return f.metrics }

// MetricIDs are the ids of metrics.
func (f *Fleet) MetricIDs() map[api.Key]int32 { return f.metricIDs }

// MetricsNamed are the ids of the metrics of a name, whatever their namespaces.
func (f *Fleet) MetricsNamed() map[string][]int32 { return f.named }

// Aging are the ids of the metrics that time alone makes unusable.
func (f *Fleet) Aging() []int32 { return f.aging }

// Sets are the cluster sets by name.
func (f *Fleet) Sets() map[string]*SetState { return f.sets }

// PlacementScores are the placement scores by their name.
func (f *Fleet) PlacementScores() map[string]*ScoreBundle { return f.scores }

// Rows are what the clusters' objects say, nil for free rows.
func (f *Fleet) Rows() []*Row { return f.rows }

// Index is the row of each cluster by its name.
func (f *Fleet) Index() map[string]int { return f.index }
