package collect

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// putCluster adds or replaces a cluster, or removes it if o is nil. The queries of its metrics may
// depend on it.
func (c *Collector) putCluster(name string, o *api.Cluster, since, latest int64) {
	before := c.clusters[name]
	if o == nil {
		delete(c.clusters, name)
	} else {
		c.clusters[name] = o
	}
	if before != nil && o != nil && asksTheSame(before, o) {
		return
	}
	concerned := map[api.Key]bool{}
	for _, key := range metricsOf(before) {
		delete(c.listing[key], name)
		if len(c.listing[key]) == 0 {
			delete(c.listing, key)
		}
		concerned[key] = true
	}
	for _, key := range metricsOf(o) {
		if c.listing[key] == nil {
			c.listing[key] = map[string]bool{}
		}
		c.listing[key][name] = true
		concerned[key] = true
	}
	for key := range concerned {
		m := c.metrics[key]
		if m == nil || !m.loop.perCluster() {
			continue
		}
		if _, known := m.written.Clusters[name]; before == nil && known {
			continue // after a restart: included in the provider's next reading
		}
		c.Tracker.Open(key, since, latest)
		m.loop.readFor(m, name)
	}
}

// asksTheSame reports whether the queries of a cluster's metrics are the same in two versions of
// it.
func asksTheSame(a, b *api.Cluster) bool {
	return a.Metadata.UID == b.Metadata.UID && slices.Equal(metricsOf(a), metricsOf(b)) &&
		maps.Equal(a.Metadata.Labels, b.Metadata.Labels) && maps.Equal(a.Spec.Claims, b.Spec.Claims) &&
		a.Region() == b.Region()
}

func metricsOf(c *api.Cluster) []api.Key {
	if c == nil {
		return nil
	}
	keys := make([]api.Key, len(c.Spec.Metrics))
	for i, ref := range c.Spec.Metrics {
		keys[i] = ref.Key()
	}
	return keys
}

// ask is the query for a metric, for one cluster if each cluster has its own value.
type ask struct {
	cluster string
	query   string
	err     error // why there is no query
}

// perCluster reports whether each cluster has its own value.
func (l *loop) perCluster() bool { return l.provider != nil && l.provider.Spec.PerCluster() }

// readFor triggers an immediate reading of a metric for one cluster.
func (l *loop) readFor(m *metric, cluster string) {
	key := api.KeyOf(m.object)
	some, pending := l.pending[key]
	switch {
	case !pending:
		l.pending[key] = map[string]bool{cluster: true}
	case some != nil:
		some[cluster] = true
	}
	l.notify()
}

// asks returns the queries for a metric, for all clusters that list it or only for some.
func (l *loop) asks(m *metric, only map[string]bool) []ask {
	name := m.object.Spec.MetricsProvider.Metric
	if l.provider == nil || l.kind.Query == nil {
		return []ask{{query: name}}
	}
	if !l.perCluster() {
		query, err := l.kind.Query(&l.provider.Spec, name, nil)
		return []ask{{query: query, err: err}}
	}
	var list []ask
	for _, cluster := range slices.Sorted(maps.Keys(l.c.listing[api.KeyOf(m.object)])) {
		if only == nil || only[cluster] {
			query, err := l.kind.Query(&l.provider.Spec, name, l.c.clusters[cluster])
			list = append(list, ask{cluster, query, err})
		}
	}
	return list
}

// reading returns the reading for an ask.
func (a ask) reading(readings map[string]source.Reading, err error) source.Reading {
	if a.err != nil {
		return source.Reading{Err: source.Invalid("%s", a.err)}
	}
	return answerTo(a.query, readings, err)
}

// observeEach returns the status of a metric after a reading for some of the clusters that list it,
// and whether it has changed. An error for one cluster affects only that cluster.
func (l *loop) observeEach(it item, readings map[string]source.Reading, err error, now time.Time) (next api.MetricStatus, changed bool) {
	m := it.metric
	next = m.written
	next.ObservedGeneration = m.object.Metadata.Generation
	next.Value, next.Normalized, next.ObservedAt = nil, nil, nil
	next.Clusters = map[string]api.MetricReading{}
	listing := l.c.listing[it.key]
	for cluster := range listing {
		if old, ok := m.written.Clusters[cluster]; ok {
			next.Clusters[cluster] = old
		}
	}
	maps.DeleteFunc(m.each, func(cluster string, _ *clusterMetric) bool { return !listing[cluster] })
	for _, a := range it.asks {
		if !listing[a.cluster] {
			continue
		}
		known := m.each[a.cluster]
		if known == nil || known.query != "" && known.query != a.query {
			// The stored value, if any, belongs to another query.
			known = &clusterMetric{}
			delete(next.Clusters, a.cluster)
		}
		known.query = a.query
		m.each[a.cluster] = known
		next.Clusters[a.cluster] = m.observeOne(known, next.Clusters[a.cluster], l.naming(a.reading(readings, err)), l.c.Normalize, now)
	}
	failed := 0
	for _, reading := range next.Clusters {
		if reading.Reason != "" {
			failed++
		}
	}
	condition := api.Condition{Type: api.ConditionAvailable, Status: api.ConditionTrue, Reason: api.ReasonAvailable}
	switch {
	case failed > 0 && failed == len(next.Clusters) && err != nil, len(next.Clusters) == 0 && err != nil:
		condition = unavailable(l.naming(source.Reading{Err: err}).Err)
	case failed > 0 && failed == len(next.Clusters):
		condition.Status, condition.Reason = api.ConditionFalse, api.ReasonInvalidMetric
		condition.Message = "no cluster that lists it has a value; the status of each cluster says why"
	case failed > 0:
		condition.Message = fmt.Sprintf("%d of the %d clusters that list it have no value; the status of each cluster says why", failed, len(next.Clusters))
	}
	if len(next.Clusters) == 0 {
		next.Clusters = nil // same as after decoding
	}
	api.SetCondition(&next.Conditions, condition, now)
	return next, !reflect.DeepEqual(next, m.written)
}

// observeOne returns what is stored for one cluster after a reading.
func (m *metric) observeOne(known *clusterMetric, old api.MetricReading, reading source.Reading, normalize func(api.MetricSpec, float64) (float64, error), now time.Time) api.MetricReading {
	err := reading.Err
	if err == nil {
		if _, invalid := normalize(m.object.Spec, reading.Value); invalid != nil {
			err = source.Invalid("%s", invalid)
		}
	}
	if err == nil {
		known.goodAt = now.UTC()
		if old.Reason == "" && old.Value != nil && *old.Value == reading.Value {
			return old
		}
		at := known.goodAt
		return api.MetricReading{Value: &reading.Value, ObservedAt: &at}
	}
	condition := unavailable(err)
	next := api.MetricReading{Value: old.Value, ObservedAt: old.ObservedAt, Reason: condition.Reason, Message: condition.Message}
	if old.Value != nil && old.Reason == "" && !known.goodAt.IsZero() {
		at := known.goodAt
		next.ObservedAt = &at
	}
	return next
}
