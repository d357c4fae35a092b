package columns

import (
	"maps"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// CompareRank orders two rows as the fleet's ranking does.
func (f *Fleet) CompareRank(a, b int32) int { return f.compareRank(a, b) }

// Waiting returns the scores whose cluster does not exist.
func (f *Fleet) Waiting() map[string]map[string]*api.PlacementScore { return f.waiting }

// Dense returns the bitmap of a set with many rows, or nil for a set with few.
func (s *RowSet) Dense() Bitmap { return s.dense }

// Rows returns the rows that have the score.
func (s *ScoreBundle) Rows() *RowSet { return s.rows }

// Keys returns the keys that clusters have, and those for which sets have been built.
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

// Made returns the keys for which sets have been built.
func (x ValueIndex) Made() []string {
	if x.table == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(x.table.sets))
}
