package columns

import (
	"maps"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// CompareRank orders two rows as the fleet's ranking does.
func (f *Fleet) CompareRank(a, b int32) int { return f.compareRank(a, b) }

// Waiting are the scores whose cluster is not there.
func (f *Fleet) Waiting() map[string]map[string]*api.PlacementScore { return f.waiting }

// Dense is the bitmap of a set that has many rows, nil where it has few.
func (s *RowSet) Dense() Bitmap { return s.dense }

// Rows are those that have the score.
func (s *ScoreBundle) Rows() *RowSet { return s.rows }

// Keys are those that a cluster has, and those that there are sets of.
func (x ValueIndex) Keys() []string {
	keys := map[string]bool{}
	if x.table == nil {
		return nil
	}
	for _, r := range x.fleet.rows {
		if r != nil {
			for key := range x.table.valuesOf(r.cluster) {
				keys[key] = true
			}
		}
	}
	for key := range x.table.sets {
		keys[key] = true
	}
	return slices.Sorted(maps.Keys(keys))
}

// Made are the keys that there are sets of.
func (x ValueIndex) Made() []string {
	if x.table == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(x.table.sets))
}
