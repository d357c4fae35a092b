package columns

import "github.com/scheduler/terraform-provider-scheduler/internal/api"

// CompareRank orders two rows as the fleet's ranking does.
func (f *Fleet) CompareRank(a, b int32) int { return f.compareRank(a, b) }

// Waiting are the scores whose cluster is not there.
func (f *Fleet) Waiting() map[string]map[string]*api.PlacementScore { return f.waiting }

// Dense is the bitmap of a set that has many rows, nil where it has few.
func (s *RowSet) Dense() Bitmap { return s.dense }

// Rows are those that have the score.
func (s *ScoreBundle) Rows() *RowSet { return s.rows }
