package engine

import "github.com/scheduler/terraform-provider-scheduler/internal/api"

// Scorer rates clusters for a query. Clusters are compared by standing first
// (see Fleet.standing) and by score within it.
type Scorer interface {
	// Own is the score of a row by what is known of the cluster and of the
	// placement itself; current adds what staying is worth.
	Own(p *Pass, row int, current bool) float64
	// Score is Own together with what the decisions of other placements say. It
	// is what the user sees.
	Score(p *Pass, row int, current bool) float64
	// Parts are what the score is made of, for the explanation.
	Parts(p *Pass, row int, current bool) []api.ScorePart
}

// scorers are the scoring strategies by name. A new one is one file and one
// line here.
var scorers = map[api.Strategy]Scorer{
	api.StrategyMetrics:      weightedMean{},
	api.StrategyPrioritizers: prioritizers{},
}
