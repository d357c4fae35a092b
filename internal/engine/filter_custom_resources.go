package engine

import (
	"fmt"
	"slices"
)

// customResources demands that a cluster has every custom resource definition
// the placement names, by exact name.
type customResources struct{}

func (customResources) Name() string                   { return "custom_resources" }
func (customResources) Grounds(q *Query) int           { return len(q.customResources) }
func (customResources) On(q *Query, ground int) string { return q.customResources[ground] }

func (customResources) Blame(q *Query, ground, n int) string {
	return fmt.Sprintf("%s custom resource %q", plural(n, "lacks", "lack"), q.customResources[ground])
}

func (customResources) Apply(p *Pass, ground int, keep Bitmap) {
	p.fleet.customs[p.query.customResources[ground]].andInto(keep, p.scratch)
}

func (customResources) Admits(p *Pass, ground, row int, _ bool) bool {
	return slices.Contains(p.fleet.rows[row].cluster.Spec.CustomResources, p.query.customResources[ground])
}

func (customResources) Reason(p *Pass, ground, _ int) string {
	return fmt.Sprintf("lacks custom resource %q", p.query.customResources[ground])
}
