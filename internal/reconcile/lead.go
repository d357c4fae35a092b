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

// Of several servers on one store, one leads: it alone writes decisions. The others follow. They
// apply the same objects and decide as well, so that they can explain, preview, and take over the
// lead at once; but their decisions are not written, and are replaced by whatever the leader has
// written. Before a follower takes over, it drops its decisions that differ from the stored ones: a
// change of the leader moves no decision.

// command is a period in which this server leads.
type command struct {
	ctx context.Context // done when it ends
	// from is the revision that must be known before decisions are made: until then another server
	// may have written.
	from int64
	// begin is called once, before the first decision under this command.
	begin func()
	// ended is closed when nothing is written anymore.
	ended chan struct{}
}

// over reports whether a command has ended. A nil command has not.
func (c *command) over() bool { return c != nil && c.ctx.Err() != nil }

// done returns a channel that is closed when a command ends.
func (c *command) done() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.ctx.Done()
}

// errStoodDown ends a session in which this server led.
var errStoodDown = errors.New("this server is no longer the leader")

// Lead makes the reconciler write decisions from a revision on, which is the one at which this
// server became the leader, and calls begin when everything up to it is known. It returns when ctx
// is done and nothing is written anymore.
func (r *Reconciler) Lead(ctx context.Context, from int64, begin func()) {
	c := &command{ctx, from, sync.OnceFunc(begin), make(chan struct{})}
	select {
	case r.commands <- c:
		// Ask the store for its progress: with nothing to decide it would report it only after a
		// while. The error is that of ctx.
		_, _ = r.options.Fleet.WaitRevision(ctx, from)
		<-ctx.Done()
		<-c.ended
	case <-ctx.Done():
	}
}

// leads reports whether decisions are written at a revision of the fleet.
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

// beginLeading records that decisions are made under the command. Revisions settled before were
// known but not decided.
func (r *loop) beginLeading() {
	if r.command.begin == nil {
		return
	}
	r.settled.forget()
	r.command.begin()
}

// takeCommand takes over the lead: decisions made here are kept only if they are stored.
func (r *loop) takeCommand(at *fleet.Snapshot) error {
	r.beginLeading()
	ahead := r.ahead
	r.ahead = map[api.Key]struct{}{}
	return r.plan(func(p *planner) {
		p.lead(ahead, at.Get)
	})
}

// lead takes over the lead. Decisions that differ from the stored ones are replaced by these, as a
// follower does, and evaluated again.
func (p *planner) lead(ahead map[api.Key]struct{}, stored func(api.Key) *fleet.Entry) {
	for _, key := range slices.SortedFunc(maps.Keys(ahead), api.Key.Compare) {
		entry := stored(key)
		if entry == nil {
			continue
		}
		p.putEntry(entry)
		if d := p.known(key); d != nil {
			p.queue.mark(d)
		}
	}
	p.following = false
}
