// Package collect maintains the status of metrics and metrics providers: it reads every provider at
// its interval, and immediately when the provider or one of its metrics changes, and stores what
// has changed.
package collect

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/firstread"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/status"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
	"github.com/scheduler/terraform-provider-scheduler/internal/workers"
)

// Writer stores statuses.
type Writer interface {
	// WriteAll stores them and returns the revision. A *status.StaleError and a
	// *status.FailedError, or both joined, say which ones were left out; all others are stored.
	// After any other error, some may not be stored.
	WriteAll(ctx context.Context, writes []status.Write) (revision int64, err error)
}

// Options of a Collector.
type Options struct {
	// Types are the provider types.
	Types []source.Type
	// Network is the policy for outbound connections.
	Network *addresspolicy.Policy
	// Writer stores the statuses.
	Writer Writer
	// Tracker is notified when changes have been processed.
	Tracker *firstread.Tracker
	// Normalize validates a raw value and maps it to 0 ... 1.
	Normalize func(spec api.MetricSpec, raw float64) (float64, error)
	// Tracer makes traces of the readings. Nil = there are none.
	Tracer *tracing.Tracer
	// Logger. If nil, log messages are discarded.
	Logger *slog.Logger
	// Faults records panics. If nil, panics are not recorded.
	Faults *recovery.Component
	// Now is the clock of written times. Default: time.Now.
	Now func() time.Time
}

// Collector reads metrics providers. Put and Remove update the objects; Run does the work.
type Collector struct {
	Options
	figures *metrics

	running *workers.Group[api.Key] // the loops

	mu      sync.Mutex
	loops   map[api.Key]*loop // by provider, including missing providers that metrics name
	metrics map[api.Key]*metric

	clusters map[string]*api.Cluster
	listing  map[api.Key]map[string]bool // clusters by metric
}

// New returns a Collector without objects.
func New(options Options) *Collector {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Collector{
		Options: options, figures: newMetrics(), running: workers.New(options.Faults, api.Key.String), loops: map[api.Key]*loop{}, metrics: map[api.Key]*metric{},
		clusters: map[string]*api.Cluster{}, listing: map[api.Key]map[string]bool{},
	}
}

// Run reads until ctx is done, and returns when all readings have ended.
func (c *Collector) Run(ctx context.Context) error {
	err := c.running.Run(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.loops {
		l.close()
	}
	return err
}

// Collectors returns the collector's metrics.
func (c *Collector) Collectors() []prometheus.Collector {
	return append(c.figures.collectors(), ages{c})
}

// Put adds or updates a metric, provider or cluster after a change in the revisions since to
// latest. Objects of other kinds, and changes that do not affect the user-written part, are
// ignored.
func (c *Collector) Put(object api.Object, specRevision, since, latest int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch o := object.(type) {
	case *api.MetricsProvider:
		c.putProvider(o, specRevision, since, latest)
	case *api.Metric:
		c.putMetric(o, specRevision, since, latest)
	case *api.Cluster:
		c.putCluster(o.Metadata.Name, o, since, latest)
	}
}

// Remove removes an object.
func (c *Collector) Remove(key api.Key, since, latest int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if key.Kind == api.KindCluster {
		c.putCluster(key.Name, nil, since, latest)
		return
	}
	c.Tracker.Close(key, latest, 0)
	if l := c.loops[key]; l != nil && l.provider != nil {
		l.setProvider(nil, 0)
		l.openMetrics(since, latest)
		l.tidy()
	}
	if m := c.metrics[key]; m != nil {
		delete(c.metrics, key)
		m.leave()
	}
}

func (c *Collector) putProvider(p *api.MetricsProvider, revision, since, latest int64) {
	key := api.KeyOf(p)
	l := c.loop(key)
	if l.provider != nil && l.revision == revision {
		return
	}
	same := l.provider != nil && l.provider.Metadata.UID == p.Metadata.UID && l.provider.Metadata.Generation == p.Metadata.Generation
	known := l.provider != nil && l.provider.Metadata.UID == p.Metadata.UID
	if same {
		l.provider, l.revision = p, revision
		l.readAllAt(c.Now())
		return
	}
	if !known {
		l.written = p.Status
	}
	l.setProvider(p, revision)
	if !known && answered(p.Metadata, p.Status.ObservedGeneration, p.Status.Conditions) {
		// Known from before a restart: the stored statuses are valid, and the providers are read
		// one after another, not all at once.
		l.readAllAt(c.Now().Add(l.phase()))
		return
	}
	c.Tracker.Open(key, since, latest)
	l.openMetrics(since, latest)
}

func (c *Collector) putMetric(o *api.Metric, revision, since, latest int64) {
	key := api.KeyOf(o)
	m := c.metrics[key]
	if m != nil && m.revision == revision {
		return
	}
	if m == nil || m.object.Metadata.UID != o.Metadata.UID {
		if m != nil {
			m.leave()
		}
		m = newMetric(o, c.Now())
		c.metrics[key] = m
	} else if m.object.Spec.MetricsProvider != o.Spec.MetricsProvider {
		m.forgetValue()
	}
	same := m.loop != nil && m.object.Metadata.Generation == o.Metadata.Generation
	m.object, m.revision = o, revision
	if same {
		// A write in progress is rejected because of the new revision.
		m.loop.read(m)
		return
	}
	if l := c.loop(o.ProviderKey()); m.loop != l {
		if m.loop != nil {
			m.leave()
		}
		m.loop = l
		l.metrics[key] = m
	}
	if answered(o.Metadata, o.Status.ObservedGeneration, o.Status.Conditions) {
		// As above: included in the provider's next reading.
		m.loop.readAllAt(c.Now().Add(m.loop.phase()))
		return
	}
	c.Tracker.Open(key, since, latest)
	m.loop.read(m)
}

// answered reports whether a stored status is for the current generation.
func answered(meta api.Metadata, observed int64, conditions []api.Condition) bool {
	return observed == meta.Generation && api.FindCondition(conditions, api.ConditionAvailable) != nil
}

// loop returns the loop of a provider, creating it if necessary.
func (c *Collector) loop(key api.Key) *loop {
	l := c.loops[key]
	if l == nil {
		l = newLoop(c, key)
		c.loops[key] = l
		c.running.Start(key, l.run)
	}
	return l
}

func (c *Collector) typeOf(p *api.MetricsProvider) (source.Type, bool) {
	for _, t := range c.Types {
		if t.Name == p.Spec.Type {
			return t, true
		}
	}
	return source.Type{}, false
}
