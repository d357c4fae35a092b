package columns

import (
	"fmt"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// MetricState is one metric as the engine uses it at the fleet's moment. A
// metric that clusters refer to but that does not exist has a state too, with a
// nil object.
type MetricState struct {
	Key    api.Key
	Metric *api.Metric
	// maxAge is the metric's own max_age, or four intervals of its provider.
	maxAge time.Duration
	// hasProvider says that the provider object exists.
	hasProvider bool
	Rows        *RowSet // clusters that list the metric

	Raw, Normalized float64 // the value in use; valid where usable
	Usable          bool
	onFailure       api.OnFailure
	Reason          string // why it is not usable, or not available
	message         string
	StaleAt         time.Time // when time alone makes it unusable; zero = never
}

// Fails reports whether the metric keeps out the clusters that list it.
func (s *MetricState) Fails() bool { return !s.Usable && s.onFailure != api.FailureIgnore }

// maxAgeIntervals is how many intervals of its provider a metric that names no
// max_age stays usable after its last good reading.
const maxAgeIntervals = 4

// evaluate returns the state of the metric at a moment.
//
// The last good value stays in use while the provider cannot be reached, until
// it is older than max_age; a value the provider gave but that is not valid, or
// a metric that is not defined, counts as failed at once. on_failure =
// last_value goes on with the last good value in either case.
func (s *MetricState) evaluate(now time.Time) *MetricState {
	next := *s
	return next.Judge(now)
}

// Judge fills in what evaluate returns.
func (s *MetricState) Judge(now time.Time) *MetricState {
	s.Usable, s.StaleAt, s.Reason, s.message = false, time.Time{}, "", ""
	s.onFailure = api.FailureExclude
	if s.Metric == nil {
		s.Reason, s.message = api.ReasonUnknownMetric, fmt.Sprintf("%s does not exist", s.Key)
		return s
	}
	spec, status := s.Metric.Spec, s.Metric.Status
	s.onFailure = spec.OnFailure
	haveValue := false
	if status.Value != nil {
		normalized, err := Normalize(spec, *status.Value)
		if err == nil {
			s.Raw, s.Normalized, haveValue = *status.Value, normalized, true
		} else {
			s.Reason, s.message = api.ReasonInvalidMetric, err.Error()
		}
	}
	available := api.FindCondition(status.Conditions, api.ConditionAvailable)
	switch {
	case !s.hasProvider:
		s.Reason = api.ReasonUnknownMetricsProvider
		s.message = fmt.Sprintf("%s does not exist", s.Metric.ProviderKey())
	case available != nil && available.Status == api.ConditionFalse:
		s.Reason, s.message = available.Reason, available.Message
		if s.Reason == "" {
			s.Reason = api.ReasonUnreachableMetricsProvider
		}
	case status.Value == nil:
		s.Reason, s.message = api.ReasonPending, "the metric has not been read yet"
	}
	switch {
	case !haveValue:
		return s
	case s.Reason == "" || s.onFailure == api.FailureLastValue:
		s.Usable = true
	case s.Reason == api.ReasonUnreachableMetricsProvider && status.ObservedAt != nil:
		if end := status.ObservedAt.Add(s.maxAge); now.Before(end) {
			s.Usable, s.StaleAt = true, end
		}
	}
	return s
}

// Describe is the sentence about an unusable metric, for who reads a namespace.
func (s *MetricState) Describe(namespace string) string {
	text := fmt.Sprintf("metric %q is not available: %s", s.Key.Path(), s.Reason)
	if cause := s.Cause(namespace); cause != "" {
		text += " (" + cause + ")"
	}
	return text
}

// Cause is what is wrong with a metric. What is wrong with a metric of another
// namespace is nothing that one namespace tells another.
func (s *MetricState) Cause(namespace string) string {
	if s.Key.Namespace != "" && s.Key.Namespace != namespace {
		return ""
	}
	return s.message
}

// Shown is a metric as the status of what lists it has it.
func (s *MetricState) Shown(weight float64) api.ClusterMetricStatus {
	shown := api.ClusterMetricStatus{Name: s.Key.Name, Namespace: s.Key.Namespace, Weight: weight, Reason: s.Reason}
	if s.Metric != nil {
		shown.ObservedAt = s.Metric.Status.ObservedAt
		shown.Value = s.Metric.Status.Value
	}
	if s.Usable {
		raw, normalized := s.Raw, s.Normalized
		shown.Value, shown.Normalized = &raw, &normalized
	}
	return shown
}
