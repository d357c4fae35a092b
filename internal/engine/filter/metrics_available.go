package filter

import (
	"cmp"
	"maps"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// metricsAvailable rejects a cluster that lists a metric without a usable value, unless the metric
// has on_failure = ignore.
type metricsAvailable struct{}

func (metricsAvailable) Name() string { return "metrics_available" }

func (metricsAvailable) Compile(s *Spec, made []Check) ([]Check, error) {
	if s.TakesFailing {
		return made, nil
	}
	return append(made, &noMetricFails{namespace: s.Namespace, rated: s.Rated}), nil
}

// noMetricFails requires that no metric of a cluster fails.
type noMetricFails struct {
	metricsAvailable
	namespace string   // of the reader of reasons
	rated     []string // metrics that the user named to rate clusters
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

func (c *noMetricFails) Rejection(n int) string {
	return Plural(n, "has a failing metric", "have a failing metric")
}

func (c *noMetricFails) Apply(l *Evaluation, keep columns.Bitmap) { keep.AndNot(l.Fleet.Failing()) }

func (c *noMetricFails) Admits(l *Evaluation, row int, current bool) bool {
	return !l.Fleet.Failing().Has(row) || current && c.endsNothing(l.Fleet, row)
}

// Unread implements unreading.
func (c *noMetricFails) Unread(l *Evaluation, row int) *columns.MetricState {
	if !l.Fleet.Failing().Has(row) {
		return nil
	}
	for _, m := range l.Fleet.Rows()[row].Metrics {
		if s := l.Fleet.MetricOf(row, m); s.Fails() && s.Unread() {
			return s
		}
	}
	return nil
}

// endsNothing reports whether the only failing metrics of a cluster are ones that cannot be read at
// present, or that the prioritizer policy names and that do not exist, so that the placement is
// misconfigured. Neither ends a decision.
func (c *noMetricFails) endsNothing(f *columns.Fleet, row int) bool {
	fails := false
	for _, m := range f.Rows()[row].Metrics {
		s := f.MetricOf(row, m)
		if !s.Fails() {
			continue
		}
		if s.Unread() {
			fails = true
			continue
		}
		if !slices.Contains(c.rated, s.Key.Name) || f.HasMetric(s.Key.Name) {
			return false
		}
		fails = true
	}
	return fails
}

func (c *noMetricFails) Reason(l *Evaluation, row int) string {
	if s := firstFailing(l.Fleet, row); s != nil {
		return s.Describe(c.namespace)
	}
	return ""
}

// firstFailing returns the first metric that excludes a cluster.
func firstFailing(f *columns.Fleet, row int) *columns.MetricState {
	for _, m := range f.Rows()[row].Metrics {
		if s := f.MetricOf(row, m); s.Fails() {
			return s
		}
	}
	return nil
}

// Causes counts the rejected clusters by their first failing metric.
func (c *noMetricFails) Causes(l *Evaluation, rejected func(yield func(row int) bool)) []Cause {
	byMetric := map[string]Cause{}
	for row := range rejected {
		s := firstFailing(l.Fleet, row)
		if s == nil {
			continue
		}
		why := s.Cause(c.namespace)
		if s.Metric == nil {
			why = "does not exist"
		}
		cause, ok := byMetric[s.Key.Path()]
		if ok && cause.Why != why {
			why = "for several reasons" // different reasons on different clusters
		}
		byMetric[s.Key.Path()] = Cause{On: s.Key.Path(), Count: cause.Count + 1, Why: why}
	}
	out := slices.Collect(maps.Values(byMetric))
	slices.SortFunc(out, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.On, b.On))
	})
	return out
}

// Several implements causer.
func (c *noMetricFails) Several(l *Evaluation, row int, _ bool) bool {
	n := 0
	for _, m := range l.Fleet.Rows()[row].Metrics {
		if l.Fleet.MetricOf(row, m).Fails() {
			n++
		}
	}
	return n > 1
}
