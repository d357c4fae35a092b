package engine

import (
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// groups demands that a cluster belongs to a group of every spread constraint of
// a workload: that it has a region, zone, provider or label to be told apart by.
type groups struct{}

func (groups) Name() string                   { return "spread_constraints" }
func (groups) Grounds(q *Query) int           { return len(q.groupBy) }
func (groups) On(q *Query, ground int) string { return q.groupBy[ground].By() }

func (groups) Blame(q *Query, ground, n int) string {
	return fmt.Sprintf("%s no %s", plural(n, "has", "have"), q.groupBy[ground].By())
}

func (groups) Apply(p *Pass, ground int, keep Bitmap) {
	c := &p.query.groupBy[ground]
	if c.SpreadByLabel != "" {
		p.fleet.labels.keys[c.SpreadByLabel].andInto(keep, p.scratch)
		return
	}
	union := newBitmap(p.fleet.Slots())
	for _, rows := range p.fleet.places[c.SpreadByField] {
		rows.orInto(union)
	}
	keep.and(union)
}

func (groups) Admits(p *Pass, ground, row int, _ bool) bool {
	return len(groupsOf(p.fleet.rows[row].cluster, &p.query.groupBy[ground])) > 0
}

func (groups) Reason(p *Pass, ground, _ int) string {
	return fmt.Sprintf("has no %s, which spread_constraints ask for", p.query.groupBy[ground].By())
}

// groupsOf are the groups that a cluster belongs to: several where it spans
// zones.
func groupsOf(cluster *api.Cluster, c *api.GroupConstraint) []string {
	if c.SpreadByLabel == "" {
		return placeValues(&cluster.Spec, c.SpreadByField)
	}
	if value, ok := cluster.Metadata.Labels[c.SpreadByLabel]; ok {
		return []string{value}
	}
	return nil
}
