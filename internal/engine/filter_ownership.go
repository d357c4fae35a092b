package engine

import "fmt"

// ownership hides a cluster with an owner namespace from the placements of
// every other namespace.
type ownership struct{}

func (ownership) Name() string              { return "namespace" }
func (ownership) Grounds(*Query) int        { return 1 }
func (ownership) On(q *Query, _ int) string { return q.namespace }
func (ownership) Blame(_ *Query, _, n int) string {
	return plural(n, "belongs to another namespace", "belong to another namespace")
}

func (ownership) Apply(p *Pass, _ int, keep Bitmap) {
	visible := p.scratch
	clear(visible)
	p.fleet.owners[""].orInto(visible)
	p.fleet.owners[p.query.namespace].orInto(visible)
	keep.and(visible)
}

func (ownership) Admits(p *Pass, _, row int, _ bool) bool {
	owner := p.fleet.rows[row].cluster.Spec.Namespace
	return owner == "" || owner == p.query.namespace
}

func (ownership) Reason(p *Pass, _, row int) string {
	return fmt.Sprintf("belongs to namespace %q", p.fleet.rows[row].cluster.Spec.Namespace)
}
