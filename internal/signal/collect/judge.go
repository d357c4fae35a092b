package collect

import (
	"errors"
	"reflect"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/status"
)

// judge converts readings to statuses. It returns those that have changed and, by key, what to do
// once they are stored.
func (l *loop) judge(j *job, readings map[string]source.Reading, err error) (writes []status.Write, apply map[api.Key]func()) {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	now := l.c.Now()
	apply = map[api.Key]func(){}
	if err == nil {
		l.goodAt = now
	}
	for _, it := range j.items {
		m := it.metric
		if m.loop != l || m.revision != it.revision {
			continue // changed in the meantime; it is read again
		}
		var next api.MetricStatus
		var changed bool
		if !l.c.Faults.Go(it.key.String(), func() {
			if it.each {
				next, changed = l.observeEach(it, readings, err, now)
				return
			}
			next, changed = m.observe(l.naming(it.asks[0].reading(readings, err)), l.c.Normalize, now)
		}) {
			continue
		}
		if c := api.FindCondition(next.Conditions, api.ConditionAvailable); c.Status == api.ConditionFalse {
			l.c.figures.failures.WithLabelValues(l.key.Path(), c.Reason).Inc()
		}
		if !changed && l.retries[it.key] == nil {
			continue
		}
		if l.waits(it.key, now) {
			continue
		}
		object := *m.object
		object.Status = next
		writes = append(writes, status.Write{Object: &object, SpecRevision: it.revision})
		apply[it.key] = func() {
			if m.object.Metadata.Generation == next.ObservedGeneration {
				m.written = next
			}
		}
	}
	if j.full && l.provider != nil && l.revision == j.revision {
		next, changed := l.observe(err, now)
		if (changed || l.retries[l.key] != nil) && !l.waits(l.key, now) {
			object := *l.provider
			object.Status = next
			writes = append(writes, status.Write{Object: &object, SpecRevision: j.revision})
			apply[l.key] = func() {
				if l.provider != nil && l.provider.Metadata.UID == object.Metadata.UID {
					l.written = next
				}
			}
		}
	}
	return writes, apply
}

// naming adds the name of the provider to a reading that failed because of it.
func (l *loop) naming(reading source.Reading) source.Reading {
	if e, ok := errors.AsType[*source.Error](reading.Err); ok && e.Reason == api.ReasonUnreachableMetricsProvider {
		reading.Err = source.Unreachable("%s: %s", l.key, e.Message).Said(e.Detail)
	}
	return reading
}

// observe returns the provider's own status after a reading of everything.
func (l *loop) observe(err error, now time.Time) (next api.MetricsProviderStatus, changed bool) {
	next = l.written
	next.ObservedGeneration = l.provider.Metadata.Generation
	condition := api.Condition{Type: api.ConditionAvailable, Status: api.ConditionTrue, Reason: api.ReasonAvailable}
	if err != nil {
		condition = unavailable(err)
	}
	old := api.FindCondition(l.written.Conditions, api.ConditionAvailable)
	if old == nil || old.Status != condition.Status {
		l.c.Logger.Info("metrics provider", "provider", l.key.Path(), "available", err == nil, "message", condition.Message, "detail", condition.Detail)
	}
	api.SetCondition(&next.Conditions, condition, now)
	return next, !reflect.DeepEqual(next, l.written)
}
