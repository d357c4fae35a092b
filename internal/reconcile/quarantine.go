package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
)

// tryAgain is the backoff for retrying an object that was left out because of a panic. It is
// retried only after it, or anything else, has changed.
var tryAgain = backoff.Backoff{First: time.Second, Most: 5 * time.Minute}

// maxSuspicions is the number of consecutive panics that are not reproducible from scratch after
// which the object that was being processed is left out.
const maxSuspicions = 3

// suspicionAge is how long each of them counts.
const suspicionAge = 10 * time.Minute

// quarantine are the objects that are left out of decisions because of a panic.
type quarantine struct {
	of map[api.Key]*quarantined
	// trials counts how often each was left out, for its backoff.
	trials     map[api.Key]int
	suspicions map[api.Key][]time.Time
	// moved says that the planner does not know the current set yet.
	moved bool
	// frozen says that the map is shared with readers.
	frozen bool
	// otherwise are the objects that are shown differently from the last snapshot.
	otherwise map[api.Key]struct{}
}

// quarantined is an object that is left out.
type quarantined struct {
	cause        string // as one short line
	specRevision int64  // of the last version that was tried; 0 once there is another one
	triedAt      int64  // revision of the fleet
	again        time.Time
}

func newQuarantine() *quarantine {
	return &quarantine{of: map[api.Key]*quarantined{}, trials: map[api.Key]int{}, suspicions: map[api.Key][]time.Time{}, otherwise: map[api.Key]struct{}{}}
}

func (l *quarantine) has(key api.Key) bool {
	_, ok := l.of[key]
	return ok
}

// freeze returns the current set as an immutable map.
func (l *quarantine) freeze() map[api.Key]*quarantined {
	l.frozen = true
	return l.of
}

// own makes the map modifiable.
func (l *quarantine) own() {
	if l.frozen {
		l.of, l.frozen = maps.Clone(l.of), false
	}
}

// add leaves an object out from now on.
func (l *quarantine) add(key api.Key, cause string, entry *fleet.Entry, revision int64, now time.Time) {
	l.trials[key]++
	p := &quarantined{cause: cause, triedAt: revision, again: now.Add(tryAgain.After(l.trials[key]))}
	if entry != nil {
		p.specRevision = entry.SpecRevision
	}
	l.own()
	if before := l.of[key]; before == nil || before.cause != cause {
		l.otherwise[key] = struct{}{}
	}
	l.of[key], l.moved = p, true
}

// release makes an object take part again.
func (l *quarantine) release(key api.Key) {
	l.own()
	delete(l.of, key)
	l.otherwise[key], l.moved = struct{}{}, true
}

// suspect records a panic while an object was being processed, and reports whether that is one too
// many. The zero key means no object.
func (l *quarantine) suspect(key api.Key, now time.Time) bool {
	recent := slices.DeleteFunc(l.suspicions[key], func(at time.Time) bool { return now.Sub(at) > suspicionAge })
	if recent = append(recent, now); len(recent) < maxSuspicions {
		l.suspicions[key] = recent
		return false
	}
	delete(l.suspicions, key)
	return true
}

// changed applies a change of an object that is left out. A version that has not been tried is
// tried at once.
func (l *quarantine) changed(change fleet.Change) {
	p := l.of[change.Key]
	switch {
	case change.New == nil:
		l.release(change.Key)
		delete(l.trials, change.Key)
	case change.New.SpecRevision != p.specRevision:
		p.specRevision, p.again = 0, time.Time{}
		delete(l.trials, change.Key)
	}
}

// due returns the objects to retry now, at a revision of the fleet.
func (l *quarantine) due(revision int64, now time.Time) []api.Key {
	var keys []api.Key
	for key, p := range l.of {
		if revision > p.triedAt && !now.Before(p.again) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, api.Key.Compare)
	return keys
}

// next returns when an object is to be retried; zero if never.
func (l *quarantine) next(revision int64) time.Time {
	var next time.Time
	for _, p := range l.of {
		if revision > p.triedAt && (next.IsZero() || p.again.Before(next)) {
			next = p.again
		}
	}
	return next
}

// condition returns the condition that says why an object is left out.
func (p *quarantined) condition(key api.Key) api.Condition {
	c := api.Condition{Type: api.ConditionFaulted, Status: api.ConditionTrue, Reason: api.ReasonServerFault}
	if isDecided(key.Kind) {
		c.Message = fmt.Sprintf("deciding it failed with %s; the decision stays as it was, and is made again when something changes", p.cause)
	} else {
		c.Message = fmt.Sprintf("processing it failed with %s; until something changes, decisions that depend on it stay as they are, and others are made without it", p.cause)
	}
	return c
}

// faulted returns a copy of an object with the condition that it is left out, or the object itself
// if it is not.
func (s *snapshot) faulted(object api.Object) api.Object {
	key := api.KeyOf(object)
	p, ok := s.quarantined[key]
	if !ok {
		return object
	}
	return api.CopyWith(object, p.condition(key))
}

// lost returns the objects of a snapshot of the fleet that cannot be used for decisions.
func (r *loop) lost(at *fleet.Snapshot) []api.Key {
	return append(lostIn(at), slices.Collect(maps.Keys(r.quarantine.of))...)
}

// begin creates a planner from a snapshot of the fleet, without the objects that make it panic, and
// starts using it. It returns what to write.
func (r *loop) begin(ctx context.Context, loaded *fleet.Snapshot) (writes []write, err error) {
	for {
		s := r.newSearch(ctx, loaded, r.quarantine.has)
		p := r.newPlanner(r.logger)
		if before := r.published.current.Load().waiting; before != nil {
			before.Ascend(func(w wait) bool { p.waited(w.key, w.on); return true })
		}
		p.following = !r.leads(loaded.Revision())
		p.lose(r.lost(loaded))
		for key := range r.quarantine.of {
			if entry := loaded.Get(key); entry != nil {
				p.quarantine(entry.Object)
			}
		}
		started := time.Now()
		writes, err = decideAll(p, s.now, s.world, s.decided)
		if err == nil {
			r.planner, r.damaged, r.quarantine.moved = p, loaded, false
			r.passed(started)
			return writes, nil
		}
		panicked, ok := errors.AsType[*recovery.Panic](err)
		if !ok {
			return nil, err
		}
		panicked.Object = p.working.String()
		r.faults.Note(panicked)
		if err := r.leaveOut(ctx, loaded, panicked); err != nil {
			return nil, err
		}
	}
}

// leaveOut determines which objects cause a reproducible panic, and leaves them out. Objects that
// were left out before are checked again: their panic may have the same cause.
func (r *loop) leaveOut(ctx context.Context, loaded *fleet.Snapshot, cause *recovery.Panic) error {
	s := r.newSearch(ctx, loaded, func(key api.Key) bool { return r.quarantine.has(key) && !isDecided(key.Kind) })
	culprits := s.culprits()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !slices.ContainsFunc(culprits, func(key api.Key) bool { return !r.quarantine.has(key) }) {
		return cause // there is nothing to leave out
	}
	defer r.published.showQuarantine(r.quarantine)
	if !slices.ContainsFunc(culprits, func(key api.Key) bool { return isDecided(key.Kind) }) {
		// Those that panicked because of it can be decided without it.
		for key := range r.quarantine.freeze() {
			if isDecided(key.Kind) {
				r.quarantine.release(key)
			}
		}
	}
	for _, key := range culprits {
		if !r.quarantine.has(key) {
			r.quarantineObject(key, cause.Error(), loaded)
		}
	}
	return nil
}

// quarantineObject leaves an object out and logs it.
func (r *loop) quarantineObject(key api.Key, cause string, loaded *fleet.Snapshot) {
	r.quarantine.add(key, cause, loaded.Get(key), loaded.Revision(), r.now())
	if len(r.quarantine.of) <= maxNamed {
		r.logger.Error("an object is excluded from decisions because processing it panics; others are not affected", "object", key.String(), "cause", cause)
	}
	r.metrics.leftOut(r.quarantine)
}

// retry retries the objects whose time has come, each in a separate planner, and adds those that no
// longer panic.
func (r *loop) retry(ctx context.Context, at *fleet.Snapshot) {
	due := r.quarantine.due(at.Revision(), r.now())
	if len(due) == 0 {
		return
	}
	s := r.newSearch(ctx, at, r.quarantine.has)
	everybody := append(onlooker(), s.decided...)
	for _, key := range due {
		entry := at.Get(key)
		if entry == nil {
			continue // its deletion will be applied
		}
		one := []*fleet.Entry{entry}
		look := everybody
		if isDecided(key.Kind) {
			look = nil
		}
		_, err := decideAll(s.fresh(slog.New(slog.DiscardHandler)), s.now, s.world, one, look)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.quarantine.add(key, err.Error(), entry, at.Revision(), r.now())
		} else {
			r.quarantine.release(key)
			r.logger.Info("an object is included in decisions again", "object", key.String())
		}
		r.metrics.leftOut(r.quarantine)
		r.published.showQuarantine(r.quarantine)
		if err == nil {
			if !isDecided(key.Kind) {
				s.world = append(s.world, entry)
			}
			r.released = append(r.released, entry)
		}
	}
}

func (r *loop) newPlanner(logger *slog.Logger) *planner {
	p := newPlanner(logger)
	p.started, p.probe = r.started, r.options.probe
	return p
}

func (r *loop) newSearch(ctx context.Context, snapshot *fleet.Snapshot, leaveOut func(api.Key) bool) *search {
	s := newSearch(snapshot, leaveOut)
	s.now, s.fresh = r.now(), r.newPlanner
	s.ended = func() bool { return ctx.Err() != nil }
	return s
}
