package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// loop keeps the decisions of a live fleet current: it takes in what changed, has the
// planner make a pass, and has what differs written. Run alone has it.
type loop struct {
	options Options
	logger  *slog.Logger
	now     func() time.Time
	metrics *metrics
	faults  *fault.Component
	started time.Time

	published *published
	settled   *settled
	traces    *passTraces
	ready     func() // called after the first pass
	reports   <-chan report
	commands  <-chan *command

	recording *recording

	planner *planner
	damaged *fleet.Snapshot // the planner knows what is damaged in it
	lot     *lot            // what is left out
	nextAt  time.Time       // when the planner has to be called again although nothing changed
	// released are objects that the planner is to be given again.
	released []*fleet.Entry
	// unencoded are the decisions that could not be encoded when it was last tried.
	unencoded map[api.Key]struct{}
	// unanswered are reports of which what follows is not durable.
	unanswered []report
	// command says whether and as what it leads, and ahead what it decided otherwise than
	// the server that leads has so far.
	command *command
	ahead   map[api.Key]struct{}
}

// run keeps decisions current until ctx ends; see Reconciler.Run.
func (r *loop) run(ctx context.Context) error {
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

// pauseAfter handles a panic of the planner, and reports whether to wait before the next session.
// Usually the next session starts without the objects to blame. A panic that is not reproducible is
// tolerated a few times.
func (r *loop) pauseAfter(p *fault.Panic) bool {
	suspect := r.planner.working
	if !r.lot.suspect(suspect, r.now()) {
		return false
	}
	snapshot := r.options.Fleet.Snapshot()
	if snapshot.Get(suspect) == nil || r.lot.has(suspect) {
		return true
	}
	r.park(suspect, p.Error(), snapshot)
	r.published.showLot(r.lot)
	return false
}

// plan calls do with the planner. The error is a *fault.Panic, after which the planner must not be
// used.
func (r *loop) plan(do func(p *planner)) error {
	err := fault.Confine("", func() error { do(r.planner); return nil })
	if p, ok := errors.AsType[*fault.Panic](err); ok {
		p.Object = r.planner.working.String()
		r.faults.Note(p)
	}
	return err
}

// lose passes the lost objects to the planner, if they have changed.
func (r *loop) lose(p *planner, at *fleet.Snapshot) {
	if r.lot.moved || !at.SameDamage(r.damaged) {
		p.lose(r.lost(at))
	}
	r.damaged, r.lot.moved = at, false
}

// decide makes one pass and returns what to write.
func (r *loop) decide() (writes []write, err error) {
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
	r.released = nil // after a panic, the next session applies them
	return writes, err
}

// passed records a pass of the planner in the metrics.
func (r *loop) passed(begin time.Time) {
	r.published.show(r.planner, r.lot, r.damaged)
	r.nextAt = r.planner.nextAt()
	r.traces.planned(begin)
	r.metrics.passing.Observe(time.Since(begin).Seconds())
	r.metrics.placements.Set(float64(len(r.planner.placer.placements)))
	r.metrics.holding(r.planner.waits.held)
	r.metrics.workloads.Set(float64(len(r.planner.bindings.workloads)))
}
