package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

// Store makes decisions durable; *store.Store implements it.
type Store interface {
	Derive(ctx context.Context, writes []store.StatusWrite) (revision int64, err error)
}

// Codec encodes statuses; *store.Codec implements it.
type Codec interface {
	EncodeStatus(object api.Object) ([]byte, error)
}

// ReadConstant reads a metric of a provider whose values are in its spec. ok is false for every
// other provider.
type ReadConstant func(provider *api.MetricsProvider, metric *api.Metric, now time.Time) (status api.MetricStatus, ok bool)

// Options configures a Reconciler. Store, Codec and Fleet are required.
type Options struct {
	Store Store
	Codec Codec
	Fleet *fleet.Fleet
	// ReadConstant provides simulations with the values of static metrics. It may be nil.
	ReadConstant ReadConstant
	// Tracer makes traces of the passes. Nil = there are none.
	Tracer *tracing.Tracer
	// Logger receives errors. If nil, they are discarded.
	Logger *slog.Logger
	// Faults records panics. If nil, panics are not recorded.
	Faults *recovery.Recorder
	// Now is the clock. Default: time.Now. Its monotonic readings are not used.
	Now func() time.Time

	// Standby starts without leading: before Lead is called, and after it has ended, the reconciler
	// follows what another server decides, and writes nothing.
	Standby bool

	probe func(*basis, api.Key) // of the planners; only set by tests
}

// Reconciler keeps the decisions of a live fleet current. Run does the work; the other methods are
// safe for concurrent use.
type Reconciler struct {
	*published
	options Options
	logger  *slog.Logger
	now     func() time.Time
	metrics *metrics

	loop    *loop // of Run alone
	settled *settled
	traces  *passTraces
	ready   chan struct{} // closed after the first pass

	simulations chan struct{} // a token for each concurrent simulation
	reports     chan report
	commands    chan *command
}

// New returns a reconciler without decisions.
func New(options Options) *Reconciler {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	// Only the wall clock counts, as for the stored times that decisions are compared with. Two times
	// with a monotonic reading are compared by that instead, so that a pass would not notice that the
	// clock was set back since the last one.
	clock := options.Now
	options.Now = func() time.Time { return clock().Round(0) }
	r := &Reconciler{
		options: options, logger: options.Logger, now: options.Now, metrics: newMetrics(),
		published: newPublished(), settled: newSettled(), traces: &passTraces{tracer: options.Tracer}, ready: make(chan struct{}),
		simulations: make(chan struct{}, maxSimulations), reports: make(chan report), commands: make(chan *command),
	}
	r.loop = &loop{
		options: options, logger: r.logger, now: r.now, metrics: r.metrics,
		faults: options.Faults.Component("decisions"), started: r.now(),
		published: r.published, settled: r.settled, traces: r.traces, ready: sync.OnceFunc(func() { close(r.ready) }),
		reports: r.reports, commands: r.commands,
		quarantine: newQuarantine(), ahead: map[api.Key]struct{}{},
	}
	if !options.Standby {
		r.loop.command = &command{ctx: context.Background()}
	}
	r.loop.planner = r.loop.newPlanner(r.logger)
	r.show(r.loop.planner, r.loop.quarantine, nil)
	return r
}

// Run keeps decisions current until ctx is done. It returns early only if another server has taken
// over the store.
func (r *Reconciler) Run(ctx context.Context) error {
	select {
	case <-r.options.Fleet.Ready():
	case <-ctx.Done():
		return nil
	}
	return r.loop.run(ctx)
}

// Ready returns a channel that is closed when every object is known, and Explain, Observe and
// Simulate can be used. The resulting decisions may still have to be written.
func (r *Reconciler) Ready() <-chan struct{} { return r.ready }

// Settle waits until all decisions that follow from a revision of the store are durable and in the
// fleet. The error is that of ctx.
func (r *Reconciler) Settle(ctx context.Context, revision int64) error {
	within, span := tracing.Start(ctx, "decide")
	err := r.settled.wait(within, revision)
	if err == nil {
		r.traces.show(ctx, within, span, revision)
	}
	span.End(err)
	return err
}

// NextUnstored waits until Observe returns something else for objects although neither they nor the
// data they are observed with were written: they are left out because of a panic, their move is
// held, or no longer. It returns their keys; the error is that of ctx. It must not be called
// concurrently.
func (r *Reconciler) NextUnstored(ctx context.Context) ([]api.Key, error) {
	return r.unstored.Next(ctx) //nolint:wrapcheck // the caller's
}

// ErrNotFound says that there is no decided object with this name.
var ErrNotFound = errors.New("no such placement or workload")

// Explain explains the current decision of a placement or the binding of a workload.
func (r *Reconciler) Explain(key api.Key) (*api.Explanation, error) {
	s, now := r.current.Load(), r.now()
	if left := s.quarantined[key]; left != nil {
		return &api.Explanation{
			Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, At: now.UTC(),
			Summary: left.condition(key).Message, Candidates: []api.Candidate{},
		}, nil
	}
	known, ok := s.get(key)
	k := decidedAs(key.Kind)
	if !ok || k == nil {
		return nil, fmt.Errorf("%s: %w", key, ErrNotFound)
	}
	return k.explained(s, &known, now), nil
}

// Reserved reports whether decisions hold amounts on a cluster that its next capacity report
// releases.
func (r *Reconciler) Reserved(cluster string) bool {
	return r.current.Load().reserved.Waiting(cluster)
}

// Observe returns a copy of an object with its status completed by what decisions are based on:
// current metric values, amounts available on a cluster, and a condition if the object is left out
// because of a panic. If there is none of that, it returns the object itself.
func (r *Reconciler) Observe(object api.Object) api.Object {
	s := r.current.Load()
	return s.faulted(s.withMoveHeld(s.observe(object), r.now()))
}
