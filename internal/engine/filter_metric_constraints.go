package engine

import (
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/constraint"
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
		made = append(made, &metricConstraint{is: c, basis: s.Placement.MetricConstraintBasis, namespace: s.Namespace})
	}
	return made, nil
}

// metricConstraint is one of them.
type metricConstraint struct {
	metricConstraints
	is        constraint.Metric
	basis     api.Basis
	namespace string
}

func (c *metricConstraint) Key(k *Key) {
	k.Text("constraint", c.is.Canonical())
	k.Text("basis", string(c.basis))
	k.Text("namespace", c.namespace)
	k.Words("text", c.is.String())
}

func (c *metricConstraint) Reads() Aspects { return MetricValues | MetricNames }
func (c *metricConstraint) On() string     { return c.is.String() }

func (c *metricConstraint) Blame(n int) string {
	return fmt.Sprintf("%s match metric constraint %q", plural(n, "does not", "do not"), c.is.String())
}

func (c *metricConstraint) Apply(l *Look, keep Bitmap) {
	ids := l.fleet.named[c.is.Name()]
	if len(ids) == 1 && c.basis != api.BasisWeighted {
		// One metric of the name, and a figure that is the same for all clusters
		// that list it: one comparison decides for all.
		s := l.fleet.metrics[ids[0]]
		if value, ok := figure(s, 1, c.basis); c.is.Match(value, ok) {
			s.rows.andInto(keep, l.scratch)
		} else {
			clear(keep)
		}
		return
	}
	listed := l.scratch
	clear(listed)
	for _, id := range ids {
		l.fleet.metrics[id].rows.orInto(listed)
	}
	keep.and(listed)
	keep.each(func(row int) {
		if !c.Admits(l, row, false) {
			keep.clear(row)
		}
	})
}

func (c *metricConstraint) Admits(l *Look, row int, _ bool) bool {
	return c.is.Match(c.figureOf(l.fleet, row))
}

func (c *metricConstraint) Reason(l *Look, row int) string {
	if m, ok := l.fleet.metricNamed(c.namespace, c.is.Name(), row); ok {
		if s := l.fleet.metrics[m.id]; !s.usable {
			return s.describe(c.namespace)
		}
	}
	return c.is.Explain(c.figureOf(l.fleet, row))
}

// Tells implements teller.
func (c *metricConstraint) Tells(l *Look, row int) *api.Key {
	if m, ok := l.fleet.metricNamed(c.namespace, c.is.Name(), row); ok && l.fleet.metrics[m.id].usable {
		return &l.fleet.metrics[m.id].key
	}
	return nil
}

func (c *metricConstraint) figureOf(f *Fleet, row int) (float64, bool) {
	m, ok := f.metricNamed(c.namespace, c.is.Name(), row)
	if !ok {
		return 0, false
	}
	return figure(f.metrics[m.id], m.weight, c.basis)
}

// figure is what a constraint compares: the raw value, the normalised one, or
// that times the cluster's weight.
func figure(s *metricState, weight float64, basis api.Basis) (float64, bool) {
	switch {
	case !s.usable:
		return 0, false
	case basis == api.BasisWeighted:
		return weight * s.normalized, true
	case basis == api.BasisNormalized:
		return s.normalized, true
	}
	return s.raw, true
}
