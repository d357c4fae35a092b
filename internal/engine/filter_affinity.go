package engine

import (
	"fmt"
	"strings"
)

// clusterAffinity admits the clusters of a workload's affinity group, those of
// its overflow tiers included.
type clusterAffinity struct{}

func (clusterAffinity) Name() string { return "cluster_affinity" }

func (clusterAffinity) Grounds(q *Query) int { return min(len(q.tiers), 1) }

func (clusterAffinity) On(q *Query, _ int) string { return q.tiers[0].name }

func (clusterAffinity) Blame(q *Query, _, n int) string {
	group := "cluster_affinity"
	if name := q.tiers[0].name; name != "" {
		group = fmt.Sprintf("affinity group %q", name)
	}
	return plural(n, "is", "are") + " not in " + group
}

func (clusterAffinity) Apply(p *Pass, _ int, keep Bitmap) {
	tiers := p.query.tiers
	if len(tiers) == 1 {
		tiers[0].selectInto(p.fleet, keep, p.scratch)
		return
	}
	union, tier := newBitmap(p.fleet.Slots()), newBitmap(p.fleet.Slots())
	for i := range tiers {
		copy(tier, keep)
		tiers[i].selectInto(p.fleet, tier, p.scratch)
		union.or(tier)
	}
	keep.and(union)
}

func (clusterAffinity) Admits(p *Pass, _, row int, _ bool) bool {
	return p.query.tierOf(p.fleet, row) >= 0
}

// tierOf is the first of a query's tiers that a cluster is in, -1 where it is in
// none.
func (q *Query) tierOf(f *Fleet, row int) int {
	for i := range q.tiers {
		if q.tiers[i].matches(f.rows[row].cluster) {
			return i
		}
	}
	return -1
}

func (clusterAffinity) Reason(p *Pass, _, row int) string {
	tiers := p.query.tiers
	reasons := make([]string, len(tiers))
	for i := range tiers {
		reasons[i] = tiers[i].mismatch(p.fleet.rows[row].cluster)
		if i > 0 {
			reasons[i] = fmt.Sprintf("overflow %q: %s", tiers[i].name, reasons[i])
		}
	}
	return strings.Join(reasons, "; ")
}
