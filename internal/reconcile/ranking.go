package reconcile

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// ranking is an order of the clusters that classes share: those of one scoring
// policy, or one class alone where the policy compares its candidates.
type ranking struct {
	*score.Ranking
	query *placement.Query // of any class
	uses  int
}

// rank gives a new class its view of the fleet.
func (p *planner) rank(c *class) {
	if !c.query.Ranked() {
		c.view = p.classes.view(p.picture, c.query, nil)
		return
	}
	key := c.query.RankKey()
	r, ok := p.rankings[key]
	if !ok {
		r = &ranking{query: c.query}
		p.rankings[key] = r
	}
	c.view = p.classes.view(p.picture, c.query, r.Ranking)
	r.Ranking = c.view.Ranking
	c.ranking = r
	r.uses++
	c.expired = c.view.Expired(p.fleet, c.query)
}

// unrank gives up the ranking of a class that is no more.
func (p *planner) unrank(c *class) {
	if c.ranking == nil {
		return
	}
	if c.ranking.uses--; c.ranking.uses == 0 {
		delete(p.rankings, c.query.RankKey())
	}
}

// updateRankings brings the rankings of all clusters to the fleet's version.
// Those of candidates only follow when their class's mask is known.
func (p *planner) updateRankings(rows []int) {
	for _, r := range p.rankings {
		if !r.query.Relative() {
			placement.UpdateRanking(r.Ranking, p.fleet, r.query, nil, rows)
		}
	}
}
