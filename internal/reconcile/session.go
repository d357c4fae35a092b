package reconcile

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/reconcile/promise"
)

// session keeps decisions current, starting from a snapshot of the fleet. It ends with a
// *fault.Panic when the planner panicked: its state may be inconsistent, and the next session
// starts from scratch.
type session struct {
	*loop
	batches <-chan fleet.Batch
	at      *fleet.Snapshot // what the planner knows
	// unwritten are decisions that are not durable, and written is the revision that must be known
	// before more are written.
	unwritten *unwritten
	written   int64
}

// session runs one session. The error is nil when ctx is done.
func (r *loop) session(ctx context.Context) error {
	subscription := r.options.Fleet.Subscribe(fleet.SubscribeOptions{Unbounded: true})
	batches := make(chan fleet.Batch)
	// The snapshot is read before forward starts, which then owns the subscription.
	s := &session{loop: r, batches: batches, at: subscription.Snapshot(), unwritten: newUnwritten()}
	ctx, cancel := context.WithCancelCause(ctx)
	var reading sync.WaitGroup
	reading.Go(func() {
		cancel(r.faults.Do("", func() error { forward(ctx, subscription, batches); return nil }))
	})
	defer reading.Wait()
	defer cancel(nil)

	writes, err := s.start(ctx)
	for err == nil {
		if err = s.write(ctx, writes); err != nil {
			break
		}
		if err = s.awaitNews(ctx); err != nil {
			break
		}
		s.retry(ctx, s.at)
		writes, err = s.decide()
	}
	if errors.Is(err, errEnded) {
		return ended(ctx)
	}
	return err
}

// errEnded ends a session whose context is done.
var errEnded = errors.New("the session has ended")

// ended returns why a session ended with its context: the panic that canceled it, or nil.
func ended(ctx context.Context) error {
	if p, ok := errors.AsType[*fault.Panic](context.Cause(ctx)); ok {
		return p
	}
	return nil
}

// start makes the first pass, and returns what to write.
func (s *session) start(ctx context.Context) ([]write, error) {
	if s.command.over() {
		s.standDown()
	}
	clear(s.ahead)
	s.recording.over()
	for range s.at.AllSystem(promise.Kind) {
		s.recording.promised = true
	}
	select {
	case s.command = <-s.commands: // it can lead from the beginning
	default:
	}
	writes, err := s.begin(ctx, s.at)
	if ctx.Err() != nil {
		return nil, errEnded
	} else if err != nil {
		return nil, err
	}
	if s.leads(s.at.Revision()) {
		s.beginLeading()
	}
	s.ready()
	if again := s.unanswered; len(again) > 0 { // the planner that knew of them is gone
		s.unanswered = nil
		if err := s.takeInReports(again...); err != nil {
			return nil, err
		}
	}
	return writes, nil
}

// write has decisions written that are due, if this server leads, and settles what is durable.
func (s *session) write(ctx context.Context, writes []write) (err error) {
	leads := s.leads(s.at.Revision())
	for _, w := range writes {
		if leads {
			s.unwritten.add(w)
		} else {
			s.ahead[w.key()] = struct{}{}
		}
	}
	if s.written, err = s.writeDue(ctx, s.at, s.unwritten); err != nil {
		return err
	}
	s.metrics.unwritten(s.unwritten)
	if s.unwritten.waits() {
		return nil
	}
	s.traces.ended(ctx, s.at.Revision(), leads) // before somebody who has waited asks for it
	s.settled.reach(s.at.Revision())
	for _, report := range s.unanswered {
		report.done <- nil
	}
	s.unanswered = nil
	return nil
}

// behind reports whether the planner does not know yet what was written.
func (s *session) behind() bool { return s.at.Revision() < s.written }

// awaitNews waits until there is something to do, and passes it to the planner.
func (s *session) awaitNews(ctx context.Context) (err error) {
	var news news
	if s.behind() {
		news = await(ctx, s.batches)
	} else {
		news = s.wait(ctx, s.wake())
	}
	switch {
	case ctx.Err() != nil:
		return errEnded
	case s.command.over():
		return errStoodDown
	case news.batch != nil:
		err = s.takeIn(ctx, *news.batch)
	case news.report != nil:
		err = s.takeInReports(*news.report)
	case news.command != nil:
		s.command = news.command
	}
	if err == nil && s.planner.following && s.leads(s.at.Revision()) {
		err = s.takeCommand(s.at)
	}
	return err
}

// wake returns when there is something to do without a change of the fleet.
func (s *session) wake() time.Time {
	next := s.nextAt
	for _, at := range []time.Time{s.unwritten.next(s.now()), s.lot.next(s.at.Revision())} {
		next = sooner(next, at)
	}
	return next
}

// forward passes the fleet's changes to a session.
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

// news is what a session must do next; empty if the next time has come.
type news struct {
	batch   *fleet.Batch
	report  *report
	command *command
}

// wait returns the next news, or none when the time has come.
func (s *session) wait(ctx context.Context, next time.Time) news {
	var alarm <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(max(next.Sub(s.now()), 0))
		defer timer.Stop()
		alarm = timer.C
	}
	reports := s.reports
	if s.command == nil {
		reports = nil // reports are kept for the leader
	}
	select {
	case batch := <-s.batches:
		return news{batch: &batch}
	case report := <-reports:
		return news{report: &report}
	case command := <-s.commands:
		return news{command: command}
	case <-alarm:
	case <-s.command.done():
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

// maxBatches is how many publications of the fleet are applied before decisions are written, so
// that a flood of changes cannot delay decisions.
const maxBatches = 1000

// takeIn passes a batch to the planner, further ones until what was written is known, and
// those already queued.
func (s *session) takeIn(ctx context.Context, batch fleet.Batch) error {
	return s.plan(func(p *planner) {
		for n := 1; ; n++ {
			s.recording.promised = s.recording.promised || batch.Reset || slices.Contains(batch.System, promise.Kind)
			for _, change := range batch.Changes {
				s.recording.changes(change.Key)
				switch {
				case s.lot.has(change.Key):
					if change.New == nil {
						p.takeBack(change.Key)
					}
					s.lot.changed(change)
					s.metrics.leftOut(s.lot)
				case change.New == nil:
					p.remove(change.Key)
				default:
					p.put(change.New.Object, change.New.SpecRevision)
					delete(s.ahead, change.Key) // the next decision starts from there
				}
			}
			s.at = batch.Snapshot
			s.lose(p, s.at)
			if s.behind() {
				next := await(ctx, s.batches)
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
			case batch = <-s.batches:
			default:
				return
			}
		}
	})
}
