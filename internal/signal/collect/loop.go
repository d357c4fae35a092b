package collect

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

const (
	// startWithin is the time over which the first readings after a restart are spread.
	startWithin = 2 * time.Second
	// jitter is the fraction by which an interval is randomly shortened, so that providers with the
	// same interval do not stay in step. It is never lengthened: a change is seen within one
	// interval.
	jitter = 0.1
)

// loop reads one provider, or represents one that does not exist but that metrics name. It has its
// own goroutine, so that a provider that hangs delays no other. Its fields are guarded by the
// collector's lock.
type loop struct {
	c      *Collector
	key    api.Key
	random *rand.Rand
	wake   chan struct{} // capacity of one

	provider  *api.MetricsProvider // nil = does not exist
	revision  int64
	written   api.MetricsProviderStatus
	kind      source.Type // of the provider
	source    source.Source
	sourceErr error // why there is no source

	metrics   map[api.Key]*metric
	pending   map[api.Key]map[string]bool // to be read immediately, for which clusters; nil = for all
	nextAt    time.Time                   // when all are read; zero = never
	interrupt context.CancelFunc          // cancels the current reading
	goodAt    time.Time                   // when the provider last responded
	retries   map[api.Key]*retry          // statuses that could not be stored
}

func newLoop(c *Collector, key api.Key) *loop {
	return &loop{
		c: c, key: key, random: rand.New(rand.NewPCG(seed(key), 0)), wake: make(chan struct{}, 1),
		metrics: map[api.Key]*metric{}, pending: map[api.Key]map[string]bool{}, retries: map[api.Key]*retry{},
	}
}

// setProvider sets a new, changed or (nil) deleted provider. A reading in progress is for the old
// one and is canceled.
func (l *loop) setProvider(p *api.MetricsProvider, revision int64) {
	l.close()
	l.provider, l.revision, l.kind, l.sourceErr = p, revision, source.Type{}, nil
	l.nextAt = time.Time{}
	if p != nil {
		t, ok := l.c.typeOf(p)
		if ok {
			l.kind = t
			l.source, l.sourceErr = t.New(p, l.c.Network)
		} else {
			l.sourceErr = source.Unreachable("this server has no provider type %q", string(p.Spec.Type))
		}
	} else {
		l.written, l.goodAt = api.MetricsProviderStatus{}, time.Time{}
	}
	if l.interrupt != nil {
		l.interrupt()
	}
}

func (l *loop) close() {
	if l.source != nil {
		l.source.Close()
		l.source = nil
	}
}

// openMetrics marks every metric of the provider as affected by a change of the provider.
func (l *loop) openMetrics(since, latest int64) {
	for key := range l.metrics {
		l.c.Tracker.Open(key, since, latest)
	}
	l.readAllAt(l.c.Now())
}

// read triggers an immediate reading of one metric.
func (l *loop) read(m *metric) {
	l.pending[api.KeyOf(m.object)] = nil
	l.notify()
}

// readAllAt schedules a reading of everything, unless an earlier one is scheduled.
func (l *loop) readAllAt(at time.Time) {
	if l.nextAt.IsZero() || at.Before(l.nextAt) {
		l.nextAt = at
		l.notify()
	}
}

func (l *loop) notify() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// phase returns the delay of the first reading of this provider after a restart.
func (l *loop) phase() time.Duration {
	within := startWithin
	if l.provider != nil {
		within = min(within, l.interval())
	}
	return time.Duration(rand.New(rand.NewPCG(seed(l.key), 1)).Float64() * float64(within))
}

// seed gives every provider its own schedule, the same in every run.
func seed(key api.Key) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(key.Path()))
	return hash.Sum64()
}

func (l *loop) interval() time.Duration {
	return max(l.provider.Spec.Interval.Or(15*time.Second), 10*time.Millisecond)
}

// tidy ends the loop when nothing names the provider anymore.
func (l *loop) tidy() {
	for key := range l.retries {
		if l.metrics[key] == nil && (key != l.key || l.provider == nil) {
			delete(l.retries, key)
		}
	}
	if l.provider != nil || len(l.metrics) > 0 || l.c.loops[l.key] != l {
		return
	}
	delete(l.c.loops, l.key)
	l.c.figures.forget(l.key)
	l.close()
	l.c.running.Stop(l.key)
}

// run reads whenever a reading is due, until ctx is done.
func (l *loop) run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		job, pause := l.take(ctx)
		if job != nil {
			if !l.c.Faults.Go(l.key.String(), func() { l.perform(ctx, job) }) {
				l.giveUp(job)
			}
			continue
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
		case <-l.wake:
		case <-timer.C:
		}
	}
	return nil
}

// take returns what to read now, or how long there is nothing to do.
func (l *loop) take(ctx context.Context) (*job, time.Duration) {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	now := l.c.Now()
	due := !l.nextAt.IsZero() && !now.Before(l.nextAt)
	if !due && len(l.pending) == 0 {
		if l.nextAt.IsZero() {
			return nil, time.Hour
		}
		return nil, l.nextAt.Sub(now)
	}
	j := &job{provider: l.provider, revision: l.revision, source: l.source, err: l.sourceErr, full: due}
	for key, m := range l.metrics {
		only, pending := l.pending[key]
		if due {
			only = nil
		}
		if due || pending {
			j.items = append(j.items, item{key, m, l.asks(m, only), l.perCluster(), m.revision, l.c.Tracker.Latest(key)})
		}
	}
	slices.SortFunc(j.items, func(a, b item) int { return a.key.Compare(b.key) })
	clear(l.pending)
	timeout := time.Hour
	if due {
		l.nextAt = time.Time{}
		j.latest = l.c.Tracker.Latest(l.key)
		if l.provider != nil && !l.kind.Constant {
			shortened := time.Duration(float64(l.interval()) * (1 - jitter*l.random.Float64()))
			l.nextAt = now.Add(shortened)
		}
	}
	if l.provider != nil {
		timeout = l.provider.Spec.Timeout.Or(20 * time.Second)
	}
	j.ctx, j.cancel = context.WithTimeout(ctx, timeout)
	l.interrupt = j.cancel
	return j, 0
}

// giveUp ends a reading that panicked. Waiters are released, and the next reading includes what
// this one was to read.
func (l *loop) giveUp(j *job) {
	for _, it := range j.items {
		l.c.Tracker.Close(it.key, it.latest, 0)
	}
	l.c.Tracker.Close(l.key, j.latest, 0)
}

// perform reads and stores the results.
func (l *loop) perform(ctx context.Context, j *job) {
	defer j.cancel()
	began := time.Now()
	ctx, span := l.c.Tracer.Begin(ctx, "collect metrics", began)
	defer span.End(nil)
	span.Object(string(l.key.Kind), l.key.Namespace, l.key.Name)
	span.Number(tracing.ObjectsKey, int64(len(j.items)))
	j.ctx = span.In(j.ctx)
	readings, err := j.read(l.key, l.c.Faults)
	if errors.Is(j.ctx.Err(), context.Canceled) {
		l.putBack(j) // the provider changed, or the server is stopping
		return
	}
	if j.source != nil {
		l.c.figures.seconds.WithLabelValues(string(j.provider.Spec.Type)).Observe(time.Since(began).Seconds())
	}
	writes, apply := l.judge(j, readings, err)
	revision := int64(0)
	if len(writes) > 0 {
		revision, err = l.c.Writer.WriteAll(ctx, writes)
		for _, key := range l.refused(ctx, writes, err) {
			delete(apply, key)
		}
	}
	unanswered := l.stored(apply)
	for _, it := range j.items {
		if !slices.Contains(unanswered, it.key) {
			l.c.Tracker.Close(it.key, it.latest, revision)
		}
	}
	if j.full && !slices.Contains(unanswered, l.key) {
		l.c.Tracker.Close(l.key, j.latest, revision)
	}
}

// putBack schedules the metrics of an interrupted reading again.
func (l *loop) putBack(j *job) {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	for _, it := range j.items {
		if it.metric.loop == l {
			l.pending[it.key] = nil
		}
	}
}
