package engine

import (
	"fmt"
	"slices"
)

// apiResources demands that a cluster takes resources of the workload's type. A
// cluster that lists none is not known, and passes; so does one that has the
// workload already.
type apiResources struct{}

func (apiResources) Name() string { return "api_resources" }

func (apiResources) Grounds(q *Query) int {
	if q.apiResource == "" {
		return 0
	}
	return 1
}

func (apiResources) On(q *Query, _ int) string { return q.apiResource }

func (apiResources) Blame(q *Query, _, n int) string {
	return fmt.Sprintf("%s take %s", plural(n, "does not", "do not"), q.apiResource)
}

func (apiResources) Apply(p *Pass, _ int, keep Bitmap) {
	known := p.fleet.apiResources[""]
	if known.len() == 0 {
		return
	}
	lacking := p.scratch
	clear(lacking)
	known.orInto(lacking)
	p.fleet.apiResources[p.query.apiResource].andNotInto(lacking)
	keep.andNot(lacking)
}

func (apiResources) Admits(p *Pass, _, row int, current bool) bool {
	listed := p.fleet.rows[row].cluster.Spec.APIResources
	return current || len(listed) == 0 || slices.Contains(listed, p.query.apiResource)
}

func (apiResources) Reason(p *Pass, _, _ int) string {
	return fmt.Sprintf("does not list %s among its api_resources", p.query.apiResource)
}
