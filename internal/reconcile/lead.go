package reconcile

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Of several servers on one store, one leads: it alone writes decisions. The others
// follow. They take in the same objects, and decide as well, so that they can explain
// and preview, and begin to lead at once; but what they decide is not written, and
// gives way to whatever the one that leads has written. Before one of them begins to
// lead it forgets what it decided otherwise than it is stored: no decision moves
// because another server leads.

// command is a time in which this server leads.
type command struct {
	ctx context.Context // ends with it
	// from is the revision that has to be known before anything is decided: until there
	// another server may have written.
	from int64
	// begin is called once, when decisions begin to be made as of this command.
	begin func()
	// ended is closed when nothing is written any more.
	ended chan struct{}
}

// over reports whether a command has ended. nil, which is none, has not.
func (c *command) over() bool { return c != nil && c.ctx.Err() != nil }

// done is closed when a command ends.
func (c *command) done() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.ctx.Done()
}

// errStoodDown ends a session in which this server led.
var errStoodDown = errors.New("this server does not lead any more")

// Lead has decisions written from a revision on, which is the one at which this server
// began to lead, and calls begin when everything up to there is known. It returns when
// ctx has ended and nothing is written any more.
func (r *Reconciler) Lead(ctx context.Context, from int64, begin func()) {
	c := &command{ctx, from, sync.OnceFunc(begin), make(chan struct{})}
	select {
	case r.commands <- c:
		// The store is asked how far its watch has come: with nothing to decide it would
		// say so only after a while. The error is the end of ctx.
		_, _ = r.options.Fleet.WaitRevision(ctx, from)
		<-ctx.Done()
		<-c.ended
	case <-ctx.Done():
	}
}

// leads reports whether decisions are written, the fleet being at a revision.
func (r *loop) leads(revision int64) bool {
	return r.command != nil && revision >= r.command.from
}

// standDown ends the command, if there is one.
func (r *loop) standDown() {
	if r.command != nil && r.command.ended != nil {
		close(r.command.ended)
	}
	r.command = nil
	for _, report := range r.unanswered {
		report.done <- store.ErrFenced
	}
	r.unanswered = nil
}

// beginLeading says that decisions are made as of the command. What was settled before
// was only known, and not decided.
func (r *loop) beginLeading() {
	if r.command.begin == nil {
		return
	}
	r.settled.forget()
	r.command.begin()
}

// takeCommand begins to lead: what was decided here stands only where it is stored.
func (r *loop) takeCommand(at *fleet.Snapshot) error {
	r.beginLeading()
	ahead := r.ahead
	r.ahead = map[api.Key]struct{}{}
	return r.plan(func(p *planner) {
		p.lead(ahead, func(key api.Key) (api.Object, int64) {
			if entry := at.Get(key); entry != nil {
				return entry.Object, entry.SpecRevision
			}
			return nil, 0
		})
	})
}

// lead begins to lead. What was decided otherwise than it is stored is taken in as it
// is stored, as by who follows, and looked at again.
func (p *planner) lead(ahead map[api.Key]struct{}, stored func(api.Key) (object api.Object, specRevision int64)) {
	for _, key := range slices.SortedFunc(maps.Keys(ahead), api.Key.Compare) {
		object, specRevision := stored(key)
		if object == nil {
			continue
		}
		p.put(object, specRevision)
		if d := p.known(key); d != nil {
			p.queue.mark(d)
		}
	}
	p.following = false
}
