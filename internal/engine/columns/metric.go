package columns

import (
	"fmt"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// MetricState is one metric at the time of the fleet. A metric that clusters refer to but that does
// not exist has a state too, with a nil object.
type MetricState struct {
	Key    api.Key
	Metric *api.Metric
	// maxAge is the metric's own max_age, or four intervals of its provider.
	maxAge time.Duration
	// hasProvider says whether the provider object exists.
	hasProvider bool
	// perCluster says that every cluster has its own value. These are in own, by cluster name; this
	// state itself applies to clusters without a value.
	perCluster bool
	own        map[string]*MetricState
	ownUnread  bool    // one of own cannot be read
	Rows       *RowSet // clusters that list the metric

	Raw, Normalized float64 // the value in use, if usable
	Usable          bool
	onFailure       api.OnFailure
	Reason          string // why it is unusable or unavailable
	message         string
	StaleAt         time.Time // when it, or one of own, becomes unusable through the passing of time; zero = never
	value           *float64  // the last good value, usable or not
	observedAt      *time.Time
}

// of returns the state of the metric for a cluster.
func (s *MetricState) of(cluster string) *MetricState {
	if own, ok := s.own[cluster]; ok {
		return own
	}
	return s
}

// Varies reports whether clusters have different values.
func (s *MetricState) Varies() bool { return len(s.own) > 0 }

// Fails reports whether the metric excludes the clusters that list it.
func (s *MetricState) Fails() bool { return !s.Usable && s.onFailure != api.FailureIgnore }

// Unread reports whether the metric has no value because it cannot be read at present: it and its
// provider exist.
func (s *MetricState) Unread() bool { return !s.Usable && s.Metric != nil && s.hasProvider }

// unreadSomewhere reports whether the metric cannot be read for some clusters. The state may be nil.
func (s *MetricState) unreadSomewhere() bool { return s != nil && (s.Unread() || s.ownUnread) }

// maxAgeIntervals is the default max_age, in intervals of the provider.
const maxAgeIntervals = 4

// evaluate returns the state of the metric at the given time.
//
// If the provider cannot be reached, the last good value is used until it is older than max_age. If
// the provider returned an invalid value, or the metric is not defined, the metric fails at once.
// With on_failure = last_value, the last good value is used in both cases.
func (s *MetricState) evaluate(now time.Time) *MetricState {
	next := *s
	next.own, next.ownUnread = nil, false
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
		next.ownUnread = next.ownUnread || own.Unread()
		if at := own.StaleAt; !at.IsZero() && (next.StaleAt.IsZero() || at.Before(next.StaleAt)) {
			next.StaleAt = at
		}
	}
	return &next
}

// Judge sets the state of the metric itself, as evaluate does.
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

// judge returns the state for one reading at the given time.
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

// Describe returns the message about an unusable metric, for readers of a namespace.
func (s *MetricState) Describe(namespace string) string {
	text := fmt.Sprintf("metric %q is not available: %s", s.Key.Path(), s.Reason)
	if cause := s.Cause(namespace); cause != "" {
		text += " (" + cause + ")"
	}
	return text
}

// Cause returns why a metric is unusable. The cause is not disclosed for a metric of another
// namespace.
func (s *MetricState) Cause(namespace string) string {
	if s.Key.Namespace != "" && s.Key.Namespace != namespace {
		return ""
	}
	return s.message
}

// failsLike reports whether two states of a metric either both do not fail, or both fail with the
// same description, and either can both be read or both cannot for the same reason.
func (s *MetricState) failsLike(other *MetricState) bool {
	if s.Unread() != other.Unread() || s.Unread() && s.Reason != other.Reason {
		return false
	}
	if !s.Fails() || !other.Fails() {
		return s.Fails() == other.Fails()
	}
	return s.Reason == other.Reason && s.message == other.message && (s.Metric == nil) == (other.Metric == nil)
}

// Shown returns the metric as it appears in the status of objects that list it.
func (s *MetricState) Shown(weight float64) api.ClusterMetricStatus {
	shown := api.ClusterMetricStatus{Name: s.Key.Name, Namespace: s.Key.Namespace, Weight: weight, Reason: s.Reason}
	shown.Value, shown.ObservedAt = s.value, s.observedAt
	if s.Usable {
		raw, normalized := s.Raw, s.Normalized
		shown.Value, shown.Normalized = &raw, &normalized
	}
	return shown
}
