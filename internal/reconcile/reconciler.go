package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Store is where decisions are made durable; *store.Store is one.
type Store interface {
	Derive(ctx context.Context, writes []store.StatusWrite) (revision int64, err error)
}

// Codec writes a status as it is stored; *store.Codec is one.
type Codec interface {
	EncodeStatus(object api.Object) ([]byte, error)
}

// ReadConstant reads a metric of a provider whose values stand in its spec. ok
// is false for every other provider.
type ReadConstant func(provider *api.MetricsProvider, metric *api.Metric, now time.Time) (status api.MetricStatus, ok bool)

// Options configures a Reconciler. Store, Codec and Fleet are required.
type Options struct {
	Store Store
	Codec Codec
	Fleet *fleet.Fleet
	// ReadConstant lets simulations know the values of static metrics. Nil knows
	// none.
	ReadConstant ReadConstant
	// BindCluster stores the cloud that was chosen for a cluster, as it stands in
	// the status of the given copy. It is asked because the rest of that status
	// is not decided here but observed. ErrConflict says that the cluster has
	// changed since. Nil writes the status like every other.
	BindCluster func(ctx context.Context, decided *api.Cluster, specRevision int64) (revision int64, err error)
	// Logger receives what goes wrong. Nil discards it.
	Logger *slog.Logger
	// Now is the clock. Nil is time.Now.
	Now func() time.Time
}

// maxBatches is how many publications of the fleet are taken in before their
// decisions are written, so that a flood of changes cannot hold back decisions.
const maxBatches = 1000

// Reconciler keeps the decisions of a live fleet current. Run does the work; the
// other methods may be called from many goroutines.
type Reconciler struct {
	options Options
	logger  *slog.Logger
	now     func() time.Time
	metrics *metrics

	// mu guards the planner. Run alone writes it.
	mu      sync.RWMutex
	planner *planner

	// settled is guarded by settleMu, which is never held together with mu.
	settleMu sync.Mutex
	settled  int64
	changed  chan struct{} // closed and replaced when settled grows

	ready chan struct{} // closed after the first pass

	simulations chan struct{} // a token for each simulation that may run at once
	reports     chan report
}

// New returns a reconciler that has decided nothing yet.
func New(options Options) *Reconciler {
	r := &Reconciler{
		options: options, logger: options.Logger, now: options.Now,
		metrics: newMetrics(), changed: make(chan struct{}), ready: make(chan struct{}), simulations: make(chan struct{}, maxSimulations), reports: make(chan report),
	}
	if r.logger == nil {
		r.logger = slog.New(slog.DiscardHandler)
	}
	if r.now == nil {
		r.now = time.Now
	}
	r.planner = newPlanner(r.logger)
	r.planner.started = r.now()
	return r
}

// Run keeps decisions current until ctx ends. It returns early only when
// another server has taken over the store.
func (r *Reconciler) Run(ctx context.Context) error {
	select {
	case <-r.options.Fleet.Ready():
	case <-ctx.Done():
		return nil
	}
	subscription := r.options.Fleet.Subscribe(fleet.SubscribeOptions{Unbounded: true})
	// Taken before forward begins: from then on the subscription is its own.
	loaded := subscription.Snapshot()
	ctx, cancel := context.WithCancel(ctx)
	batches := make(chan fleet.Batch)
	var reading sync.WaitGroup
	reading.Go(func() { forward(ctx, subscription, batches) })
	defer reading.Wait()
	defer cancel()

	r.load(loaded)
	revision := loaded.Revision()
	unwritten := newUnwritten()
	var unanswered []report
	for first := true; ; first = false {
		writes, next := r.decide()
		if first {
			close(r.ready)
		}
		for _, w := range writes {
			unwritten.add(w)
		}
		if err := r.write(ctx, unwritten); err != nil {
			return err
		}
		r.metrics.unwritten(unwritten)
		if !unwritten.holds() {
			r.settle(revision)
			for _, report := range unanswered {
				report.done <- nil
			}
			unanswered = nil
		}
		if retry := unwritten.next(); !retry.IsZero() && (next.IsZero() || retry.Before(next)) {
			next = retry
		}
		switch batch, report := r.wait(ctx, batches, next); {
		case ctx.Err() != nil:
			return nil
		case batch != nil:
			revision = r.takeIn(*batch, batches)
		case report != nil:
			unanswered = append(unanswered, r.takeInReports(*report)...)
		}
	}
}

// Ready is closed when every object is known, and Explain, Observe and Simulate
// can answer. The decisions that follow may still have to be written.
func (r *Reconciler) Ready() <-chan struct{} { return r.ready }

// forward hands the fleet's changes to Run.
func forward(ctx context.Context, subscription *fleet.Subscription, batches chan<- fleet.Batch) {
	for {
		batch, err := subscription.Next(ctx)
		if err != nil {
			return // ctx has ended: an unbounded subscription has no other error
		}
		select {
		case batches <- batch:
		case <-ctx.Done():
			return
		}
	}
}

// wait returns the next change or report, or nothing when the instant has come.
func (r *Reconciler) wait(ctx context.Context, batches <-chan fleet.Batch, next time.Time) (*fleet.Batch, *report) {
	var alarm <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(max(next.Sub(r.now()), 0))
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case batch := <-batches:
		return &batch, nil
	case report := <-r.reports:
		return nil, &report
	case <-alarm:
	case <-ctx.Done():
	}
	return nil, nil
}

// load fills the planner with the picture it starts from.
func (r *Reconciler) load(snapshot *fleet.Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, info := range api.Kinds {
		for entry := range snapshot.All(info.Kind, "") {
			r.planner.put(entry.Object, entry.SpecRevision)
		}
	}
}

// takeIn gives the planner a batch and those that wait behind it, and returns
// the revision it is at then.
func (r *Reconciler) takeIn(batch fleet.Batch, more <-chan fleet.Batch) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := 1; ; n++ {
		for _, change := range batch.Changes {
			if change.New == nil {
				r.planner.remove(change.Key)
			} else {
				r.planner.put(change.New.Object, change.New.SpecRevision)
			}
		}
		if n == maxBatches {
			return batch.Revision
		}
		select {
		case batch = <-more:
		default:
			return batch.Revision
		}
	}
}

// decide makes one pass and returns what to write and when to come again.
func (r *Reconciler) decide() ([]write, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	begin := time.Now()
	r.metrics.queue.Set(float64(len(r.planner.stale) + len(r.planner.bindings.stale)))
	writes := r.planner.pass(r.now())
	r.metrics.passing.Observe(time.Since(begin).Seconds())
	r.metrics.placements.Set(float64(len(r.planner.placements)))
	r.metrics.workloads.Set(float64(len(r.planner.bindings.workloads)))
	return writes, r.planner.nextAt()
}

// write makes the decisions that are due durable and visible, and takes them out
// of those that are unwritten. The error is that of a store that belongs to
// somebody else.
func (r *Reconciler) write(ctx context.Context, unwritten *unwritten) error {
	batch := unwritten.due(r.now())
	if len(batch) == 0 {
		return nil
	}
	begin := time.Now()
	failed := map[api.Key]error{}
	derived := make([]store.StatusWrite, 0, len(batch))
	var bound []write
	for _, w := range batch {
		if w.key().Kind == api.KindCluster && r.options.BindCluster != nil {
			bound = append(bound, w)
			continue
		}
		value, err := r.options.Codec.EncodeStatus(w.result())
		if err != nil {
			failed[w.key()] = err
			continue
		}
		derived = append(derived, store.StatusWrite{Key: w.key(), Value: value, SpecRevision: w.specRevision})
	}
	revision, err := r.derive(ctx, derived, failed)
	if err != nil {
		return fmt.Errorf("stop deciding: %w", err)
	}
	revision = max(revision, r.bind(ctx, bound, failed))
	if ctx.Err() != nil { // stopping: what was not written is decided again after the start
		return nil //nolint:nilerr // the end of Run is not an error
	}
	if revision > 0 {
		if _, err := r.options.Fleet.WaitRevision(ctx, revision); err != nil {
			return nil //nolint:nilerr // ctx has ended
		}
	}
	logged := 0
	for _, w := range batch {
		err, refused := failed[w.key()]
		if !refused {
			unwritten.done(w.decision)
			r.metrics.decided(w)
			continue
		}
		unwritten.failed(w.decision, err, r.now())
		if logged++; logged <= maxNamed {
			r.logger.Error("a decision could not be written; the one before it stays, and it is tried again", "object", w.key().String(), "error", err)
		}
	}
	if len(failed) > 0 {
		r.metrics.failed.Inc()
	}
	if more := len(failed) - maxNamed; more > 0 {
		r.logger.Error("more decisions could not be written; they are tried again", "decisions", more)
	}
	r.metrics.writing.Observe(time.Since(begin).Seconds())
	return nil
}

// maxNamed is how many objects are named that cannot be written.
const maxNamed = 20

// derive writes statuses, and notes those that failed. A conflict is no failure:
// the spec has changed or gone, and that change is on its way here and leads to
// another decision. The error is that of a store that belongs to somebody else.
func (r *Reconciler) derive(ctx context.Context, writes []store.StatusWrite, failed map[api.Key]error) (int64, error) {
	if len(writes) == 0 {
		return 0, nil
	}
	revision, err := r.options.Store.Derive(ctx, writes)
	var some *store.DeriveError
	var conflict *store.ConflictError
	switch {
	case errors.Is(err, store.ErrFenced):
		// It is true of every write, whichever of them met it first.
		return 0, store.ErrFenced
	case errors.As(err, &some):
		maps.Copy(failed, some.Failed)
	case err != nil && !errors.As(err, &conflict):
		for _, w := range writes {
			failed[w.Key] = err
		}
	}
	return revision, nil
}

// maxBinds is how many clusters are told of their cloud at a time.
const maxBinds = 64

// bind stores the clouds that were chosen for clusters, each by itself, and notes
// those that failed.
func (r *Reconciler) bind(ctx context.Context, writes []write, failed map[api.Key]error) int64 {
	var mu sync.Mutex
	latest := int64(0)
	var group errgroup.Group
	group.SetLimit(maxBinds)
	for _, w := range writes {
		group.Go(func() error {
			decided, ok := w.result().(*api.Cluster)
			if !ok {
				return nil
			}
			revision, err := r.options.BindCluster(ctx, decided, w.specRevision)
			mu.Lock()
			defer mu.Unlock()
			latest = max(latest, revision)
			if err != nil && !errors.Is(err, ErrConflict) { // a conflict: as in derive
				failed[w.key()] = err
			}
			return nil
		})
	}
	_ = group.Wait() // has no errors
	return latest
}

// settle says that every decision that follows from a revision is visible.
func (r *Reconciler) settle(revision int64) {
	r.settleMu.Lock()
	defer r.settleMu.Unlock()
	if revision > r.settled {
		r.settled = revision
		close(r.changed)
		r.changed = make(chan struct{})
	}
}

// Settle waits until every decision that follows from a revision of the store
// is durable and in the fleet. The error is that of ctx.
func (r *Reconciler) Settle(ctx context.Context, revision int64) error {
	for {
		r.settleMu.Lock()
		settled, changed := r.settled, r.changed
		r.settleMu.Unlock()
		if settled >= revision {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for the decisions of revision %d: %w", revision, ctx.Err())
		}
	}
}

// ErrNotFound says that there is nothing of the name that is decided.
var ErrNotFound = errors.New("no such placement or workload")

// ErrConflict says that an object has changed since it was decided.
var ErrConflict = errors.New("the object has changed since it was decided")

// Explain says why the decision of a placement, or the binding of a workload, is
// what it is, as of now.
func (r *Reconciler) Explain(key api.Key) (*api.Explanation, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if w, ok := r.planner.bindings.workloads[key]; ok {
		return r.planner.bindings.explain(w, r.now()), nil
	}
	if h, g := r.planner.guest(key); g != nil {
		return h.explain(g, r.now()), nil
	}
	placed, ok := r.planner.placements[key]
	if !ok {
		return nil, fmt.Errorf("%s: %w", key, ErrNotFound)
	}
	return r.planner.explain(placed, r.now()).Render(), nil
}

// Observe returns a copy of an object with its status completed by what decisions
// are made on: the present metric values, and the amounts that are available on a
// cluster. An object that has nothing of that is returned as it is.
func (r *Reconciler) Observe(object api.Object) api.Object {
	switch object.(type) {
	case *api.Cluster, *api.Cloud, *api.OpenStackProject, *api.MagnumCluster:
	default:
		return object
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.planner.observe(object)
}
