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

func (metricConstraints) Name() string                   { return "metric_constraints" }
func (metricConstraints) Grounds(q *Query) int           { return len(q.metrics) }
func (metricConstraints) On(q *Query, ground int) string { return q.metrics[ground].String() }

func (metricConstraints) Blame(q *Query, ground, n int) string {
	return fmt.Sprintf("%s match metric constraint %q", plural(n, "does not", "do not"), q.metrics[ground].String())
}

func (m metricConstraints) Apply(p *Pass, ground int, keep Bitmap) {
	c := p.query.metrics[ground]
	ids := p.fleet.named[c.Name()]
	if len(ids) == 1 && p.query.basis != api.BasisWeighted {
		// One metric of the name, and a figure that is the same for all clusters
		// that list it: one comparison decides for all.
		s := p.fleet.metrics[ids[0]]
		if value, ok := figure(s, 1, p.query.basis); c.Match(value, ok) {
			s.rows.andInto(keep, p.scratch)
		} else {
			clear(keep)
		}
		return
	}
	listed := p.scratch
	clear(listed)
	for _, id := range ids {
		p.fleet.metrics[id].rows.orInto(listed)
	}
	keep.and(listed)
	keep.each(func(row int) {
		if !m.Admits(p, ground, row, false) {
			keep.clear(row)
		}
	})
}

func (metricConstraints) Admits(p *Pass, ground, row int, _ bool) bool {
	c := p.query.metrics[ground]
	return c.Match(p.figureOf(c, row))
}

func (metricConstraints) Reason(p *Pass, ground, row int) string {
	c := p.query.metrics[ground]
	if m, ok := p.metricNamed(c.Name(), row); ok {
		if s := p.fleet.metrics[m.id]; !s.usable {
			return s.describe(p.query.namespace)
		}
	}
	return c.Explain(p.figureOf(c, row))
}

// Tells implements teller.
func (metricConstraints) Tells(p *Pass, ground, row int) *api.Key {
	if m, ok := p.metricNamed(p.query.metrics[ground].Name(), row); ok && p.fleet.metrics[m.id].usable {
		return &p.fleet.metrics[m.id].key
	}
	return nil
}

// metricNamed is the metric of the cluster that a name stands for.
func (p *Pass) metricNamed(name string, row int) (rowMetric, bool) {
	var found rowMetric
	rank := 0
	for _, m := range p.fleet.rows[row].metrics {
		key := p.fleet.metrics[m.id].key
		if key.Name != name {
			continue
		}
		r := 1
		switch key.Namespace {
		case p.query.namespace:
			r = 3
		case "":
			r = 2
		}
		if r > rank {
			found, rank = m, r
		}
	}
	return found, rank > 0
}

func (p *Pass) figureOf(c constraint.Metric, row int) (float64, bool) {
	m, ok := p.metricNamed(c.Name(), row)
	if !ok {
		return 0, false
	}
	return figure(p.fleet.metrics[m.id], m.weight, p.query.basis)
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
