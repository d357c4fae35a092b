package engine

import "github.com/scheduler/terraform-provider-scheduler/internal/api"

// Scorer rates clusters for a query. Clusters are compared by standing first
// (see Fleet.standing) and by score within it.
type Scorer interface {
	// Score is the score of a row; current adds what staying is worth.
	Score(f *Fleet, q *Query, row int, current bool) float64
	// Parts are what the score is made of, for the explanation.
	Parts(f *Fleet, q *Query, row int, current bool) []api.ScorePart
}

// scorers are the scoring strategies by name. A new one is one file and one
// line here.
var scorers = map[api.Strategy]Scorer{
	api.StrategyMetrics: weightedMean{},
}
