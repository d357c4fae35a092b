package engine

import (
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/constraint"
)

// labelConstraints demands every label constraint of the placement. A cluster
// without the label fails all four operators.
type labelConstraints struct{}

func (labelConstraints) Name() string                   { return "label_constraints" }
func (labelConstraints) Grounds(q *Query) int           { return len(q.labels) }
func (labelConstraints) On(q *Query, ground int) string { return q.labels[ground].String() }

func (labelConstraints) Blame(q *Query, ground, n int) string {
	return fmt.Sprintf("%s match label constraint %q", plural(n, "does not", "do not"), q.labels[ground].String())
}

func (labelConstraints) Apply(p *Pass, ground int, keep Bitmap) {
	c := p.query.labels[ground]
	values := p.fleet.labels.values[c.Key()]
	switch c.Operator() {
	case constraint.Equal, constraint.In:
		wanted := c.Values()
		if len(wanted) == 1 {
			values[wanted[0]].andInto(keep, p.scratch)
			return
		}
		union := p.scratch
		clear(union)
		for _, value := range wanted {
			values[value].orInto(union)
		}
		keep.and(union)
	default:
		p.fleet.labels.keys[c.Key()].andInto(keep, p.scratch)
		for _, value := range c.Values() {
			values[value].andNotInto(keep)
		}
	}
}

func (labelConstraints) Admits(p *Pass, ground, row int, _ bool) bool {
	return p.query.labels[ground].Match(p.fleet.rows[row].cluster.Metadata.Labels)
}

func (labelConstraints) Reason(p *Pass, ground, row int) string {
	return p.query.labels[ground].Explain(p.fleet.rows[row].cluster.Metadata.Labels)
}
