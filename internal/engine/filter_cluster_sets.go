package engine

import "strings"

// clusterSets confines a placement to the clusters of the sets it names: of
// those that exist and admit its namespace.
type clusterSets struct{}

func (clusterSets) Name() string { return "cluster_sets" }

func (clusterSets) Grounds(q *Query) int {
	if len(q.sets) == 0 {
		return 0
	}
	return 1
}

func (clusterSets) On(q *Query, _ int) string { return strings.Join(q.sets, ", ") }

func (s clusterSets) Blame(q *Query, ground, n int) string {
	return plural(n, "is", "are") + " not in " + plural(len(q.sets), "cluster set ", "cluster sets ") + s.On(q, ground)
}

func (clusterSets) Apply(p *Pass, _ int, keep Bitmap) {
	union := p.scratch
	clear(union)
	for _, name := range p.query.sets {
		if s := p.fleet.sets[name]; s != nil && s.set.Admits(p.query.namespace) {
			s.rows.orInto(union)
		}
	}
	keep.and(union)
}

func (clusterSets) Admits(p *Pass, _, row int, _ bool) bool {
	for _, name := range p.query.sets {
		if s := p.fleet.sets[name]; s != nil && s.set.Admits(p.query.namespace) && s.rows.has(row) {
			return true
		}
	}
	return false
}

func (s clusterSets) Reason(p *Pass, ground, _ int) string {
	if len(p.query.sets) == 1 {
		return "is not in cluster set " + s.On(p.query, ground)
	}
	return "is in none of the cluster sets " + s.On(p.query, ground)
}
