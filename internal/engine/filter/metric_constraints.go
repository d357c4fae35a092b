package filter

import (
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/constraint"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// metricConstraints requires every metric constraint of the placement. A cluster that does not list
// the metric, or whose value is unusable, never matches.
//
// A constraint names a metric without its namespace. If a cluster lists several metrics with that
// name, the one in the placement's namespace is used, then the global one, then the first listed.
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

// metricConstraint is one metric constraint.
type metricConstraint struct {
	metricConstraints
	is        constraint.Metric
	basis     api.Basis
	namespace string
}

func (c *metricConstraint) Key(k key.Writer) {
	if !k.Words("text", c.is.String()) {
		k.Text("constraint", c.is.Canonical())
	}
	k.Text("basis", string(c.basis))
	k.Text("namespace", c.namespace)
}

func (c *metricConstraint) Reads() columns.Aspects {
	return columns.MetricValues | columns.MetricNames | columns.Failing
}

func (c *metricConstraint) On() string { return c.is.String() }

func (c *metricConstraint) Rejection(n int) string {
	return fmt.Sprintf("%s match metric constraint %q", Plural(n, "does not", "do not"), c.is.String())
}

func (c *metricConstraint) Apply(l *Evaluation, keep columns.Bitmap) {
	ids := l.Fleet.MetricsNamed()[c.is.Name()]
	if len(ids) == 1 && c.basis != api.BasisWeighted && !l.Fleet.Metrics()[ids[0]].Varies() {
		// There is one metric with the name, and its value is the same for all clusters: one
		// comparison decides for all.
		s := l.Fleet.Metrics()[ids[0]]
		if value, ok := figure(s, 1, c.basis); c.is.Match(value, ok) {
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

func (c *metricConstraint) Admits(l *Evaluation, row int, current bool) bool {
	return c.is.Match(c.figureOf(l.Fleet, row)) || current && c.Unread(l, row) != nil
}

// Unread implements unreading.
func (c *metricConstraint) Unread(l *Evaluation, row int) *columns.MetricState {
	if m, ok := l.Fleet.MetricNamed(c.namespace, c.is.Name(), row); ok {
		if s := l.Fleet.MetricOf(row, m); s.Unread() {
			return s
		}
	}
	return nil
}

func (c *metricConstraint) Reason(l *Evaluation, row int) string {
	if m, ok := l.Fleet.MetricNamed(c.namespace, c.is.Name(), row); ok {
		if s := l.Fleet.MetricOf(row, m); !s.Usable {
			return s.Describe(c.namespace)
		}
	}
	return c.is.Explain(c.figureOf(l.Fleet, row))
}

// Metric implements Naming.
func (c *metricConstraint) Metric() string { return c.is.Name() }

// Tells implements teller.
func (c *metricConstraint) Tells(l *Evaluation, row int) *api.Key {
	if m, ok := l.Fleet.MetricNamed(c.namespace, c.is.Name(), row); ok && l.Fleet.MetricOf(row, m).Usable {
		return &l.Fleet.Metrics()[m.ID].Key
	}
	return nil
}

func (c *metricConstraint) figureOf(f *columns.Fleet, row int) (float64, bool) {
	m, ok := f.MetricNamed(c.namespace, c.is.Name(), row)
	if !ok {
		return 0, false
	}
	return figure(f.MetricOf(row, m), m.Weight, c.basis)
}

// figure returns the value that a constraint compares: raw, normalized, or normalized times the
// cluster's weight.
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
