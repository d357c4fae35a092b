package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
)

// loop keeps the decisions of a live fleet current: it takes in what changed, has the
// planner make a pass, and has what differs written. Run alone has it.
type loop struct {
	options Options
	logger  *slog.Logger
	now     func() time.Time
	metrics *metrics
	faults  *recovery.Component
	started time.Time

	published *published
	settled   *settled
	traces    *passTraces
	ready     func() // called after the first pass
	reports   <-chan report
	commands  <-chan *command

	planner    *planner
	damaged    *fleet.Snapshot // the planner knows what is damaged in it
	quarantine *quarantine     // what is left out
	nextAt     time.Time       // when the planner has to be called again although nothing changed
	// released are objects that the planner is to be given again.
	released []*fleet.Entry
	// unanswered are reports of which what follows is not durable.
	unanswered []report
	// command says whether and as what it leads, and ahead what it decided otherwise than
	// the server that leads has so far.
	command *command
	ahead   map[api.Key]struct{}
}

// maxBatches is how many publications of the fleet are applied before decisions are written, so
// that a flood of changes cannot delay decisions.
const maxBatches = 1000

// run keeps decisions current until ctx ends; see Reconciler.Run.
func (r *loop) run(ctx context.Context) error {
	defer r.standDown()
	return r.faults.Supervise(ctx, func(ctx context.Context) error {
		for {
			err := r.session(ctx)
			if errors.Is(err, errStoodDown) {
				continue
			}
			panicked, ok := errors.AsType[*recovery.Panic](err)
			if !ok {
				return err
			}
			if r.pauseAfter(panicked) {
				return panicked
			}
		}
	})
}

// session keeps decisions current, starting from a snapshot of the fleet. It ends with a
// *recovery.Panic when the planner panicked: its state may be inconsistent, and the next session
// starts from scratch.
func (r *loop) session(ctx context.Context) error {
	subscription := r.options.Fleet.Subscribe(fleet.SubscribeOptions{Unbounded: true})
	// Read it before forward starts, which then owns the subscription.
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
	r.ready()
	unwritten := newUnwritten()
	if again := r.unanswered; len(again) > 0 { // the planner that knew of them is gone
		r.unanswered = nil
		if err := r.takeInReports(again...); err != nil {
			return err
		}
	}
	written := int64(0) // the revision that must be applied before more is written
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
			r.traces.ended(ctx, at.Revision(), leads) // before somebody who has waited asks for it
			r.settled.reach(at.Revision())
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

// ended returns why a session ended with its context: the panic that canceled it, or nil.
func ended(ctx context.Context) error {
	if p, ok := errors.AsType[*recovery.Panic](context.Cause(ctx)); ok {
		return p
	}
	return nil
}

// wake returns when there is something to do without a change since a revision of the fleet.
func (r *loop) wake(unwritten *unwritten, revision int64) time.Time {
	next := r.nextAt
	for _, at := range []time.Time{unwritten.next(r.now()), r.quarantine.next(revision)} {
		next = sooner(next, at)
	}
	return next
}

// pauseAfter handles a panic of the planner, and reports whether to wait before the next session.
// Usually the next session starts without the objects to blame. A panic that is not reproducible is
// tolerated a few times.
func (r *loop) pauseAfter(p *recovery.Panic) bool {
	suspect := r.planner.working
	if !r.quarantine.suspect(suspect, r.now()) {
		return false
	}
	snapshot := r.options.Fleet.Snapshot()
	if snapshot.Get(suspect) == nil || r.quarantine.has(suspect) {
		return true
	}
	r.quarantineObject(suspect, p.Error(), snapshot)
	r.published.showQuarantine(r.quarantine)
	return false
}

// plan calls do with the planner. The error is a *recovery.Panic, after which the planner must not be
// used.
func (r *loop) plan(do func(p *planner)) error {
	err := recovery.Confine("", func() error { do(r.planner); return nil })
	if p, ok := errors.AsType[*recovery.Panic](err); ok {
		p.Object = r.planner.working.String()
		r.faults.Note(p)
	}
	return err
}

// forward passes the fleet's changes to Run.
func forward(ctx context.Context, subscription *fleet.Subscription, batches chan<- fleet.Batch) {
	for {
		batch, err := subscription.Next(ctx)
		if err != nil {
			return // ctx is done: an unbounded subscription returns no other error
		}
		select {
		case batches <- batch:
		case <-ctx.Done():
			return
		}
	}
}

// news is what Run must do next; empty if the next time has come.
type news struct {
	batch   *fleet.Batch
	report  *report
	command *command
}

// wait returns the next news, or none when the time has come.
func (r *loop) wait(ctx context.Context, batches <-chan fleet.Batch, next time.Time) news {
	var alarm <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(max(next.Sub(r.now()), 0))
		defer timer.Stop()
		alarm = timer.C
	}
	reports := r.reports
	if r.command == nil {
		reports = nil // reports are kept for the leader
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

// await returns the next batch as news, or none when ctx is done.
func await(ctx context.Context, batches <-chan fleet.Batch) news {
	select {
	case batch := <-batches:
		return news{batch: &batch}
	case <-ctx.Done():
		return news{}
	}
}

// takeIn passes a batch to the planner, further ones up to a revision that the fleet shows, and
// those already queued. It returns the snapshot after them.
func (r *loop) takeIn(ctx context.Context, batch fleet.Batch, more <-chan fleet.Batch, until int64) (at *fleet.Snapshot, err error) {
	err = r.plan(func(p *planner) {
		for n := 1; ; n++ {
			for _, change := range batch.Changes {
				switch {
				case r.quarantine.has(change.Key):
					if change.New == nil {
						p.readmit(change.Key)
					}
					r.quarantine.changed(change)
					r.metrics.leftOut(r.quarantine)
				case change.New == nil:
					p.remove(change.Key)
				default:
					p.putEntry(change.New)
					delete(r.ahead, change.Key) // the next decision starts from there
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

// lose passes the lost objects to the planner, if they have changed.
func (r *loop) lose(p *planner, at *fleet.Snapshot) {
	if r.quarantine.moved || !at.SameDamage(r.damaged) {
		p.lose(r.lost(at))
	}
	r.damaged, r.quarantine.moved = at, false
}

// decide makes one pass and returns what to write.
func (r *loop) decide() (writes []write, err error) {
	err = r.plan(func(p *planner) {
		begin := time.Now()
		r.lose(p, r.damaged)
		r.metrics.queue.Set(float64(p.queue.len()))
		for _, entry := range r.released {
			p.putEntry(entry)
		}
		writes = p.pass(r.now())
		r.passed(begin)
	})
	r.released = nil // after a panic, the next session applies them
	return writes, err
}

// passed records a pass of the planner in the metrics.
func (r *loop) passed(begin time.Time) {
	r.published.show(r.planner, r.quarantine, r.damaged)
	r.nextAt = r.planner.nextAt()
	r.traces.planned(begin)
	r.metrics.passing.Observe(time.Since(begin).Seconds())
	r.metrics.placements.Set(float64(len(r.planner.placer.placements)))
	r.metrics.workloads.Set(float64(len(r.planner.bindings.workloads)))
}
