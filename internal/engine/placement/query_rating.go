package placement

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// Ranked reports whether the query's clusters are ordered by a Ranking. All other queries use the
// order of the fleet.
func (q *Query) Ranked() bool { return q.scoring.Ranks != nil }

// RankKey is equal for queries that can share a Ranking. If candidates are compared with each
// other, only queries of one Class can.
func (q *Query) RankKey() string {
	if q.Relative() {
		return q.Class
	}
	k := key.New()
	q.scoring.RankKey(k)
	return k.String()
}

// ScoreKey is equal for queries that rate clusters alike.
func (q *Query) ScoreKey() string {
	k := key.New()
	q.scoring.Key(k)
	return k.String()
}

// Minds reports whether the score contains something that affects where new seats go but moves
// none.
func (q *Query) Minds() bool { return q.scoring.Traits.Minds }

// Herds reports whether a cluster may score higher because other placements chose it.
func (q *Query) Herds() bool { return q.scoring.Traits.Herds }

// Relative reports whether an additional candidate may change all scores.
func (q *Query) Relative() bool { return q.scoring.Relative() }

// ScoreReads returns the aspects of the fleet that the scores depend on.
func (q *Query) ScoreReads() columns.Aspects { return q.scoring.Traits.Reads }

// UsesScores reports whether the query uses placement scores.
func (q *Query) UsesScores() bool { return q.ScoreReads().Any(columns.ScoreValues) }

// unknownScoreMetrics lists the metrics that the query is rated by and that do not exist.
func (q *Query) unknownScoreMetrics(f *columns.Fleet) []string {
	var unknown []string
	for _, name := range q.scoring.Traits.Metrics {
		if !f.HasMetric(name) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// ratingOf returns a Rating for a query, without reservations.
func ratingOf(f *columns.Fleet, q *Query) *score.Rating {
	return &score.Rating{Evaluation: q.evaluation(f, nil), By: q.scoring}
}

// NewRanking orders the clusters for a query; mask is that of its View.
func NewRanking(f *columns.Fleet, q *Query, mask columns.Bitmap) *score.Ranking {
	return score.NewRanking(ratingOf(f, q), mask)
}

// UpdateRanking applies a new version of the fleet, in which the given rows changed, to the ranking
// of a query. If candidates are compared with each other, it applies the mask too. all reports that
// the score of every cluster may have changed.
func UpdateRanking(r *score.Ranking, f *columns.Fleet, q *Query, mask columns.Bitmap, rows []int) (all bool) {
	return r.Update(ratingOf(f, q), mask, rows)
}
