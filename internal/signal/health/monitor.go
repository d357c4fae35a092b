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
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/heartbeat"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/netpolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/settle"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/status"
)

// ErrNotFound says that there is no cluster of that name.
var ErrNotFound = errors.New("there is no such cluster")

const (
	// maxProbe is the longest that a probe may take.
	maxProbe = 10 * time.Second
	// startWithin is the time over which the first probes after a restart are
	// spread.
	startWithin = 5 * time.Second
	// jitter is the part of an interval by which it is shortened at random.
	jitter = 0.1
	// overslept is how late a deadline may be noticed. Beyond it the process was
	// stopped, heartbeats could not come in, and their absence says nothing.
	overslept = 5 * time.Second
)

// Options of a Monitor.
type Options struct {
	// Writer stores what was observed.
	Writer status.Writer
	// Tracker learns which changes are answered.
	Tracker *settle.Tracker
	// Beats learns when clusters were last heard of. Default: the monitor alone does.
	Beats *heartbeat.Times
	// Reserved reports whether decisions hold amounts on a cluster that its next
	// capacity report frees. Default: always.
	Reserved func(cluster string) bool
	// Concurrency is how many probes run at a time. Clusters whose last probe
	// failed, and that may hang, have as many places of their own, so that they
	// do not keep others waiting. Default 64.
	Concurrency int
	// Network says where probes may go.
	Network *netpolicy.Policy
	// RoundTripper sends the probes. Default: over the network.
	RoundTripper http.RoundTripper
	// Faults is told of panics. Nil tells nobody.
	Faults *fault.Component
	// Logger. Default: discards.
	Logger *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Monitor watches clusters. Put and Remove tell it what there is, Heartbeat
// that a cluster is alive; Run does the rest.
type Monitor struct {
	Options
	client  *http.Client
	figures *figures
	started time.Time
	wake    chan struct{} // has room for one

	mu       sync.Mutex
	running  sync.WaitGroup
	clusters map[string]*cluster
	spots    map[string]spotObservation // by cluster
	queue    queue
	fast     lane // probes of clusters that answered
	slow     lane // probes of clusters that did not
	writes   lane
}

// New makes a Monitor that knows no clusters.
func New(options Options) *Monitor {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Beats == nil {
		options.Beats = &heartbeat.Times{}
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
	m.figures = newFigures(m)
	return m
}

// Collectors are the monitor's own figures.
func (m *Monitor) Collectors() []prometheus.Collector { return m.figures.collectors() }

// Put tells of a cluster as it is since a change that happened in the revisions
// from since to latest. Changes that leave the user-written part alone do
// nothing.
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
		delete(m.spots, o.Metadata.Name) // old when it is switched on again
	}
	c.takeSpot(m.spots[o.Metadata.Name], now)
	if loaded && c.unprobed && o.Status.State != "" {
		// Known from before a restart: its stored state holds, and the probes
		// come one after the other, not all at once.
		c.unprobed = false
		if c.check.mode == probed {
			c.probeAt = now.Add(time.Duration(rand.Float64() * float64(min(startWithin, c.check.interval))))
		}
	}
	if loaded && api.FindCondition(o.Status.Conditions, api.ConditionObserved) != nil {
		c.unobserved = false
	}
	dirty := c.dirty()
	// What the probe has no say in does not wait for it: it may hang.
	if dirty && (c.answered() || !reflect.DeepEqual(c.wanted.Taints, c.written.Taints)) {
		c.flushAt = now
	}
	if dirty || !c.answered() {
		c.latest = latest
		m.Tracker.Open(api.KeyOf(o), since, latest)
	}
	m.schedule(c)
}

// Remove tells that a cluster is gone.
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

// Run watches the clusters until ctx ends.
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

// schedule puts a cluster into the queue, at the time of its next task.
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

// tend starts every task that is due, and returns how long nothing else is.
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
		// One that panics is taken up again when it changes.
		err := fault.Confine(clusterKey(c.name), func() error { m.handle(ctx, c, now); return nil })
		if p, ok := errors.AsType[*fault.Panic](err); ok {
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

// dispatch runs a task as soon as its lane has a place. Only Run's goroutine
// calls it.
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

// attempt does something for a cluster. Where that panics it is done again after a
// pause, at the moment that again says.
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
