package engine

import (
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/constraint"
)

// labelConstraints demands every label constraint of the placement. A cluster
// without the label fails all four operators.
type labelConstraints struct{}

func (labelConstraints) Name() string { return "label_constraints" }

func (labelConstraints) Compile(s *Spec, made []Check) ([]Check, error) {
	for i, text := range s.Placement.LabelConstraints {
		c, err := constraint.ParseLabel(text)
		if err != nil {
			return made, fmt.Errorf("spec.label_constraints[%d]: %w", i, err)
		}
		made = append(made, &labelConstraint{is: c})
	}
	return made, nil
}

// labelConstraint is one of them.
type labelConstraint struct {
	labelConstraints
	is constraint.Label
}

func (c *labelConstraint) Key(k *Key) {
	k.Text("constraint", c.is.Canonical())
	k.Words("text", c.is.String())
}

func (c *labelConstraint) Reads() Aspects { return Labels }
func (c *labelConstraint) On() string     { return c.is.String() }

func (c *labelConstraint) Blame(n int) string {
	return fmt.Sprintf("%s match label constraint %q", plural(n, "does not", "do not"), c.is.String())
}

func (c *labelConstraint) Apply(l *Look, keep Bitmap) {
	values := l.fleet.labels.values[c.is.Key()]
	switch c.is.Operator() {
	case constraint.Equal, constraint.In:
		wanted := c.is.Values()
		if len(wanted) == 1 {
			values[wanted[0]].andInto(keep, l.scratch)
			return
		}
		union := l.scratch
		clear(union)
		for _, value := range wanted {
			values[value].orInto(union)
		}
		keep.and(union)
	default:
		l.fleet.labels.keys[c.is.Key()].andInto(keep, l.scratch)
		for _, value := range c.is.Values() {
			values[value].andNotInto(keep)
		}
	}
}

func (c *labelConstraint) Admits(l *Look, row int, _ bool) bool {
	return c.is.Match(l.fleet.rows[row].cluster.Metadata.Labels)
}

func (c *labelConstraint) Reason(l *Look, row int) string {
	return c.is.Explain(l.fleet.rows[row].cluster.Metadata.Labels)
}
