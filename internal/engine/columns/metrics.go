package columns

import (
	"maps"
	"math"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func (b *edit) changeProviders(changes map[api.Key]*api.MetricsProvider) {
	if len(changes) == 0 {
		return
	}
	b.providers = maps.Clone(b.providers)
	if b.providers == nil {
		b.providers = map[api.Key]*api.MetricsProvider{}
	}
	for key, provider := range changes {
		if provider == nil {
			delete(b.providers, key)
		} else {
			b.providers[key] = provider
		}
	}
	for id, state := range b.metrics {
		if state == nil || state.Metric == nil {
			continue
		}
		if _, ok := changes[state.Metric.ProviderKey()]; ok {
			b.stale[int32(id)] = true
		}
	}
}

func (b *edit) changeMetrics(changes map[api.Key]*api.Metric) {
	for key, metric := range changes {
		id := b.metricID(key)
		state := *b.metrics[id]
		if (state.Metric == nil) != (metric == nil) {
			b.delta.Fleet |= MetricNames
		}
		state.Metric = metric
		b.setMetric(id, &state)
		b.stale[id] = true
	}
}

// metricID returns the id of a metric, assigning one if necessary.
func (b *edit) metricID(key api.Key) int32 {
	// Most names belong to a single metric, and looking up a name is faster than a key.
	if ids := b.named[key.Name]; len(ids) == 1 && b.metrics[ids[0]].Key == key {
		return ids[0]
	}
	if id, ok := b.metricIDs[key]; ok {
		return id
	}
	b.cloneMetricIDs()
	b.cloneMetrics()
	var id int32
	if last := len(b.freeIDs) - 1; last >= 0 {
		id, b.freeIDs = b.freeIDs[last], b.freeIDs[:last]
	} else {
		id = int32(len(b.metrics))
		b.metrics = append(b.metrics, nil)
	}
	b.metrics[id] = &MetricState{Key: key}
	b.metricIDs[key] = id
	b.named[key.Name] = append(slices.Clip(b.named[key.Name]), id)
	b.stale[id] = true
	return id
}

// freeMetrics frees the ids of deleted metrics that no cluster lists. They are reused only from the
// next version on, so that an id means the same metric in two versions that are compared.
func (b *edit) freeMetrics() {
	touched := slices.AppendSeq(slices.Collect(maps.Keys(b.stale)), maps.Keys(b.listed))
	slices.Sort(touched)
	var freed []int32
	for _, id := range slices.Compact(touched) {
		state := b.metrics[id]
		if state.Metric != nil || state.Rows.Len() > 0 {
			continue
		}
		b.cloneMetricIDs()
		delete(b.metricIDs, state.Key)
		if rest := slices.DeleteFunc(slices.Clone(b.named[state.Key.Name]), func(other int32) bool { return other == id }); len(rest) > 0 {
			b.named[state.Key.Name] = rest
		} else {
			delete(b.named, state.Key.Name)
		}
		b.setMetric(id, nil)
		freed = append(freed, id)
	}
	b.freeIDs = append(slices.Clip(b.freeIDs), freed...)
}

func (b *edit) cloneMetricIDs() {
	if b.ownIDs {
		return
	}
	b.ownIDs = true
	b.metricIDs, b.named = maps.Clone(b.metricIDs), maps.Clone(b.named)
	if b.metricIDs == nil {
		b.metricIDs, b.named = map[api.Key]int32{}, map[string][]int32{}
	}
}

func (b *edit) cloneMetrics() {
	if !b.ownMetrics {
		b.ownMetrics = true
		b.metrics = slices.Clone(b.metrics)
	}
}

func (b *edit) setMetric(id int32, state *MetricState) {
	b.cloneMetrics()
	if b.metrics[id].unreadSomewhere() {
		b.unread--
	}
	if state.unreadSomewhere() {
		b.unread++
	}
	b.metrics[id] = state
}

// evaluateMetrics evaluates the metrics that changed or have become too old, and marks the clusters
// for which the result changed.
func (b *edit) evaluateMetrics() {
	if b.now.Before(b.old.now) {
		// The time went back, as it may in a simulation: a value that was too old may be usable.
		for id, state := range b.metrics {
			if state != nil {
				b.stale[int32(id)] = true
			}
		}
	}
	for _, id := range b.aging {
		if !b.now.Before(b.metrics[id].StaleAt) {
			b.stale[id] = true
		}
	}
	if len(b.stale) == 0 {
		return
	}
	aging := make([]int32, 0, len(b.aging))
	for _, id := range b.aging {
		if !b.stale[id] {
			aging = append(aging, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(b.stale)) {
		before := b.metrics[id]
		next := *before
		next.hasProvider, next.perCluster = false, false
		if next.Metric != nil {
			interval := api.DefaultProviderInterval.Or(0)
			provider, ok := b.providers[next.Metric.ProviderKey()]
			if ok {
				next.hasProvider, next.perCluster = true, provider.Spec.PerCluster()
				interval = provider.Spec.Interval.Or(interval)
			}
			next.maxAge = next.Metric.Spec.MaxAge.Or(maxAgeIntervals * min(interval, math.MaxInt64/maxAgeIntervals))
		}
		after := next.evaluate(b.now)
		b.setMetric(id, after)
		if !after.StaleAt.IsZero() {
			aging = append(aging, id)
		}
		var was *MetricState
		if int(id) < len(b.old.metrics) {
			was = b.old.metrics[id]
		}
		b.compareMetrics(was, after)
	}
	b.aging = aging
}

// compareMetrics marks the clusters for which the result of a metric differs from the previous
// version. was may be nil.
func (b *edit) compareMetrics(was, after *MetricState) {
	if was == nil {
		was = &MetricState{onFailure: api.FailureIgnore}
		b.changedRows(MetricValues, after.Rows)
	}
	if !was.Varies() && !after.Varies() {
		if was.differs(after) {
			b.changedRows(MetricValues, after.Rows)
		}
		if !was.failsLike(after) {
			b.changedRows(Failing, after.Rows)
		}
		return
	}
	after.Rows.Each(func(row int) {
		if b.rows[row] == nil {
			return
		}
		name := b.rows[row].cluster.Metadata.Name
		was, after := was.of(name), after.of(name)
		if was.differs(after) {
			b.changed(MetricValues, row)
		}
		if !was.failsLike(after) {
			b.changed(Failing, row)
		}
	})
}

// differs reports whether two states of a metric differ in a way that affects decisions.
func (s *MetricState) differs(other *MetricState) bool {
	return s.Usable != other.Usable || s.Normalized != other.Normalized || s.Raw != other.Raw || s.onFailure != other.onFailure
}

// MetricOf returns the state of a metric for the cluster in a row.
func (f *Fleet) MetricOf(row int, m RowMetric) *MetricState {
	if s := f.metrics[m.ID]; s.own == nil {
		return s // avoids the cache miss of reading the cluster
	}
	return f.metrics[m.ID].of(f.rows[row].cluster.Metadata.Name)
}

// scoreRows recomputes the weighted mean of every dirty row.
func (b *edit) scoreRows() {
	if b.dirty.Count() == 0 {
		return
	}
	slots := len(b.rows)
	if !b.ownRows {
		b.ownRows = true
		b.rows = slices.Clone(b.rows)
	}
	b.cloneBits(slots)
	b.cloneScore(slots)
	b.dirty.Each(func(at int) {
		r := b.rows[at]
		if r == nil {
			b.score[at] = 0
			return
		}
		if at < len(b.old.rows) && b.old.rows[at] == r {
			own := *r
			r = &own
			b.rows[at] = r
		}
		r.SumWeights, r.SumProducts = 0, 0
		failing := false
		for _, m := range r.Metrics {
			state := b.MetricOf(at, m)
			switch {
			case state.Usable:
				r.SumWeights += m.Weight
				// The conversion prevents fused multiply-add, so that all architectures give the
				// same bits.
				r.SumProducts += float64(m.Weight * state.Normalized)
			case state.Fails():
				failing = true
			}
		}
		scored := r.SumWeights > 0
		if b.failing.Has(at) != failing {
			b.failing.Assign(at, failing)
		}
		b.scored.Assign(at, scored)
		b.score[at] = 0
		if scored {
			b.score[at] = r.SumProducts / r.SumWeights
		}
	})
}

// MetricNamed returns the metric of a cluster that a name in an object of a namespace means: see
// api.MetricNamed.
func (f *Fleet) MetricNamed(namespace, name string, row int) (RowMetric, bool) {
	var found RowMetric
	best := 0
	for _, m := range f.rows[row].Metrics {
		if rank := api.NameRank(f.metrics[m.ID].Key, namespace, name); rank > best {
			found, best = m, rank
		}
	}
	return found, best > 0
}
