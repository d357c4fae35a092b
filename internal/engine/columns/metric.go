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
	// perCluster says that every cluster has a value of its own: they are in own, by
	// the cluster's name, and this state is that of a cluster that has none yet.
	perCluster bool
	own        map[string]*MetricState
	Rows       *RowSet // clusters that list the metric

	Raw, Normalized float64 // the value in use; valid where usable
	Usable          bool
	onFailure       api.OnFailure
	Reason          string // why it is not usable, or not available
	message         string
	StaleAt         time.Time // when time alone makes it unusable, or one of own; zero = never
	value           *float64  // the last good one, usable or not
	observedAt      *time.Time
}

// of is the metric as a cluster has it.
func (s *MetricState) of(cluster string) *MetricState {
	if own, ok := s.own[cluster]; ok {
		return own
	}
	return s
}

// Varies reports whether the value differs from cluster to cluster.
func (s *MetricState) Varies() bool { return len(s.own) > 0 }

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
	next.own = nil
	next.Judge(now)
	if next.Metric == nil || next.hasProvider && !next.perCluster {
		return &next
	}
	for cluster, reading := range next.Metric.Status.Clusters {
		own := &MetricState{Key: s.Key, Metric: s.Metric, maxAge: s.maxAge, hasProvider: s.hasProvider, Rows: s.Rows}
		own.judge(now, reading)
		if next.own == nil {
			next.own = make(map[string]*MetricState, len(next.Metric.Status.Clusters))
		}
		next.own[cluster] = own
		if at := own.StaleAt; !at.IsZero() && (next.StaleAt.IsZero() || at.Before(next.StaleAt)) {
			next.StaleAt = at
		}
	}
	return &next
}

// Judge fills in what evaluate returns of the metric itself.
func (s *MetricState) Judge(now time.Time) *MetricState {
	if s.Metric == nil {
		return s.judge(now, api.MetricReading{})
	}
	status := s.Metric.Status
	reading := api.MetricReading{Value: status.Value, ObservedAt: status.ObservedAt}
	if s.perCluster {
		reading.Value = nil
	}
	available := api.FindCondition(status.Conditions, api.ConditionAvailable)
	switch {
	case available != nil && available.Status == api.ConditionFalse:
		reading.Reason, reading.Message = available.Reason, available.Message
		if reading.Reason == "" {
			reading.Reason = api.ReasonUnreachableMetricsProvider
		}
	case s.perCluster:
		reading.Reason = api.ReasonInvalidMetric
		reading.Message = "it has a value for each cluster that lists it, and none for this one yet"
	case status.Value == nil:
		reading.Reason, reading.Message = api.ReasonPending, "the metric has not been read yet"
	}
	return s.judge(now, reading)
}

// judge says what a reading is worth at a moment.
func (s *MetricState) judge(now time.Time, reading api.MetricReading) *MetricState {
	s.Usable, s.StaleAt, s.Reason, s.message = false, time.Time{}, "", ""
	s.value, s.observedAt = reading.Value, reading.ObservedAt
	s.onFailure = api.FailureExclude
	if s.Metric == nil {
		s.Reason, s.message = api.ReasonUnknownMetric, fmt.Sprintf("%s does not exist", s.Key)
		return s
	}
	spec := s.Metric.Spec
	s.onFailure = spec.OnFailure
	haveValue := false
	if reading.Value != nil {
		normalized, err := Normalize(spec, *reading.Value)
		if err == nil {
			s.Raw, s.Normalized, haveValue = *reading.Value, normalized, true
		} else {
			s.Reason, s.message = api.ReasonInvalidMetric, err.Error()
		}
	}
	switch {
	case !s.hasProvider:
		s.Reason = api.ReasonUnknownMetricsProvider
		s.message = fmt.Sprintf("%s does not exist", s.Metric.ProviderKey())
	case reading.Reason != "":
		s.Reason, s.message = reading.Reason, reading.Message
	}
	switch {
	case !haveValue:
		return s
	case s.Reason == "" || s.onFailure == api.FailureLastValue:
		s.Usable = true
	case s.Reason == api.ReasonUnreachableMetricsProvider && reading.ObservedAt != nil:
		if end := reading.ObservedAt.Add(s.maxAge); now.Before(end) {
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

// failsLike reports whether neither of two states of a metric fails, or both do and
// are described alike.
func (s *MetricState) failsLike(other *MetricState) bool {
	if !s.Fails() || !other.Fails() {
		return s.Fails() == other.Fails()
	}
	return s.Reason == other.Reason && s.message == other.message && (s.Metric == nil) == (other.Metric == nil)
}

// Shown is a metric as the status of what lists it has it.
func (s *MetricState) Shown(weight float64) api.ClusterMetricStatus {
	shown := api.ClusterMetricStatus{Name: s.Key.Name, Namespace: s.Key.Namespace, Weight: weight, Reason: s.Reason}
	shown.Value, shown.ObservedAt = s.value, s.observedAt
	if s.Usable {
		raw, normalized := s.Raw, s.Normalized
		shown.Value, shown.Normalized = &raw, &normalized
	}
	return shown
}
