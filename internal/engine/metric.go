package engine

import (
	"fmt"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// metricState is one metric as the engine uses it at the fleet's moment. A
// metric that clusters refer to but that does not exist has a state too, with a
// nil object.
type metricState struct {
	key    api.Key
	metric *api.Metric
	// maxAge is the metric's own max_age, or four intervals of its provider.
	maxAge time.Duration
	// hasProvider says that the provider object exists.
	hasProvider bool
	rows        *rowSet // clusters that list the metric

	raw, normalized float64 // the value in use; valid where usable
	usable          bool
	onFailure       api.OnFailure
	reason          string // why it is not usable, or not available
	message         string
	staleAt         time.Time // when time alone makes it unusable; zero = never
}

// fails reports whether the metric keeps out the clusters that list it.
func (s *metricState) fails() bool { return !s.usable && s.onFailure != api.FailureIgnore }

// maxAgeIntervals is how many intervals of its provider a metric that names no
// max_age stays usable after its last good reading.
const maxAgeIntervals = 4

// evaluate returns the state of the metric at a moment.
//
// The last good value stays in use while the provider cannot be reached, until
// it is older than max_age; a value the provider gave but that is not valid, or
// a metric that is not defined, counts as failed at once. on_failure =
// last_value goes on with the last good value in either case.
func (s *metricState) evaluate(now time.Time) *metricState {
	next := *s
	return next.judge(now)
}

// judge fills in what evaluate returns.
func (s *metricState) judge(now time.Time) *metricState {
	s.usable, s.staleAt, s.reason, s.message = false, time.Time{}, "", ""
	s.onFailure = api.FailureExclude
	if s.metric == nil {
		s.reason, s.message = api.ReasonUnknownMetric, fmt.Sprintf("%s does not exist", s.key)
		return s
	}
	spec, status := s.metric.Spec, s.metric.Status
	s.onFailure = spec.OnFailure
	haveValue := false
	if status.Value != nil {
		normalized, err := Normalize(spec, *status.Value)
		if err == nil {
			s.raw, s.normalized, haveValue = *status.Value, normalized, true
		} else {
			s.reason, s.message = api.ReasonInvalidMetric, err.Error()
		}
	}
	available := api.FindCondition(status.Conditions, api.ConditionAvailable)
	switch {
	case !s.hasProvider:
		s.reason = api.ReasonUnknownMetricsProvider
		s.message = fmt.Sprintf("%s does not exist", s.metric.ProviderKey())
	case available != nil && available.Status == api.ConditionFalse:
		s.reason, s.message = available.Reason, available.Message
		if s.reason == "" {
			s.reason = api.ReasonUnreachableMetricsProvider
		}
	case status.Value == nil:
		s.reason, s.message = api.ReasonPending, "the metric has not been read yet"
	}
	switch {
	case !haveValue:
		return s
	case s.reason == "" || s.onFailure == api.FailureLastValue:
		s.usable = true
	case s.reason == api.ReasonUnreachableMetricsProvider && status.ObservedAt != nil:
		if end := status.ObservedAt.Add(s.maxAge); now.Before(end) {
			s.usable, s.staleAt = true, end
		}
	}
	return s
}

// describe is the sentence about an unusable metric, for who reads a namespace.
func (s *metricState) describe(namespace string) string {
	text := fmt.Sprintf("metric %q is not available: %s", s.key.Path(), s.reason)
	if cause := s.cause(namespace); cause != "" {
		text += " (" + cause + ")"
	}
	return text
}

// cause is what is wrong with a metric. What is wrong with a metric of another
// namespace is nothing that one namespace tells another.
func (s *metricState) cause(namespace string) string {
	if s.key.Namespace != "" && s.key.Namespace != namespace {
		return ""
	}
	return s.message
}

// shown is a metric as the status of what lists it has it.
func (s *metricState) shown(weight float64) api.ClusterMetricStatus {
	shown := api.ClusterMetricStatus{Name: s.key.Name, Namespace: s.key.Namespace, Weight: weight, Reason: s.reason}
	if s.metric != nil {
		shown.ObservedAt = s.metric.Status.ObservedAt
		shown.Value = s.metric.Status.Value
	}
	if s.usable {
		raw, normalized := s.raw, s.normalized
		shown.Value, shown.Normalized = &raw, &normalized
	}
	return shown
}
