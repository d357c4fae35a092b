package collect

import (
	"errors"
	"reflect"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// metric is a metric with its stored status.
type metric struct {
	loop     *loop
	object   *api.Metric
	revision int64
	written  api.MetricStatus
	// goodAt is when the value was last good. It is not stored while the metric stays available
	// with the same value.
	goodAt time.Time
	each   map[string]*clusterMetric
}

// clusterMetric is the state of a metric for one cluster, besides what is stored.
type clusterMetric struct {
	goodAt time.Time // as for a metric
	query  string    // last query
}

// newMetric adopts a metric from the store. A metric that was available when the server stopped
// counts as good until now: a restart must not make a value too old.
func newMetric(o *api.Metric, now time.Time) *metric {
	m := &metric{object: o, written: o.Status, each: map[string]*clusterMetric{}}
	for cluster, reading := range o.Status.Clusters {
		m.each[cluster] = &clusterMetric{}
		switch {
		case reading.Reason == "":
			m.each[cluster].goodAt = now.UTC()
		case reading.ObservedAt != nil:
			m.each[cluster].goodAt = *reading.ObservedAt
		}
	}
	c := api.FindCondition(o.Status.Conditions, api.ConditionAvailable)
	switch {
	case c != nil && c.Status == api.ConditionTrue:
		m.goodAt = now.UTC()
	case o.Status.ObservedAt != nil:
		m.goodAt = *o.Status.ObservedAt
	}
	return m
}

// leave removes the metric from its loop.
func (m *metric) leave() {
	key := api.KeyOf(m.object)
	if l := m.loop; l != nil && l.metrics[key] == m {
		delete(l.metrics, key)
		delete(l.pending, key)
		l.tidy()
	}
	m.loop = nil
}

// forgetValue drops the stored value because it belongs to another query. The new generation
// ensures that the status is written.
func (m *metric) forgetValue() {
	m.written.Value, m.written.Normalized, m.written.ObservedAt, m.written.Clusters = nil, nil, nil, nil
	m.goodAt = time.Time{}
}

// observe returns the status after a reading, and whether it has changed. The time alone does not
// count: the same value again changes nothing.
func (m *metric) observe(reading source.Reading, normalize func(api.MetricSpec, float64) (float64, error), now time.Time) (next api.MetricStatus, changed bool) {
	next = m.written
	next.ObservedGeneration = m.object.Metadata.Generation
	next.Clusters = nil
	err := reading.Err
	if err == nil {
		var normalized float64
		if normalized, err = normalize(m.object.Spec, reading.Value); err == nil {
			next.Value, next.Normalized = &reading.Value, &normalized
			m.goodAt = now.UTC()
		} else {
			err = source.Invalid("%s", err)
		}
	}
	if err == nil {
		api.SetCondition(&next.Conditions, api.Condition{
			Type: api.ConditionAvailable, Status: api.ConditionTrue, Reason: api.ReasonAvailable,
		}, now)
		if reflect.DeepEqual(next, m.written) {
			return next, false
		}
		copied := m.goodAt
		next.ObservedAt = &copied
		return next, true
	}
	if next.Value != nil {
		// The range may have changed since.
		next.Normalized = nil
		if normalized, err := normalize(m.object.Spec, *next.Value); err == nil {
			next.Normalized = &normalized
		}
		if !m.goodAt.IsZero() {
			copied := m.goodAt
			next.ObservedAt = &copied
		}
	}
	api.SetCondition(&next.Conditions, unavailable(err), now)
	return next, !reflect.DeepEqual(next, m.written)
}

// unavailable returns the condition for an error.
func unavailable(err error) api.Condition {
	c := api.Condition{Type: api.ConditionAvailable, Status: api.ConditionFalse, Reason: api.ReasonUnreachableMetricsProvider}
	if e, ok := errors.AsType[*source.Error](err); ok {
		c.Reason, c.Message, c.Detail = e.Reason, e.Message, e.Detail
		return c
	}
	c.Message = "the provider cannot be read"
	c.Detail = source.OneLine(err.Error())
	return c
}
