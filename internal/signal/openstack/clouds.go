// Package openstack determines the resources of OpenStack clouds per region and availability zone,
// and maintains the status of clouds, of which it is the only writer. It collects from clouds with
// credentials, and accepts pushed reports about the others; the same code is used by the external
// collector.
package openstack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/firstread"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/status"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
	"github.com/scheduler/terraform-provider-scheduler/internal/workers"
)

var (
	// ErrNotFound says that there is no cloud with this name.
	ErrNotFound = errors.New("there is no such cloud")
	// ErrCollected says that the server itself collects from the cloud, so that reports are
	// rejected.
	ErrCollected = errors.New("the server collects the capacity of the cloud itself, because it has the credentials")
	// ErrNoCredentials says that a cloud cannot be queried.
	ErrNoCredentials = errors.New("the cloud has no credentials")
)

// SequenceError says that a report does not follow the last accepted one.
type SequenceError struct {
	// Expected is the number that the collector's next report must have; 0 = it must be full.
	Expected int64
}

// Error implements error.
func (e *SequenceError) Error() string {
	if e.Expected == 0 {
		return "there is no previous report: send a full one"
	}
	return fmt.Sprintf("the report is out of sequence: send number %d or a full report", e.Expected)
}

// Options of Clouds.
type Options struct {
	// Writer stores the statuses.
	Writer status.Writer
	// Tracker is notified when changes have been processed.
	Tracker *firstread.Tracker
	// Concurrency is the number of regions read concurrently; those that failed last have as many
	// of their own. Default: 16.
	Concurrency int
	// Network is the policy for outbound connections.
	Network *addresspolicy.Policy
	// RoundTripper sends the requests. Default: the network.
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

// Clouds maintains the status of clouds. Put and Remove update the clouds, Report accepts reports;
// Run does the rest.
type Clouds struct {
	Options
	figures *metrics
	lanes   *lanes

	mu      sync.Mutex
	clouds  map[string]*cloud
	running *workers.Group[task]
}

// task is the work for a cloud: its collection, or a write of its status.
type task struct {
	cloud  string
	writes bool
}

// cloud is the state of one cloud. Its fields are guarded by the lock of Clouds, except writing.
type cloud struct {
	name     string
	object   *api.Cloud
	revision int64 // of the user-written part
	latest   int64 // change that the tracker waits for
	wanted   api.CloudStatus
	written  api.CloudStatus
	storedAt int64 // revision of written
	// doubtful says that a write failed since, which may have been stored all the same.
	doubtful bool
	// unanswered says that the change is processed only by the next collection.
	unanswered bool
	known      bool          // was collected before the server started
	collected  bool          // by the server itself
	changed    chan struct{} // closed at the next change of the user-written part
	gone       bool
	writing    chan struct{} // held by the writer of the status
	// begun is a report that is not complete yet; nil = none.
	begun *begun
}

// begun is the first part of a report.
type begun struct {
	report api.CloudReport // what has arrived, with the number of the last part
	first  int64           // number of the first part
	parts  int
}

// New returns a Clouds without clouds.
func New(options Options) *Clouds {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Concurrency <= 0 {
		options.Concurrency = 16
	}
	return &Clouds{Options: options, figures: newMetrics(), lanes: newLanes(options.Concurrency), running: workers.New(options.Faults, func(t task) string { return cloudKey(t.cloud) }), clouds: map[string]*cloud{}}
}

// Collectors returns the metrics about collections.
func (m *Clouds) Collectors() []prometheus.Collector { return m.figures.collectors() }

// Run collects until ctx is done.
func (m *Clouds) Run(ctx context.Context) error {
	return m.running.Run(ctx)
}

// Put adds or updates a cloud after a change in the revisions since to latest. Changes that do not
// affect the user-written part are ignored.
func (m *Clouds) Put(o *api.Cloud, specRevision, since, latest int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.clouds[o.Metadata.Name]
	if c != nil && c.revision == specRevision {
		return
	}
	if c != nil && c.object.Metadata.UID != o.Metadata.UID {
		m.drop(c)
		c = nil
	}
	first := c == nil
	if first {
		c = &cloud{name: o.Metadata.Name, wanted: o.Status, written: o.Status, changed: make(chan struct{}), writing: make(chan struct{}, 1)}
		m.clouds[c.name] = c
	} else {
		close(c.changed)
		c.changed = make(chan struct{})
	}
	sameAccess := !first && reflect.DeepEqual(c.object.Spec.OpenStack, o.Spec.OpenStack)
	c.object, c.revision = o, specRevision
	c.declare(m.Now())
	if !sameAccess {
		m.end(c)
		// Known from before a restart: the stored data is valid, and the collections run one after
		// another, not all at once.
		c.known = first && o.Status.ObservedGeneration == o.Metadata.Generation
		c.unanswered = o.Spec.OpenStack.HasCredentials() && !c.known
		if !o.Spec.OpenStack.HasCredentials() {
			m.figures.forget(c.name)
		}
	}
	if c.unanswered || c.dirty() {
		c.latest = latest
		m.Tracker.Open(api.KeyOf(o), since, latest)
	}
	m.begin(c)
}

// declare applies what depends on the user-written part only.
func (c *cloud) declare(now time.Time) {
	access := c.object.Spec.OpenStack
	if access.HasCredentials() {
		c.wanted.Collector = nil
	}
	if access != nil && !access.HasCredentials() && c.wanted.Collector == nil {
		api.SetCondition(&c.wanted.Conditions, api.Condition{
			Type: api.ConditionCollected, Status: api.ConditionUnknown, Reason: api.ReasonAwaitingCollector,
			Message: "the cloud has no credentials, and no collector has pushed its capacity",
		}, now)
	}
	if access != nil || c.written.ObservedGeneration != 0 {
		c.wanted.ObservedGeneration = c.object.Metadata.Generation
	}
}

// Remove removes a cloud.
func (m *Clouds) Remove(name string, latest int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Tracker.Close(api.Key{Kind: api.KindCloud, Name: name}, latest, 0)
	if c := m.clouds[name]; c != nil {
		m.drop(c)
		delete(m.clouds, name)
		m.figures.forget(name)
	}
}

func (m *Clouds) drop(c *cloud) {
	c.gone = true
	close(c.changed)
	m.end(c)
}

// begin starts what a cloud needs: its collection, or one write of its status.
func (m *Clouds) begin(c *cloud) {
	if !c.collected && c.object.Spec.OpenStack.HasCredentials() {
		c.collected = true
		collector := &collector{
			name: c.name, spec: c.object.Spec.OpenStack, network: m.Network, roundTripper: m.RoundTripper, now: m.Now, lanes: m.lanes, figures: m.figures, faults: m.Faults, tracer: m.Tracer, known: c.known,
			keep: func(ctx context.Context, change func(api.CloudStatus) api.CloudStatus, answered bool) {
				m.keep(ctx, c, change, answered)
			},
		}
		m.running.Start(task{cloud: c.name}, func(ctx context.Context) error { collector.run(ctx); return nil })
	}
	if c.dirty() {
		m.running.Start(task{c.name, true}, func(ctx context.Context) error { m.store(ctx, c); return nil })
	}
}

func (m *Clouds) end(c *cloud) {
	if c.collected {
		c.collected = false
		m.running.Stop(task{cloud: c.name})
	}
}

// keep applies and stores the result of a collection.
func (m *Clouds) keep(ctx context.Context, c *cloud, change func(api.CloudStatus) api.CloudStatus, answered bool) {
	if m.change(ctx, c, change, answered) {
		m.store(ctx, c)
	}
}

// change applies the result of a collection, and reports whether there is something to store.
func (m *Clouds) change(ctx context.Context, c *cloud, change func(api.CloudStatus) api.CloudStatus, answered bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil || c.gone {
		return false // collected with credentials that are no longer current
	}
	before := collectedReason(c.wanted)
	c.wanted = change(c.wanted)
	c.wanted.ObservedGeneration = c.object.Metadata.Generation
	if after := collectedReason(c.wanted); after != before {
		m.Logger.Info("cloud", "name", c.name, "collected", after)
	}
	c.unanswered = c.unanswered && !answered
	return c.dirty() || answered
}

func cloudKey(name string) string { return api.Key{Kind: api.KindCloud, Name: name}.String() }

func collectedReason(s api.CloudStatus) string {
	if condition := api.FindCondition(s.Conditions, api.ConditionCollected); condition != nil {
		return condition.Reason
	}
	return ""
}

// Report accepts the report of a collector. It returns once the report is durable, with the
// revision that shows it; changed is false if it contained no changes. ErrNotFound: there is no
// such cloud. ErrCollected: the server itself collects from it. *SequenceError: the report does not
// follow the last one.
func (m *Clouds) Report(ctx context.Context, name string, report api.CloudReport) (revision int64, changed bool, err error) {
	m.mu.Lock()
	c := m.clouds[name]
	if c == nil {
		m.mu.Unlock()
		return 0, false, fmt.Errorf("cloud %q: %w", name, ErrNotFound)
	}
	if c.object.Spec.OpenStack.HasCredentials() {
		m.mu.Unlock()
		return 0, false, fmt.Errorf("cloud %q: %w", name, ErrCollected)
	}
	last := c.wanted.Collector
	report, first, err := c.assemble(report)
	if err != nil || report.More {
		m.mu.Unlock()
		return 0, false, err
	}
	same := last != nil && last.Name == report.Collector
	follows := same && last.Sequence+1 == first
	switch {
	case same && last.Sequence == report.Sequence:
		// The response was lost; the report has been applied, and perhaps not stored yet.
		changed = c.dirty()
	case report.Full || report.Error != "" || follows:
		before := c.wanted
		before.Collector = nil
		c.wanted = apply(before, report, m.Now())
		changed = !reflect.DeepEqual(before, c.wanted)
		// An error contains no data: if it does not follow what is known, neither does the next
		// report.
		if c.wanted.Collector = last; report.Full || follows {
			c.wanted.Collector = &api.CollectorStatus{Name: report.Collector, Sequence: report.Sequence}
		}
		c.wanted.ObservedGeneration = c.object.Metadata.Generation
	default:
		m.mu.Unlock()
		wrong := &SequenceError{}
		if same {
			wrong.Expected = last.Sequence + 1
		}
		return 0, false, fmt.Errorf("cloud %q: %w", name, wrong)
	}
	m.mu.Unlock()
	revision, err = m.flush(ctx, c)
	return revision, changed, err
}

// assemble combines the parts of a report. It returns the complete report with the number of its
// first part or, if parts are missing, one with more set.
func (c *cloud) assemble(report api.CloudReport) (whole api.CloudReport, first int64, err error) {
	b := c.begun
	if b != nil && b.report.Collector == report.Collector {
		switch {
		case report.More && report.Sequence == b.report.Sequence:
			return report, 0, nil // the response was lost
		case !report.Full && report.Error == "" && report.Sequence == b.report.Sequence+1:
			c.begun = nil
			if b.parts++; b.parts > maxParts {
				return report, 0, api.FieldErrors{{Field: "more", Message: fmt.Sprintf("a report may have at most %d parts", maxParts)}}
			}
			b.report = joined(b.report, report.Regions)
			b.report.Sequence, b.report.More = report.Sequence, report.More
			if err := b.report.Validate().Err(); err != nil {
				return report, 0, err
			}
			if report.More {
				c.begun = b
			}
			return b.report, b.first, nil
		}
	}
	c.begun = nil
	if !report.More {
		return report, report.Sequence, nil
	}
	last := c.wanted.Collector
	if same := last != nil && last.Name == report.Collector; !report.Full && (!same || last.Sequence+1 != report.Sequence) {
		wrong := &SequenceError{}
		if same {
			wrong.Expected = last.Sequence + 1
		}
		return report, 0, fmt.Errorf("cloud %q: %w", c.name, wrong)
	}
	c.begun = &begun{report: report, first: report.Sequence, parts: 1}
	return report, report.Sequence, nil
}

// dirty reports whether the wanted status differs from the stored one, or may.
func (c *cloud) dirty() bool { return c.doubtful || !reflect.DeepEqual(c.wanted, c.written) }

// store writes the status of a cloud, and schedules a retry if that fails.
func (m *Clouds) store(ctx context.Context, c *cloud) {
	for retry := (status.Retry{}); ; {
		_, err := m.flush(ctx, c)
		if err == nil || errors.Is(err, ErrNotFound) || ctx.Err() != nil {
			return
		}
		m.Logger.Warn("the status of a cloud could not be stored; retrying", "cloud", c.name, "error", err)
		if now := m.Now(); !backoff.Wait(ctx, retry.Failed(now).Sub(now)) {
			return
		}
	}
}

// flush stores the wanted status and returns the revision that shows it.
func (m *Clouds) flush(ctx context.Context, c *cloud) (int64, error) {
	var (
		wanted   api.CloudStatus
		latest   int64
		answered bool
	)
	at, err := status.Store(ctx, m.Writer, c.writing, func() (status.Due, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if c.gone {
			return status.Due{}, fmt.Errorf("cloud %q: %w", c.name, ErrNotFound)
		}
		wanted, latest, answered = c.wanted, c.latest, !c.unanswered
		object := *c.object
		object.Status = wanted
		return status.Due{
			Write: status.Write{Object: &object, SpecRevision: c.revision}, Differs: c.dirty(), StoredAt: c.storedAt, Changed: c.changed,
		}, nil
	}, func(revision int64) {
		m.mu.Lock()
		defer m.mu.Unlock()
		c.written, c.storedAt, c.doubtful = wanted, revision, false
	}, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		c.doubtful = true
	})
	if err == nil && answered {
		m.Tracker.Close(api.Key{Kind: api.KindCloud, Name: c.name}, latest, at)
	}
	return at, err
}
