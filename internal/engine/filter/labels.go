package filter

import (
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/constraint"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// labelConstraints requires every label constraint of the placement. A cluster without the label
// fails all four operators.
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

// labelConstraint is one label constraint.
type labelConstraint struct {
	labelConstraints
	is constraint.Label
}

func (c *labelConstraint) Key(k key.Writer) {
	if !k.Words("text", c.is.String()) {
		k.Text("constraint", c.is.Canonical())
	}
}

func (c *labelConstraint) Reads() columns.Aspects { return columns.Labels }
func (c *labelConstraint) On() string             { return c.is.String() }

func (c *labelConstraint) Rejection(n int) string {
	return fmt.Sprintf("%s match label constraint %q", Plural(n, "does not", "do not"), c.is.String())
}

func (c *labelConstraint) Apply(l *Evaluation, keep columns.Bitmap) {
	has := l.Fleet.Labels().Of(c.is.Key())
	switch c.is.Operator() {
	case constraint.Equal, constraint.In:
		wanted := c.is.Values()
		if len(wanted) == 1 {
			has.Values[wanted[0]].AndInto(keep, l.scratch)
			return
		}
		union := l.scratch
		clear(union)
		for _, value := range wanted {
			has.Values[value].OrInto(union)
		}
		keep.And(union)
	default:
		has.Rows.AndInto(keep, l.scratch)
		for _, value := range c.is.Values() {
			has.Values[value].AndNotInto(keep)
		}
	}
}

func (c *labelConstraint) Admits(l *Evaluation, row int, _ bool) bool {
	return c.is.Match(l.Fleet.Cluster(row).Metadata.Labels)
}

func (c *labelConstraint) Reason(l *Evaluation, row int) string {
	return c.is.Explain(l.Fleet.Cluster(row).Metadata.Labels)
}
