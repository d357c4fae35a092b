// Package health determines which clusters are online, from probes, heartbeats and
// observations of Kubernetes clusters. It is the only writer of that part of the
// clusters' status.
package health

import (
	"container/heap"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/lastseen"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/firstread"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/status"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

// ErrNotFound says that there is no cluster with this name.
var ErrNotFound = errors.New("there is no such cluster")

const (
	// maxProbe is the maximum timeout of a probe.
	maxProbe = 10 * time.Second
	// startWithin is the time over which the first probes after a restart are spread.
	startWithin = 5 * time.Second
	// jitter is the fraction by which an interval is randomly shortened.
	jitter = 0.1
	// overslept is the maximum delay with which a deadline is enforced. Beyond it the process was
	// suspended and could not receive heartbeats, so their absence means nothing.
	overslept = 5 * time.Second
)

// Options of a Monitor.
type Options struct {
	// Writer stores the statuses.
	Writer status.Writer
	// Tracker is notified when changes have been processed.
	Tracker *firstread.Tracker
	// Beats records when clusters last reported. Default: private to the monitor.
	Beats *lastseen.Times
	// Reserved reports whether decisions hold amounts on a cluster that its next capacity report
	// releases. Default: always.
	Reserved func(cluster string) bool
	// Concurrency is the number of concurrent probes. Clusters whose last probe failed, which may
	// time out, have as many of their own, so that they do not delay others. Default: 64.
	Concurrency int
	// Network is the policy for outbound connections.
	Network *addresspolicy.Policy
	// RoundTripper sends the probes. Default: the network.
	RoundTripper http.RoundTripper
	// Faults records panics. If nil, panics are not recorded.
	Faults *recovery.Component
	// Tracer makes traces of what is read. Nil = there are none.
	Tracer *tracing.Tracer
	// Logger. If nil, log messages are discarded.
	Logger *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Monitor monitors clusters. Put and Remove update the clusters, Heartbeat reports that one is
// alive; Run does the rest.
type Monitor struct {
	Options
	client  *http.Client
	figures *metrics
	started time.Time
	wake    chan struct{} // capacity of one

	mu       sync.Mutex
	running  sync.WaitGroup
	clusters map[string]*cluster
	spots    map[string]spotObservation // by cluster
	queue    queue
	fast     lane // probes of clusters that respond
	slow     lane // probes of clusters that do not
	writes   lane
}

// New returns a Monitor without clusters.
func New(options Options) *Monitor {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Beats == nil {
		options.Beats = &lastseen.Times{}
	}
	if options.Reserved == nil {
		options.Reserved = func(string) bool { return true }
	}
	if options.Concurrency <= 0 {
		options.Concurrency = 64
	}
	m := &Monitor{
		Options: options, started: options.Now(),
		client: outbound.New(options.Network, outbound.Options{MaxBody: 64 << 10, DisableKeepAlives: true, RoundTripper: options.RoundTripper}),
		wake:   make(chan struct{}, 1), clusters: map[string]*cluster{}, spots: map[string]spotObservation{},
		fast: lane{limit: options.Concurrency}, slow: lane{limit: options.Concurrency}, writes: lane{limit: 4 * options.Concurrency},
	}
	m.figures = newMetrics(m)
	return m
}

// Collectors returns the monitor's metrics.
func (m *Monitor) Collectors() []prometheus.Collector { return m.figures.collectors() }

// Put adds or updates a cluster after a change in the revisions since to latest. Changes that do
// not affect the user-written part are ignored.
func (m *Monitor) Put(o *api.Cluster, specRevision, since, latest int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.clusters[o.Metadata.Name]
	if c != nil && c.revision == specRevision {
		return
	}
	if c != nil && c.object.Metadata.UID != o.Metadata.UID {
		m.drop(c)
		c = nil
	}
	now := m.Now()
	if c == nil {
		c = adopt(o)
		c.early = o.Metadata.CreatedAt != nil && o.Metadata.CreatedAt.Before(m.started)
		m.clusters[o.Metadata.Name] = c
	} else {
		close(c.changed)
		c.changed = make(chan struct{})
	}
	loaded := c.revision == 0 && o.Status.ObservedGeneration == o.Metadata.Generation
	c.update(o, specRevision, now)
	if !o.SpotEnabled() {
		delete(m.spots, o.Metadata.Name) // outdated when spot is enabled again
	}
	c.takeSpot(m.spots[o.Metadata.Name], now)
	if loaded && c.unprobed && o.Status.State != "" {
		// Known from before a restart: its stored state is valid, and the probes run one after
		// another, not all at once.
		c.unprobed = false
		if c.check.mode == probed {
			c.probeAt = now.Add(time.Duration(rand.Float64() * float64(min(startWithin, c.check.interval))))
		}
	}
	if loaded && api.FindCondition(o.Status.Conditions, api.ConditionObserved) != nil {
		c.unobserved = false
	}
	dirty := c.dirty()
	// What does not depend on the probe does not wait for it, because it may hang.
	if dirty && (c.answered() || !reflect.DeepEqual(c.wanted.Taints, c.written.Taints)) {
		c.flushAt = now
	}
	if dirty || !c.answered() {
		c.latest = latest
		m.Tracker.Open(api.KeyOf(o), since, latest)
	}
	m.schedule(c)
}

// Remove removes a cluster.
func (m *Monitor) Remove(name string, latest int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Tracker.Close(api.Key{Kind: api.KindCluster, Name: name}, latest, 0)
	if c := m.clusters[name]; c != nil {
		m.drop(c)
		delete(m.clusters, name)
	}
	delete(m.spots, name)
	m.Beats.Forget(name)
}

func (m *Monitor) drop(c *cluster) {
	c.gone = true
	close(c.changed)
	if c.interrupt != nil {
		c.interrupt()
	}
	if c.index >= 0 {
		heap.Remove(&m.queue, c.index)
	}
}

// Run monitors the clusters until ctx is done.
func (m *Monitor) Run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		timer.Reset(m.tend(ctx))
		select {
		case <-ctx.Done():
		case <-m.wake:
		case <-timer.C:
		}
	}
	m.running.Wait()
	m.client.CloseIdleConnections()
	return nil
}

// schedule queues a cluster at the time of its next task.
func (m *Monitor) schedule(c *cluster) {
	if c.gone {
		return
	}
	c.due = c.next()
	switch {
	case c.due.IsZero():
		if c.index >= 0 {
			heap.Remove(&m.queue, c.index)
		}
	case c.index >= 0:
		heap.Fix(&m.queue, c.index)
	default:
		heap.Push(&m.queue, c)
	}
	if c.index == 0 {
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
}

// tend starts all due tasks, and returns how long nothing else is due.
func (m *Monitor) tend(ctx context.Context) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.Now()
	for len(m.queue) > 0 {
		c := m.queue[0]
		if wait := c.due.Sub(now); wait > 0 {
			return wait
		}
		heap.Pop(&m.queue)
		// After a panic, the cluster is handled again when it changes.
		err := recovery.Confine(clusterKey(c.name), func() error { m.handle(ctx, c, now); return nil })
		if p, ok := errors.AsType[*recovery.Panic](err); ok {
			m.Faults.Note(p)
		}
	}
	return time.Hour
}

func isDue(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// handle starts what is due for one cluster.
func (m *Monitor) handle(ctx context.Context, c *cluster, now time.Time) {
	if isDue(c.deadline, now) {
		late := now.Sub(c.deadline)
		c.deadline = time.Time{}
		switch {
		case late > overslept:
			c.deadline = now.Add(c.check.grace())
		case c.health.silent().state != c.health.state:
			c.become(c.health.silent(), reasonSilent, "no heartbeat for "+c.check.grace().String(), now)
			m.Logger.Info("cluster", "name", c.name, "state", c.health.state, "reason", reasonSilent)
			c.flushAt = now
		}
	}
	if isDue(c.probeAt, now) {
		// The probe sets the time of the next one.
		c.probeAt = time.Time{}
		l := &m.fast
		if c.health.failures > 0 || c.health.state == api.StateOffline {
			l = &m.slow
		}
		m.dispatch(ctx, l, func() { m.attempt(c, &c.probeAt, func() { m.probe(ctx, c) }) })
	}
	if isDue(c.flushAt, now) {
		c.flushAt = time.Time{}
		m.dispatch(ctx, &m.writes, func() { m.attempt(c, &c.flushAt, func() { m.store(ctx, c) }) })
	}
	m.schedule(c)
}

// dispatch runs a task as soon as its lane has capacity. It is only called by Run's goroutine.
func (m *Monitor) dispatch(ctx context.Context, l *lane, task func()) {
	if l.running == l.limit {
		l.waiting = append(l.waiting, task)
		return
	}
	l.running++
	m.running.Go(func() {
		for task != nil {
			task()
			task = m.nextTask(ctx, l)
		}
	})
}

func (m *Monitor) nextTask(ctx context.Context, l *lane) func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(l.waiting) == 0 || ctx.Err() != nil {
		l.running--
		return nil
	}
	task := l.waiting[0]
	l.waiting[0] = nil
	l.waiting = l.waiting[1:]
	return task
}

func clusterKey(name string) string { return api.Key{Kind: api.KindCluster, Name: name}.String() }

// attempt runs a task for a cluster. After a panic, it is retried after a delay, at the time in
// again.
func (m *Monitor) attempt(c *cluster, again *time.Time, task func()) {
	if m.Faults.Go(clusterKey(c.name), task) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c.interrupt = nil
	*again = c.retry.Failed(m.Now())
	m.schedule(c)
}
