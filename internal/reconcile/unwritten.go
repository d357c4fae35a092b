package reconcile

import (
	"errors"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// When a decision that could not be written is tried again. The pause stays short
// where the store as a whole does not answer, so that decisions follow soon after it
// is back.
var (
	writeAgain  = backoff.Backoff{First: 250 * time.Millisecond, Most: time.Minute}
	outageAgain = backoff.Backoff{First: writeAgain.First, Most: 2 * time.Second}
)

// How many failures in a row of one decision hold up those who wait for others.
// The second is for failures of the store as a whole: with the pauses above, it
// is as long as a request waits by default.
const (
	patience       = 3
	outagePatience = 8
)

// unwritten are the decisions that are not durable yet. Each is tried by itself:
// one that cannot be written neither has the others written again, nor holds up
// for long those who wait for them.
//
// They are written in rounds of all that are due, some at a time: in between, what was
// written is taken in, and need not be kept twice.
type unwritten struct {
	attempts map[decision]*attempt
	// order are those of attempts as they were added, and some that are done. A pass finds
	// most decisions in the order in which they are written.
	order   []decision
	round   []decision            // the rest of the present round
	givenUp map[decision]struct{} // that nobody is to wait for any longer
}

// maxWrites is how many decisions are written at a time: enough to keep the store
// busy, and few beside a large fleet.
const maxWrites = 5000

// attempt is a decision with what came of writing it.
type attempt struct {
	write
	err      error // of the last attempt
	failures int   // in a row
	at       time.Time
}

func newUnwritten() *unwritten {
	return &unwritten{attempts: map[decision]*attempt{}, givenUp: map[decision]struct{}{}}
}

// add takes in a new version of a decision. A back-off goes on, unless the spec
// is another one by now: that may be what mends it.
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

// due are the decisions to be written next: of a round, in the order of the keys. What
// becomes due meanwhile waits for the next round, so that nobody has to wait for more
// than one. Those whose object has gone are forgotten.
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

// begin begins a round.
func (u *unwritten) begin(now time.Time) {
	u.round = nil
	u.order = slices.DeleteFunc(u.order, func(d decision) bool {
		if d.queued().gone {
			u.done(d)
		}
		return u.attempts[d] == nil
	})
	slices.SortFunc(u.order, func(a, b decision) int { return a.key().Compare(b.key()) })
	u.order = slices.Compact(u.order) // one that was done and came again
	for _, d := range u.order {
		if !now.Before(u.attempts[d].at) {
			u.round = append(u.round, d)
		}
	}
}

// done forgets a decision: it is durable, or another one follows.
func (u *unwritten) done(d decision) {
	delete(u.givenUp, d)
	if delete(u.attempts, d); len(u.attempts) == 0 {
		u.attempts, u.order = map[decision]*attempt{}, nil // the old ones keep the room of all that there were
	}
}

// failed notes that a decision could not be written.
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
		delete(u.givenUp, d) // the store as a whole is waited for longer
	}
}

// isOutage tells a failure of the store from one of the object.
func isOutage(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUncertain) || errors.Is(err, store.ErrFull)
}

// isGivenUp reports that nobody is to wait for it any longer. A store that is full
// stays so until somebody deletes, who must not wait long for it.
func (a *attempt) isGivenUp() bool {
	if isOutage(a.err) && !errors.Is(a.err, store.ErrFull) {
		return a.failures >= outagePatience
	}
	return a.failures >= patience
}

// waits reports that something is not durable that may soon be.
func (u *unwritten) waits() bool {
	return len(u.givenUp) < len(u.attempts)
}

// blocked are the objects that nobody waits for any longer, in order.
func (u *unwritten) blocked() []api.Key {
	var keys []api.Key
	for d := range u.givenUp {
		keys = append(keys, d.key())
	}
	slices.SortFunc(keys, api.Key.Compare)
	return keys
}

// next is when something is to be tried, now for what has not been; zero where nothing
// is.
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
