package reconcile

import (
	"math"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// ranking is an order of the clusters that classes share: those of one scoring policy, a single
// class if the policy compares its candidates, or all that use the order of the fleet. A cluster
// outside their decisions has the same merit in all of them.
type ranking struct {
	*score.Ranking                  // nil: the order of the fleet
	query          *placement.Query // of any class
	panels         map[string]*panel
}

// panel are the classes of a ranking in which such a cluster also has the same total.
type panel struct {
	ranking *ranking
	key     string          // placement.Query.ScoreKey
	reads   columns.Aspects // what the scores depend on
	classes []*class
	floors  []floor // of the classes
	ceiling score.Ceiling
}

// floor is a lower bound on the Worst and WorstTotal of the full placements of a class: a cluster
// outside the decisions that is below either affects none of them.
type floor struct{ own, total placement.Merit }

// noFloor is the floor of a class for which it is unknown.
var noFloor = floor{lowest, lowest}

var lowest = placement.Merit{Standing: columns.Standing{Score: math.Inf(-1)}}

func (p *panel) add(c *class) {
	c.panel, c.at = p, len(p.classes)
	p.classes, p.floors = append(p.classes, c), append(p.floors, noFloor)
}

func (p *panel) remove(c *class) {
	last := len(p.classes) - 1
	p.classes[c.at], p.floors[c.at] = p.classes[last], p.floors[last]
	p.classes[c.at].at = c.at
	p.classes[last] = nil
	p.classes, p.floors = p.classes[:last], p.floors[:last]
}

// rankKey is equal for queries that share a ranking.
func rankKey(q *placement.Query) string {
	if q.Ranked() {
		return q.RankKey()
	}
	return ""
}

// rankings are the rankings of all classes.
type rankings struct {
	of map[string]*ranking // by rankKey
	// mindful are the panels in which the decisions of other placements count.
	mindful map[*panel]struct{}
	herding int // how many of them prefer what others chose
}

func newRankings() rankings {
	return rankings{of: map[string]*ranking{}, mindful: map[*panel]struct{}{}}
}

// join sets the ranking of a new class, and with it its view of the fleet.
func (all *rankings) join(c *class, view func(*score.Ranking) *placement.View) {
	key := rankKey(c.query)
	r, ok := all.of[key]
	if !ok {
		r = &ranking{query: c.query, panels: map[string]*panel{}}
		all.of[key] = r
	}
	c.view = view(r.Ranking)
	r.Ranking = c.view.Ranking
	key = c.query.ScoreKey()
	if r.panels[key] == nil {
		r.panels[key] = &panel{ranking: r, key: key, reads: c.query.ScoreReads()}
		if r.panels[key].reads.Any(columns.Chosen | columns.Reserved) {
			all.mindful[r.panels[key]] = struct{}{}
			if c.query.Herds() {
				all.herding++
			}
		}
	}
	r.panels[key].add(c)
}

// leave releases the ranking of a class that is removed.
func (all *rankings) leave(c *class) {
	r := c.panel.ranking
	if c.panel.remove(c); len(c.panel.classes) == 0 {
		delete(r.panels, c.panel.key)
		if _, minds := all.mindful[c.panel]; minds {
			delete(all.mindful, c.panel)
			if c.query.Herds() {
				all.herding--
			}
		}
	}
	if len(r.panels) == 0 {
		delete(all.of, rankKey(c.query))
	}
}

// update updates the rankings that contain all clusters to a version of the fleet. Those that
// contain only candidates follow when the mask of their class is known.
func (all *rankings) update(f *columns.Fleet, rows []int) {
	for _, r := range all.of {
		if r.Ranking != nil && !r.query.Relative() {
			placement.UpdateRanking(r.Ranking, f, r.query, nil, rows)
		}
	}
}

// touchRanking evaluates rows whose rating changed as clusters outside the decisions, for all
// classes of a ranking that still admit them.
func (p *placementPlanner) touchRanking(r *ranking, delta *columns.Delta) {
	rows := concerned(delta, r.query.ScoreReads()&columns.OfCluster)
	for _, panel := range r.panels {
		among := p.fleet.Live()
		if len(rows) > manyRows || r.query.Relative() { // only those that any class admits
			among = columns.NewBitmap(p.fleet.Slots())
			for _, c := range panel.classes {
				among.Or(c.view.Mask)
			}
		}
		for _, row := range rows {
			if !among.Has(row) {
				continue
			}
			o := p.outsider(panel.classes[0], row)
			for i := range panel.floors {
				if c := panel.classes[i]; o.reaches(&panel.floors[i]) && c.view.Mask.Has(row) {
					p.touchOutsider(c, row, o, true)
				}
			}
		}
	}
}
