package engine

import (
	"cmp"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// metricsAvailable rejects a cluster that lists a metric which has no usable
// value, unless the metric says to be ignored then.
type metricsAvailable struct{}

func (metricsAvailable) Name() string          { return "metrics_available" }
func (metricsAvailable) On(*Query, int) string { return "" }
func (metricsAvailable) Grounds(q *Query) int {
	if q.ignoresFailing {
		return 0
	}
	return 1
}
func (metricsAvailable) Blame(_ *Query, _, n int) string {
	return plural(n, "has a failing metric", "have a failing metric")
}

func (metricsAvailable) Apply(p *Pass, _ int, keep Bitmap) { keep.andNot(p.fleet.failing) }

func (metricsAvailable) Admits(p *Pass, _, row int, current bool) bool {
	return !p.fleet.failing.Has(row) || current && onlyUnknownToPolicy(p, row)
}

// onlyUnknownToPolicy reports whether all that fails on a cluster are metrics
// that the prioritizer policy names and that do not exist: the placement is
// misconfigured then, which ends no decision.
func onlyUnknownToPolicy(p *Pass, row int) bool {
	unknown := p.query.unknownPolicyMetrics(p.fleet)
	for _, m := range p.fleet.rows[row].metrics {
		s := p.fleet.metrics[m.id]
		if !s.usable && s.onFailure != api.FailureIgnore && !slices.Contains(unknown, s.key.Name) {
			return false
		}
	}
	return len(unknown) > 0
}

func (metricsAvailable) Reason(p *Pass, _, row int) string {
	if id, ok := firstFailing(p.fleet, row); ok {
		return p.fleet.metrics[id].describe(p.query.namespace)
	}
	return ""
}

// firstFailing is the first metric of a cluster that keeps it out.
func firstFailing(f *Fleet, row int) (id int32, ok bool) {
	for _, m := range f.rows[row].metrics {
		if s := f.metrics[m.id]; !s.usable && s.onFailure != api.FailureIgnore {
			return m.id, true
		}
	}
	return 0, false
}

// Causes counts the rejected clusters by the first of their failing metrics.
func (metricsAvailable) Causes(p *Pass, rejected func(yield func(row int) bool)) []Cause {
	counts := make([]int, len(p.fleet.metrics))
	for row := range rejected {
		if id, ok := firstFailing(p.fleet, row); ok {
			counts[id]++
		}
	}
	var out []Cause
	for id, n := range counts {
		if n > 0 {
			s := p.fleet.metrics[id]
			why := s.cause(p.query.namespace)
			if s.metric == nil {
				why = "does not exist"
			}
			out = append(out, Cause{On: s.key.Path(), Count: n, Why: why})
		}
	}
	slices.SortFunc(out, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.On, b.On))
	})
	return out
}

// Several implements pluralCauser.
func (metricsAvailable) Several(p *Pass, row int, _ bool) bool {
	n := 0
	for _, m := range p.fleet.rows[row].metrics {
		if s := p.fleet.metrics[m.id]; !s.usable && s.onFailure != api.FailureIgnore {
			n++
		}
	}
	return n > 1
}
