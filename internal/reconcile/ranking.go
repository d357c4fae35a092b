package reconcile

import (
	"math"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// ranking is an order of the clusters that classes share: those of one scoring
// policy, one class alone where the policy compares its candidates, or all that go
// by the order of the fleet. To all of them a cluster outside of their decisions has
// the same merit.
type ranking struct {
	*score.Ranking                  // nil: the order is that of the fleet
	query          *placement.Query // of any class
	classes        []*class
	// floors are at most the lowest Worst of the full placements of each class: an
	// outsider below it concerns none of them.
	floors []placement.Merit
}

// noFloor is the floor of a class of which it is not known.
var noFloor = placement.Merit{Standing: columns.Standing{Score: math.Inf(-1)}}

func (r *ranking) add(c *class) {
	c.ranking, c.at = r, len(r.classes)
	r.classes, r.floors = append(r.classes, c), append(r.floors, noFloor)
}

func (r *ranking) remove(c *class) {
	last := len(r.classes) - 1
	r.classes[c.at], r.floors[c.at] = r.classes[last], r.floors[last]
	r.classes[c.at].at = c.at
	r.classes[last] = nil
	r.classes, r.floors = r.classes[:last], r.floors[:last]
}

// rankKey is equal for two queries that share a ranking.
func rankKey(q *placement.Query) string {
	if q.Ranked() {
		return q.RankKey()
	}
	return ""
}

// rank gives a new class its view of the fleet.
func (p *planner) rank(c *class) {
	key := rankKey(c.query)
	r, ok := p.rankings[key]
	if !ok {
		r = &ranking{query: c.query}
		p.rankings[key] = r
	}
	c.view = p.classes.view(p.picture, c.query, r.Ranking)
	r.Ranking = c.view.Ranking
	r.add(c)
	c.expired = c.view.Expired(p.fleet, c.query)
}

// unrank gives up the ranking of a class that is no more.
func (p *planner) unrank(c *class) {
	if c.ranking.remove(c); len(c.ranking.classes) == 0 {
		delete(p.rankings, rankKey(c.query))
	}
}

// updateRankings brings the rankings of all clusters to the fleet's version.
// Those of candidates only follow when their class's mask is known.
func (p *planner) updateRankings(rows []int) {
	for _, r := range p.rankings {
		if r.Ranking != nil && !r.query.Relative() {
			placement.UpdateRanking(r.Ranking, p.fleet, r.query, nil, rows)
		}
	}
}

// touchRanking looks at rows that are rated otherwise as outsiders of the decisions
// of all classes of a ranking that admit them, as before.
func (p *planner) touchRanking(r *ranking, delta *columns.Delta) {
	for _, row := range concerned(delta, r.query.ScoreReads()&columns.OfCluster) {
		first := r.classes[0]
		if p.fleet.Cluster(row) == nil || r.query.Relative() && !first.view.Mask.Has(row) {
			continue
		}
		merit := placement.MeritOf(p.fleet, first.query, first.view, p.others(), row, false)
		for i := range r.floors {
			if c := r.classes[i]; !merit.Less(r.floors[i]) && c.view.Mask.Has(row) {
				p.touchOutsider(c, row, merit, true)
			}
		}
	}
}
