package filter

import (
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/constraint"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// metricConstraints demands every metric constraint of the placement. A cluster
// that does not list the metric, or whose value is not usable, never matches.
//
// A constraint names a metric without its namespace. Where a cluster lists
// several metrics of that name, the one in the placement's namespace counts,
// then the global one, then the first listed.
type metricConstraints struct{}

func (metricConstraints) Name() string { return "metric_constraints" }

func (metricConstraints) Compile(s *Spec, made []Check) ([]Check, error) {
	for i, text := range s.Placement.MetricConstraints {
		c, err := constraint.ParseMetric(text)
		if err != nil {
			return made, fmt.Errorf("spec.metric_constraints[%d]: %w", i, err)
		}
		made = append(made, &MetricConstraint{Is: c, basis: s.Placement.MetricConstraintBasis, namespace: s.Namespace})
	}
	return made, nil
}

// MetricConstraint is one of them.
type MetricConstraint struct {
	metricConstraints
	Is        constraint.Metric
	basis     api.Basis
	namespace string
}

func (c *MetricConstraint) Key(k *Key) {
	k.Text("constraint", c.Is.Canonical())
	k.Text("basis", string(c.basis))
	k.Text("namespace", c.namespace)
	k.Words("text", c.Is.String())
}

func (c *MetricConstraint) Reads() columns.Aspects { return columns.MetricValues | columns.MetricNames }
func (c *MetricConstraint) On() string             { return c.Is.String() }

func (c *MetricConstraint) Blame(n int) string {
	return fmt.Sprintf("%s match metric constraint %q", Plural(n, "does not", "do not"), c.Is.String())
}

func (c *MetricConstraint) Apply(l *Look, keep columns.Bitmap) {
	ids := l.Fleet.MetricsNamed()[c.Is.Name()]
	if len(ids) == 1 && c.basis != api.BasisWeighted {
		// One metric of the name, and a figure that is the same for all clusters
		// that list it: one comparison decides for all.
		s := l.Fleet.Metrics()[ids[0]]
		if value, ok := figure(s, 1, c.basis); c.Is.Match(value, ok) {
			s.Rows.AndInto(keep, l.scratch)
		} else {
			clear(keep)
		}
		return
	}
	listed := l.scratch
	clear(listed)
	for _, id := range ids {
		l.Fleet.Metrics()[id].Rows.OrInto(listed)
	}
	keep.And(listed)
	keep.Each(func(row int) {
		if !c.Admits(l, row, false) {
			keep.Clear(row)
		}
	})
}

func (c *MetricConstraint) Admits(l *Look, row int, _ bool) bool {
	return c.Is.Match(c.figureOf(l.Fleet, row))
}

func (c *MetricConstraint) Reason(l *Look, row int) string {
	if m, ok := l.Fleet.MetricNamed(c.namespace, c.Is.Name(), row); ok {
		if s := l.Fleet.Metrics()[m.ID]; !s.Usable {
			return s.Describe(c.namespace)
		}
	}
	return c.Is.Explain(c.figureOf(l.Fleet, row))
}

// Tells implements teller.
func (c *MetricConstraint) Tells(l *Look, row int) *api.Key {
	if m, ok := l.Fleet.MetricNamed(c.namespace, c.Is.Name(), row); ok && l.Fleet.Metrics()[m.ID].Usable {
		return &l.Fleet.Metrics()[m.ID].Key
	}
	return nil
}

func (c *MetricConstraint) figureOf(f *columns.Fleet, row int) (float64, bool) {
	m, ok := f.MetricNamed(c.namespace, c.Is.Name(), row)
	if !ok {
		return 0, false
	}
	return figure(f.Metrics()[m.ID], m.Weight, c.basis)
}

// figure is what a constraint compares: the raw value, the normalised one, or
// that times the cluster's weight.
func figure(s *columns.MetricState, weight float64, basis api.Basis) (float64, bool) {
	switch {
	case !s.Usable:
		return 0, false
	case basis == api.BasisWeighted:
		return weight * s.Normalized, true
	case basis == api.BasisNormalized:
		return s.Normalized, true
	}
	return s.Raw, true
}
