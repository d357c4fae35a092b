package filter

import (
	"cmp"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// metricsAvailable rejects a cluster that lists a metric which has no usable
// value, unless the metric says to be ignored then.
type metricsAvailable struct{}

func (metricsAvailable) Name() string { return "metrics_available" }

func (metricsAvailable) Compile(s *Spec, made []Check) ([]Check, error) {
	if s.TakesFailing {
		return made, nil
	}
	return append(made, &noMetricFails{namespace: s.Namespace, rated: s.Rated}), nil
}

// noMetricFails asks that all metrics that have to be there are.
type noMetricFails struct {
	metricsAvailable
	namespace string   // to which reasons are told
	rated     []string // the metrics that the user named to rate clusters by
}

func (c *noMetricFails) Key(k key.Writer) {
	k.Set("rated", c.rated)
	k.Words("namespace", c.namespace)
}

func (c *noMetricFails) Reads() columns.Aspects {
	if len(c.rated) > 0 {
		return columns.Failing | columns.MetricNames
	}
	return columns.Failing
}

func (c *noMetricFails) On() string { return "" }

func (c *noMetricFails) Blame(n int) string {
	return Plural(n, "has a failing metric", "have a failing metric")
}

func (c *noMetricFails) Apply(l *Look, keep columns.Bitmap) { keep.AndNot(l.Fleet.Failing()) }

func (c *noMetricFails) Admits(l *Look, row int, current bool) bool {
	return !l.Fleet.Failing().Has(row) || current && len(c.rated) > 0 && c.onlyUnknown(l.Fleet, row)
}

// onlyUnknown reports whether all that fails on a cluster are metrics that the
// prioritizer policy names and that do not exist: the placement is misconfigured
// then, which ends no decision.
func (c *noMetricFails) onlyUnknown(f *columns.Fleet, row int) bool {
	fails := false
	for _, m := range f.Rows()[row].Metrics {
		s := f.Metrics()[m.ID]
		if !s.Fails() {
			continue
		}
		if !slices.Contains(c.rated, s.Key.Name) || f.HasMetric(s.Key.Name) {
			return false
		}
		fails = true
	}
	return fails
}

func (c *noMetricFails) Reason(l *Look, row int) string {
	if id, ok := firstFailing(l.Fleet, row); ok {
		return l.Fleet.Metrics()[id].Describe(c.namespace)
	}
	return ""
}

// firstFailing is the first metric of a cluster that keeps it out.
func firstFailing(f *columns.Fleet, row int) (id int32, ok bool) {
	for _, m := range f.Rows()[row].Metrics {
		if f.Metrics()[m.ID].Fails() {
			return m.ID, true
		}
	}
	return 0, false
}

// Causes counts the rejected clusters by the first of their failing metrics.
func (c *noMetricFails) Causes(l *Look, rejected func(yield func(row int) bool)) []Cause {
	counts := make([]int, len(l.Fleet.Metrics()))
	for row := range rejected {
		if id, ok := firstFailing(l.Fleet, row); ok {
			counts[id]++
		}
	}
	var out []Cause
	for id, n := range counts {
		if n > 0 {
			s := l.Fleet.Metrics()[id]
			why := s.Cause(c.namespace)
			if s.Metric == nil {
				why = "does not exist"
			}
			out = append(out, Cause{On: s.Key.Path(), Count: n, Why: why})
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
	for _, m := range l.Fleet.Rows()[row].Metrics {
		if l.Fleet.Metrics()[m.ID].Fails() {
			n++
		}
	}
	return n > 1
}
