package placement

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// Ranked reports that the query's clusters are ordered by a Ranking of their
// own; the fleet has one order for all others.
func (q *Query) Ranked() bool { return q.scoring.Ranks != nil }

// RankKey is equal for two queries that can share a Ranking. Where candidates are
// compared with each other, only queries of one Class can.
func (q *Query) RankKey() string {
	if q.Relative() {
		return q.Class
	}
	k := key.New()
	q.scoring.RankKey(k)
	return k.String()
}

// ScoreKey is equal for two queries that rate clusters alike.
func (q *Query) ScoreKey() string {
	k := key.New()
	q.scoring.Key(k)
	return k.String()
}

// Minds reports that something counts in the score which says where a new seat goes
// but moves none.
func (q *Query) Minds() bool { return q.scoring.Traits.Minds }

// Relative reports that one more candidate may change the score of all.
func (q *Query) Relative() bool { return q.scoring.Relative() }

// ScoreReads are the aspects of the fleet that the scores depend on.
func (q *Query) ScoreReads() columns.Aspects { return q.scoring.Traits.Reads }

// UsesScores reports that the query is rated by placement scores.
func (q *Query) UsesScores() bool { return q.ScoreReads().Any(columns.ScoreValues) }

// unknownScoreMetrics lists the metrics that the query is to be rated by and that
// do not exist.
func (q *Query) unknownScoreMetrics(f *columns.Fleet) []string {
	var unknown []string
	for _, name := range q.scoring.Traits.Metrics {
		if !f.HasMetric(name) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// ratingOf is a look at the fleet to rate clusters for a query, whatever is reserved.
func ratingOf(f *columns.Fleet, q *Query) *score.Rating {
	return &score.Rating{Look: q.look(f, nil), By: q.scoring}
}

// NewRanking orders the clusters for a query; mask is that of its View.
func NewRanking(f *columns.Fleet, q *Query, mask columns.Bitmap) *score.Ranking {
	return score.NewRanking(ratingOf(f, q), mask)
}

// UpdateRanking has the ranking of a query follow a fleet to its next version, in
// which rows differ, and where candidates are compared with each other the mask along
// with it. all reports that the score of every cluster may have changed.
func UpdateRanking(r *score.Ranking, f *columns.Fleet, q *Query, mask columns.Bitmap, rows []int) (all bool) {
	return r.Update(ratingOf(f, q), mask, rows)
}
