package reconcile

import (
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/binding"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/movement"
)

// claim determines which policy a workload follows, and compiles the propagation.
func (b *bindings) claim(w *workloadBinding) {
	if w.unclaimed {
		w.unclaimed = false
		policy, reason := b.claims.Choose(w.object, w.status.Policy)
		w.reason = reason
		if policy != w.policy {
			w.policy, w.p = policy, nil
		}
	}
	if w.p != nil {
		return
	}
	b.scopes.exit(w)
	if !binding.Directed(w.object, w.policy) {
		return
	}
	p, err := binding.NewPropagation(w.object, w.policy)
	if err != nil {
		b.logger.Error("a stored workload cannot be decided; its binding does not change", "workload", w.key().Path(), "error", err)
		w.policy = nil
		return
	}
	w.p = p
	b.scopes.enter(w)
	w.alike = alike(w)
}

// decide makes one binding again, and reports whether the status changed, and whether clusters or
// replicas did.
func (b *bindings) decide(w *workloadBinding, now time.Time) (changed, moved bool) {
	b.focus(w.key())
	followed := w.policy
	b.claim(w)
	redated := b.redate(w, now)
	object := *w.object
	object.Status = w.status
	before := w.status
	if w.p == nil {
		var after api.WorkloadStatus
		after, changed, moved = binding.UnclaimedStatus(b.fleet, &object, w.reason, now)
		b.become(w, followed, after, false, now)
		w.pending = false
		b.heldBy(w, nil)
		b.queue.agenda.set(w, time.Time{})
		b.index(w, &before)
		b.hold(w) // running replicas may have become larger or smaller
		return w.written() || changed || redated, moved
	}
	present := binding.NewPresent(&object, w.policy)
	moving := movingWorkload(&object, &before, w.policy)
	if present.Holding = b.moves.holding(moving, now); present.Holding == nil && w.held {
		present.Holding = free
	}
	w.rivals = false
	out := b.bind(w, present, now)
	after, changed, moved := binding.NewBindingStatus(b.fleet, w.p, &object, w.policy, out, now, func(group int) string {
		return w.scopes[group].fits(b.picture, &w.sentences[group], w.p.Groups[group].Query)
	})
	if w.p.Stages() || before.Rollout != nil {
		next := binding.Stage(b.fleet, w.p, b.reserved, &before, binding.Next{Status: after, NextAt: out.NextAt}, now)
		after, changed, moved, out.NextAt = next.Status, next.Changed, next.Moved, next.NextAt
	}
	if out.Moved > 0 {
		after.Moves = b.moves.spent(moving, out.Moved, now)
	}
	b.become(w, followed, after, w.held && out.Moved > 0, now)
	b.moves.account(w.key(), before.Policy, before.Moves, w.status.Policy, w.status.Moves)
	b.heldBy(w, out.Held)
	w.setPending(!out.Complete)
	w.lack, w.backLack, w.gained = out.Lack, out.BackLack, 0
	w.cramped, w.overflowed = out.Cramped, out.Overflowed
	w.watch()
	b.index(w, &before)
	b.hold(w)
	b.queue.agenda.set(w, out.NextAt)
	if slices.ContainsFunc(before.Evictions, func(e api.Eviction) bool { return !leaves(&w.status, e.Cluster) }) {
		b.queue.mark(w) // a cluster that has been left is a candidate again
	}
	if w.status.Rollout != nil && len(before.Health) > 0 && len(w.status.Health) == 0 {
		b.queue.mark(w) // no report is left: its health is that of the clusters now
	}
	if before.Rollout != nil && w.status.Rollout == nil {
		b.queue.mark(w) // clusters that were only left until now are part of the binding: they may be unhealthy
	}
	if changed && out.Held != nil {
		b.queue.mark(w) // from where it is now, it may not want to move
	}
	if changed && w.p.FailsBack() {
		b.queue.mark(w) // whether an earlier group could take it back must be checked from its new position
	}
	return w.written() || changed || redated, moved
}

// become gives a workload its new binding. released says that it makes a move that was held.
func (b *bindings) become(w *workloadBinding, followed *api.PropagationPolicy, after api.WorkloadStatus, released bool, now time.Time) {
	if b.tells {
		if cause := b.causeOf(w, followed, &after); cause != nil {
			if released {
				cause = b.waits.released(w.key())
			}
			w.moves(cause, nil, now)
		}
	}
	w.status = after
	w.made()
}

// heldBy records what holds a move of a workload; nil if nothing does.
func (b *bindings) heldBy(w *workloadBinding, held *movement.Held) {
	if held != nil || w.held {
		b.keepHeld(w, held != nil)
		b.waits.hold(w.key(), held)
	}
}

// redate has what another server dated ahead count as from now, and reports whether there
// was anything.
func (b *bindings) redate(w *workloadBinding, now time.Time) bool {
	moves := w.status.Moves
	if !binding.Redate(&w.status, now) {
		return false
	}
	b.moves.account(w.key(), w.status.Policy, moves, w.status.Policy, w.status.Moves)
	held := w.heldNeeds
	w.heldNeeds, w.machines = nil, nil // the same is held from now on
	b.holdAs(w, held)
	return true
}

// bind decides where a workload goes that has a policy, or needs none.
func (b *bindings) bind(w *workloadBinding, present binding.Present, now time.Time) binding.Binding {
	out, ok := b.failures.known(b.version, now, w)
	if _, wanted := b.explained[w.key()]; wanted {
		out, b.explained[w.key()] = b.binder.Explain(b.fleet, w.p, w.views(), b.others(), present, now)
		b.explained[w.key()].Policy, b.explained[w.key()].PolicyReason = w.policyPath(), w.reason
	} else if !ok {
		out = b.binder.Bind(b.fleet, w.p, w.views(), b.others(), nil, present, now)
		out.Demand = b.binder.Demand()
		b.failures.remember(b.version, now, w, out)
	}
	if !out.Complete && w.p.Preempts {
		if better, done := b.preempt(w, present, now); done {
			if _, wanted := b.explained[w.key()]; wanted {
				b.explained[w.key()] = nil // no longer valid
			}
			return better
		}
		out.NextAt = sooner(out.NextAt, b.spares.until)
	}
	return out
}

// explain evaluates one workload without changing anything.
func (b *bindings) explain(w *workloadBinding, now time.Time) *api.Explanation {
	object := *w.object
	object.Status = w.status
	reason := w.reason
	if reason == "" {
		_, reason = b.claims.Choose(w.object, w.status.Policy)
	}
	if w.p == nil {
		return unclaimed(&object, reason, b.fleet.Len(), now)
	}
	var binder binding.Binder
	present := binding.NewPresent(&object, w.policy)
	present.Holding = b.moves.holding(movingWorkload(&object, &w.status, w.policy), now)
	_, x := binder.Explain(b.fleet, w.p, w.views(), b.others(), present, now)
	x.Policy, x.PolicyReason = w.policyPath(), reason
	return rollingOut(x, w.status.Rollout, w.at)
}

// unclaimed explains a workload that no policy selects.
func unclaimed(w *api.Workload, reason string, total int, now time.Time) *api.Explanation {
	return &api.Explanation{
		Kind: api.KindWorkload, Namespace: w.Metadata.Namespace, Name: w.Metadata.Name, At: now.UTC(),
		Summary: reason + binding.SplitClause(w), PolicyReason: reason, Total: total, Candidates: []api.Candidate{},
	}
}
