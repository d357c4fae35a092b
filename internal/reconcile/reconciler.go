package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/scheduler/terraform-provider-scheduler/internal/announce"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
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
	// Faults is told of panics. Nil tells nobody.
	Faults *fault.Recorder
	// Now is the clock. Nil is time.Now.
	Now func() time.Time

	// Standby begins without leading: until Lead is called, and after it has ended, the
	// reconciler follows what another server decides, and writes nothing.
	Standby bool

	probe func(*picture, api.Key) // of the planners; only tests set it
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

	// current is what readers read: how everything stood after the last pass.
	current atomic.Pointer[snapshot]

	planner *planner        // of Run alone
	damaged *fleet.Snapshot // the planner knows what is damaged in it; of Run alone

	// settled is guarded by settleMu.
	settleMu sync.Mutex
	settled  int64
	changed  chan struct{} // closed and replaced when settled grows

	ready     chan struct{} // closed after the first pass
	readyOnce sync.Once

	faults *fault.Component
	// lot, nextAt, released and unanswered belong to Run: what is left out, when the planner has to be called
	// again although nothing changed, objects that it is to be given again, and reports
	// of which what follows is not durable.
	lot        *lot
	nextAt     time.Time
	released   []*fleet.Entry
	unanswered []report
	started    time.Time
	// command and ahead belong to Run: whether and as what it leads, and what it
	// decided otherwise than the server that leads has so far.
	command *command
	ahead   map[api.Key]struct{}

	// unstored are the objects that readers see otherwise although nothing was written.
	unstored *announce.Set[api.Key]

	forks       forks
	simulations chan struct{} // a token for each simulation that may run at once
	reports     chan report
	commands    chan *command
}

// New returns a reconciler that has decided nothing yet.
func New(options Options) *Reconciler {
	r := &Reconciler{
		options: options, logger: options.Logger, now: options.Now,
		metrics: newMetrics(), changed: make(chan struct{}), ready: make(chan struct{}), simulations: make(chan struct{}, maxSimulations), reports: make(chan report), commands: make(chan *command),
		ahead: map[api.Key]struct{}{}, unstored: announce.NewSet[api.Key](),
	}
	if !options.Standby {
		r.command = &command{ctx: context.Background()}
	}
	if r.logger == nil {
		r.logger = slog.New(slog.DiscardHandler)
	}
	if r.now == nil {
		r.now = time.Now
	}
	r.started, r.faults, r.lot = r.now(), options.Faults.Component("decisions"), newLot()
	r.planner = r.newPlanner(r.logger)
	r.show()
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
	defer r.standDown()
	return r.faults.Supervise(ctx, func(ctx context.Context) error {
		for {
			err := r.session(ctx)
			if errors.Is(err, errStoodDown) {
				continue
			}
			panicked, ok := errors.AsType[*fault.Panic](err)
			if !ok {
				return err
			}
			if r.pauseAfter(panicked) {
				return panicked
			}
		}
	})
}

// session keeps decisions current from a picture of the fleet on. It ends with a
// *fault.Panic when the planner panicked: what that one knows may be half changed,
// and the next session begins anew.
func (r *Reconciler) session(ctx context.Context) error {
	subscription := r.options.Fleet.Subscribe(fleet.SubscribeOptions{Unbounded: true})
	// Taken before forward begins: from then on the subscription is its own.
	at := subscription.Snapshot()
	ctx, cancel := context.WithCancelCause(ctx)
	batches := make(chan fleet.Batch)
	var reading sync.WaitGroup
	reading.Go(func() {
		cancel(r.faults.Do("", func() error { forward(ctx, subscription, batches); return nil }))
	})
	defer reading.Wait()
	defer cancel(nil)

	if r.command.over() {
		r.standDown()
	}
	clear(r.ahead)
	select {
	case r.command = <-r.commands: // it can lead from the beginning
	default:
	}
	writes, err := r.begin(ctx, at)
	if ctx.Err() != nil {
		return ended(ctx)
	} else if err != nil {
		return err
	}
	if r.leads(at.Revision()) {
		r.beginLeading()
	}
	r.readyOnce.Do(func() { close(r.ready) })
	unwritten := newUnwritten()
	if again := r.unanswered; len(again) > 0 { // the planner that knew of them is no more
		r.unanswered = nil
		if err := r.takeInReports(again...); err != nil {
			return err
		}
	}
	written := int64(0) // what is stored of it is to be taken in before more is written
	for {
		leads := r.leads(at.Revision())
		for _, w := range writes {
			if leads {
				unwritten.add(w)
			} else {
				r.ahead[w.key()] = struct{}{}
			}
		}
		if written, err = r.write(ctx, unwritten); err != nil {
			return err
		}
		r.metrics.unwritten(unwritten)
		if !unwritten.waits() {
			r.settle(at.Revision())
			for _, report := range r.unanswered {
				report.done <- nil
			}
			r.unanswered = nil
		}
		var news news
		if at.Revision() < written {
			news = await(ctx, batches)
		} else {
			news = r.wait(ctx, batches, r.wake(unwritten, at.Revision()))
		}
		switch {
		case ctx.Err() != nil:
			return ended(ctx)
		case r.command.over():
			return errStoodDown
		case news.batch != nil:
			if at, err = r.takeIn(ctx, *news.batch, batches, written); err != nil {
				return err
			}
		case news.report != nil:
			if err := r.takeInReports(*news.report); err != nil {
				return err
			}
		case news.command != nil:
			r.command = news.command
		}
		if r.planner.following && r.leads(at.Revision()) {
			if err := r.takeCommand(at); err != nil {
				return err
			}
		}
		r.retry(ctx, at)
		if writes, err = r.decide(); err != nil {
			return err
		}
	}
}

// ended is why a session ends with its context: the panic of what it hears with,
// or nil.
func ended(ctx context.Context) error {
	if p, ok := errors.AsType[*fault.Panic](context.Cause(ctx)); ok {
		return p
	}
	return nil
}

// wake is when there is something to do although nothing has changed since a
// revision of the fleet.
func (r *Reconciler) wake(unwritten *unwritten, revision int64) time.Time {
	next := r.nextAt
	for _, at := range []time.Time{unwritten.next(r.now()), r.lot.next(revision)} {
		next = sooner(next, at)
	}
	return next
}

// pauseAfter takes in a panic of the planner, and reports whether to wait before
// the next session. Mostly the next one begins without what is to blame. A panic that
// does not come again from nothing is put up with a few times.
func (r *Reconciler) pauseAfter(p *fault.Panic) bool {
	suspect := r.planner.working
	if !r.lot.suspect(suspect, r.now()) {
		return false
	}
	snapshot := r.options.Fleet.Snapshot()
	if snapshot.Get(suspect) == nil || r.lot.has(suspect) {
		return true
	}
	r.park(suspect, p.Error(), snapshot)
	r.showLot()
	return false
}

// plan has the planner do something. The error is a *fault.Panic, after which it is
// of no use any more.
func (r *Reconciler) plan(do func(p *planner)) error {
	err := fault.Confine("", func() error { do(r.planner); return nil })
	if p, ok := errors.AsType[*fault.Panic](err); ok {
		p.Object = r.planner.working.String()
		r.faults.Note(p)
	}
	return err
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

// news is what Run has to do next; nothing where an instant has come.
type news struct {
	batch   *fleet.Batch
	report  *report
	command *command
}

// wait returns the next news, or none when the instant has come.
func (r *Reconciler) wait(ctx context.Context, batches <-chan fleet.Batch, next time.Time) news {
	var alarm <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(max(next.Sub(r.now()), 0))
		defer timer.Stop()
		alarm = timer.C
	}
	reports := r.reports
	if r.command == nil {
		reports = nil // they wait for whoever leads
	}
	select {
	case batch := <-batches:
		return news{batch: &batch}
	case report := <-reports:
		return news{report: &report}
	case command := <-r.commands:
		return news{command: command}
	case <-alarm:
	case <-r.command.done():
	case <-ctx.Done():
	}
	return news{}
}

// await returns the next batch as news, or none when ctx ends.
func await(ctx context.Context, batches <-chan fleet.Batch) news {
	select {
	case batch := <-batches:
		return news{batch: &batch}
	case <-ctx.Done():
		return news{}
	}
}

// takeIn gives the planner a batch, those behind it up to a revision that the fleet
// shows, and those that wait behind them. It returns the picture after them.
func (r *Reconciler) takeIn(ctx context.Context, batch fleet.Batch, more <-chan fleet.Batch, until int64) (at *fleet.Snapshot, err error) {
	err = r.plan(func(p *planner) {
		for n := 1; ; n++ {
			for _, change := range batch.Changes {
				switch {
				case r.lot.has(change.Key):
					if change.New == nil {
						p.takeBack(change.Key)
					}
					r.lot.changed(change)
					r.metrics.leftOut(r.lot)
				case change.New == nil:
					p.remove(change.Key)
				default:
					p.put(change.New.Object, change.New.SpecRevision)
					delete(r.ahead, change.Key) // what is decided now starts from there
				}
			}
			at = batch.Snapshot
			r.lose(p, at)
			if at.Revision() < until {
				next := await(ctx, more)
				if next.batch == nil {
					return
				}
				batch = *next.batch
				continue
			}
			if n >= maxBatches {
				return
			}
			select {
			case batch = <-more:
			default:
				return
			}
		}
	})
	return at, err
}

// lose tells the planner what it has to do without, if that has changed.
func (r *Reconciler) lose(p *planner, at *fleet.Snapshot) {
	if r.lot.moved || !at.SameDamage(r.damaged) {
		p.lose(r.lost(at))
	}
	r.damaged, r.lot.moved = at, false
}

// decide makes one pass and returns what to write.
func (r *Reconciler) decide() (writes []write, err error) {
	err = r.plan(func(p *planner) {
		begin := time.Now()
		r.lose(p, r.damaged)
		r.metrics.queue.Set(float64(p.queue.len()))
		for _, entry := range r.released {
			p.put(entry.Object, entry.SpecRevision)
		}
		writes = p.pass(r.now())
		r.passed(begin)
	})
	r.released = nil // where it panicked, the next session takes them in
	return writes, err
}

// show has readers see how everything stands now.
func (r *Reconciler) show() {
	s := r.planner.snapshot(r.current.Load())
	s.parked, s.taken = r.lot.freeze(), r.damaged
	r.forks.show(&r.current, s, r.planner.records.differing.take())
	r.unstored.Add(r.planner.otherwiseHeld(s)...)
	r.announceLot()
}

// showLot has readers see what is left out now. The planner may be of no use.
func (r *Reconciler) showLot() {
	s := *r.current.Load()
	s.parked = r.lot.freeze()
	r.current.Store(&s)
	r.announceLot()
}

// announceLot announces what is left out, or no longer is, once readers see it.
func (r *Reconciler) announceLot() {
	r.unstored.Add(slices.Collect(maps.Keys(r.lot.otherwise))...)
	clear(r.lot.otherwise)
}

// NextUnstored waits until Observe says something else of objects although neither they
// nor what they are observed with was written: that they are left out because of a panic,
// that their move is held back, or no longer. It returns their keys; the error is that of
// ctx. It has one caller at a time.
func (r *Reconciler) NextUnstored(ctx context.Context) ([]api.Key, error) {
	return r.unstored.Next(ctx) //nolint:wrapcheck // it is that of the caller
}

// passed notes a pass of the planner.
func (r *Reconciler) passed(begin time.Time) {
	r.show()
	r.nextAt = r.planner.nextAt()
	r.metrics.passing.Observe(time.Since(begin).Seconds())
	r.metrics.placements.Set(float64(len(r.planner.placer.placements)))
	r.metrics.workloads.Set(float64(len(r.planner.bindings.workloads)))
}

// write makes the decisions that are due next durable and visible, and takes them out
// of those that are unwritten. It returns the revision from which the fleet shows them, 0
// where nothing was written. The error is that of a store that belongs to somebody else.
func (r *Reconciler) write(ctx context.Context, unwritten *unwritten) (revision int64, err error) {
	batch := unwritten.due(r.now())
	if len(batch) == 0 {
		return 0, nil
	}
	begin := time.Now()
	failed := map[api.Key]error{}
	derived := make([]store.StatusWrite, 0, len(batch))
	var hosted []write
	for _, w := range batch {
		if w.key().Kind == api.KindCluster && r.options.BindCluster != nil {
			hosted = append(hosted, w)
			continue
		}
		var value []byte
		err := r.faults.Do(w.key().String(), func() (err error) {
			value, err = r.options.Codec.EncodeStatus(w.result())
			return err
		})
		if err != nil {
			failed[w.key()] = err
			continue
		}
		derived = append(derived, store.StatusWrite{Key: w.key(), Value: value, SpecRevision: w.specRevision})
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.command.ctx, cancel)() //nolint:contextcheck // the term ends it as well
	revision, err = r.derive(ctx, derived, failed)
	if err != nil && r.options.Standby {
		r.standDown()
		return 0, errStoodDown
	}
	if err != nil {
		return 0, fmt.Errorf("stop deciding: %w", err)
	}
	revision = max(revision, r.bind(ctx, hosted, failed))
	if ctx.Err() != nil { // stopping: what was not written is decided again after the start
		return 0, nil
	}
	if revision > 0 {
		if _, err := r.options.Fleet.WaitRevision(ctx, revision); err != nil {
			return 0, nil
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
			r.logger.Error("a decision could not be written; the previous one stays, and it is retried", "object", w.key().String(), "error", err)
		}
	}
	if len(failed) > 0 {
		r.metrics.failed.Inc()
	}
	if more := len(failed) - maxNamed; more > 0 {
		r.logger.Error("more decisions could not be written; they are retried", "decisions", more)
	}
	r.metrics.writing.Observe(time.Since(begin).Seconds())
	return revision, nil
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
			var revision int64
			err := r.faults.Do(w.key().String(), func() (err error) {
				revision, err = r.options.BindCluster(ctx, decided, w.specRevision)
				return err
			})
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
	s, now := r.current.Load(), r.now()
	if parked := s.parked[key]; parked != nil {
		return &api.Explanation{
			Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, At: now.UTC(),
			Summary: parked.condition(key).Message, Candidates: []api.Candidate{},
		}, nil
	}
	known, ok := s.get(key)
	k := decidedAs(key.Kind)
	if !ok || k == nil {
		return nil, fmt.Errorf("%s: %w", key, ErrNotFound)
	}
	return k.explained(s, &known, now), nil
}

// Reserved reports whether decisions hold amounts on a cluster that its next capacity
// report frees.
func (r *Reconciler) Reserved(cluster string) bool {
	return r.current.Load().reserved.Waiting(cluster)
}

// Observe returns a copy of an object with its status completed by what decisions
// are made on: the present metric values, and the amounts that are available on a
// cluster, and by a condition where the object is left out because of a panic. An
// object that has nothing of that is returned as it is.
func (r *Reconciler) Observe(object api.Object) api.Object {
	s := r.current.Load()
	return s.faulted(s.withMoveHeld(s.observe(object)))
}
