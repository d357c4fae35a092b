package reconcile

import (
	"errors"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Backoff for decisions that could not be written. It stays short if the whole store does not
// respond, so that decisions are written soon after it is back.
var (
	writeAgain  = backoff.Backoff{First: 250 * time.Millisecond, Most: time.Minute}
	outageAgain = backoff.Backoff{First: writeAgain.First, Most: 2 * time.Second}
)

// Numbers of consecutive failures of one decision that delay others waiting for it. The second
// applies to failures of the whole store: with the backoff above, it is as long as a request waits
// by default.
const (
	patience       = 3
	outagePatience = 8
)

// unwritten are the decisions that are not durable yet. Each is retried separately: a decision that
// cannot be written neither makes others be written again, nor delays for long those who wait for
// them.
//
// They are written in rounds of all that are due, some at a time: what was written is applied in
// between, and need not be kept twice.
type unwritten struct {
	attempts map[decision]*attempt
	// order contains the decisions in attempts in the order in which they were added, and some that
	// are done. A pass finds most decisions in the order in which they are written.
	order   []decision
	round   []decision            // the rest of the current round
	givenUp map[decision]struct{} // that nobody waits for anymore
}

// maxWrites is how many decisions are written at once: enough to keep the store busy, but few
// compared to a large fleet.
const maxWrites = 5000

// attempt is a decision with the result of writing it.
type attempt struct {
	write
	err      error // of the last attempt
	failures int   // consecutive
	at       time.Time
}

func newUnwritten() *unwritten {
	return &unwritten{attempts: map[decision]*attempt{}, givenUp: map[decision]struct{}{}}
}

// add adds a new version of a decision. Its backoff continues unless the spec has changed, which
// may solve the problem.
func (u *unwritten) add(w write) {
	before, waits := u.attempts[w.decision]
	if !waits {
		u.attempts[w.decision] = &attempt{write: w}
		u.order = append(u.order, w.decision)
		return
	}
	w.moved, w.observed = w.moved || before.moved, w.observed && before.observed
	if w.specRevision != before.specRevision {
		before.failures, before.at = 0, time.Time{}
		delete(u.givenUp, w.decision)
	}
	before.write = w
}

// due returns the next decisions to write: those of a round, in key order. Decisions that become
// due in the meantime wait for the next round, so that nobody waits for more than one. Those whose
// object is gone are dropped.
func (u *unwritten) due(now time.Time) []write {
	if len(u.round) == 0 {
		u.begin(now)
	}
	n := min(len(u.round), maxWrites)
	due := make([]write, 0, n)
	for _, d := range u.round[:n] {
		if d.queued().gone {
			u.done(d)
			continue
		}
		due = append(due, u.attempts[d].write)
	}
	if u.round = u.round[n:]; len(u.round) == 0 {
		u.round = nil
	}
	return due
}

// begin starts a round.
func (u *unwritten) begin(now time.Time) {
	u.round = nil
	u.order = slices.DeleteFunc(u.order, func(d decision) bool {
		if d.queued().gone {
			u.done(d)
		}
		return u.attempts[d] == nil
	})
	slices.SortFunc(u.order, func(a, b decision) int { return a.key().Compare(b.key()) })
	u.order = slices.Compact(u.order) // one that was done and was added again
	for _, d := range u.order {
		if !now.Before(u.attempts[d].at) {
			u.round = append(u.round, d)
		}
	}
}

// done removes a decision: it is durable, or replaced by another one.
func (u *unwritten) done(d decision) {
	delete(u.givenUp, d)
	if delete(u.attempts, d); len(u.attempts) == 0 {
		u.attempts, u.order = map[decision]*attempt{}, nil // the old ones retain their maximum capacity
	}
}

// failed records that a decision could not be written.
func (u *unwritten) failed(d decision, err error, now time.Time) {
	a := u.attempts[d]
	a.err = err
	a.failures++
	again := writeAgain
	if isOutage(err) {
		again = outageAgain
	}
	a.at = now.Add(again.After(a.failures))
	if a.isGivenUp() {
		u.givenUp[d] = struct{}{}
	} else {
		delete(u.givenUp, d) // failures of the whole store are waited for longer
	}
}

// isOutage distinguishes a failure of the store from one of the object.
func isOutage(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUncertain) || errors.Is(err, store.ErrFull)
}

// isGivenUp reports whether nobody should wait for it anymore. A full store stays so until somebody
// deletes objects, who must not wait long for this.
func (a *attempt) isGivenUp() bool {
	if isOutage(a.err) && !errors.Is(a.err, store.ErrFull) {
		return a.failures >= outagePatience
	}
	return a.failures >= patience
}

// waits reports whether something is not durable that may soon be.
func (u *unwritten) waits() bool {
	return len(u.givenUp) < len(u.attempts)
}

// blocked returns the objects that nobody waits for anymore, in order.
func (u *unwritten) blocked() []api.Key {
	var keys []api.Key
	for d := range u.givenUp {
		keys = append(keys, d.key())
	}
	slices.SortFunc(keys, api.Key.Compare)
	return keys
}

// next returns when something is to be tried, now if something has not been tried yet; zero if
// never.
func (u *unwritten) next(now time.Time) time.Time {
	var next time.Time
	for _, a := range u.attempts {
		if a.at.IsZero() {
			return now
		}
		next = sooner(next, a.at)
	}
	return next
}

func (u *unwritten) len() int { return len(u.attempts) }
