package engine

import (
	"cmp"
	"slices"
)

// metricsAvailable rejects a cluster that lists a metric which has no usable
// value, unless the metric says to be ignored then.
type metricsAvailable struct{}

func (metricsAvailable) Name() string { return "metrics_available" }

func (metricsAvailable) Compile(s *Spec, made []Check) ([]Check, error) {
	if s.takesFailing {
		return made, nil
	}
	return append(made, &noMetricFails{namespace: s.Namespace, rated: s.rated}), nil
}

// noMetricFails asks that all metrics that have to be there are.
type noMetricFails struct {
	metricsAvailable
	namespace string   // to which reasons are told
	rated     []string // the metrics that the user named to rate clusters by
}

func (c *noMetricFails) Key(k *Key) {
	k.Set("rated", c.rated)
	k.Words("namespace", c.namespace)
}

func (c *noMetricFails) Reads() Aspects {
	if len(c.rated) > 0 {
		return Failing | MetricNames
	}
	return Failing
}

func (c *noMetricFails) On() string { return "" }

func (c *noMetricFails) Blame(n int) string {
	return plural(n, "has a failing metric", "have a failing metric")
}

func (c *noMetricFails) Apply(l *Look, keep Bitmap) { keep.andNot(l.fleet.failing) }

func (c *noMetricFails) Admits(l *Look, row int, current bool) bool {
	return !l.fleet.failing.Has(row) || current && len(c.rated) > 0 && c.onlyUnknown(l.fleet, row)
}

// onlyUnknown reports whether all that fails on a cluster are metrics that the
// prioritizer policy names and that do not exist: the placement is misconfigured
// then, which ends no decision.
func (c *noMetricFails) onlyUnknown(f *Fleet, row int) bool {
	fails := false
	for _, m := range f.rows[row].metrics {
		s := f.metrics[m.id]
		if !s.fails() {
			continue
		}
		if !slices.Contains(c.rated, s.key.Name) || f.HasMetric(s.key.Name) {
			return false
		}
		fails = true
	}
	return fails
}

func (c *noMetricFails) Reason(l *Look, row int) string {
	if id, ok := firstFailing(l.fleet, row); ok {
		return l.fleet.metrics[id].describe(c.namespace)
	}
	return ""
}

// firstFailing is the first metric of a cluster that keeps it out.
func firstFailing(f *Fleet, row int) (id int32, ok bool) {
	for _, m := range f.rows[row].metrics {
		if f.metrics[m.id].fails() {
			return m.id, true
		}
	}
	return 0, false
}

// Causes counts the rejected clusters by the first of their failing metrics.
func (c *noMetricFails) Causes(l *Look, rejected func(yield func(row int) bool)) []Cause {
	counts := make([]int, len(l.fleet.metrics))
	for row := range rejected {
		if id, ok := firstFailing(l.fleet, row); ok {
			counts[id]++
		}
	}
	var out []Cause
	for id, n := range counts {
		if n > 0 {
			s := l.fleet.metrics[id]
			why := s.cause(c.namespace)
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

// Several implements causer.
func (c *noMetricFails) Several(l *Look, row int, _ bool) bool {
	n := 0
	for _, m := range l.fleet.rows[row].metrics {
		if l.fleet.metrics[m.id].fails() {
			n++
		}
	}
	return n > 1
}
