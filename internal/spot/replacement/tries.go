package replacement

import (
	"fmt"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/inventory"
)

// replaceAgain is when the next pod is replaced after a replacement that changed
// nothing.
var replaceAgain = backoff.Backoff{First: 30 * time.Second, Most: time.Hour}

// tries is how replacing pods of a workload has gone. A pod that is replaced by one of
// the same type was taken away for nothing, and so would be the next: something else
// decides about the workload's pods.
type tries struct {
	target split.Split // that was to be reached
	off    int64       // how far the split was off before the last replacement
	at     time.Time   // of that
	failed int         // replacements in a row that changed nothing, before the last one
}

// pause is how long to wait if the last one has changed nothing either.
func (t tries) pause() time.Duration { return replaceAgain.After(t.failed + 1) }

// helped reports whether the last replacement has brought a workload nearer to its
// split, or was for another one.
func (t tries) helped(v *inventory.View) bool {
	return t.target != v.Target.Split || distance(v) < t.off
}

// distance is how many pods would have to be of another type.
func distance(v *inventory.View) int64 {
	live := split.Live(v.Pods)
	return max(v.Target.OnDemand-live.OnDemand, 0) + max(v.Target.Spot-live.Spot, 0)
}

// hold says why a pod of a workload should not be replaced for its type now, and until
// when, where that is known.
func (r *Replacement) hold(key Key, v *inventory.View, now time.Time) (why string, until time.Time) {
	if !v.Managed {
		return "", time.Time{}
	}
	if why := r.Hold(); why != "" {
		return why, time.Time{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t, tried := r.tries[key]
	if !tried || t.helped(v) {
		return "", time.Time{}
	}
	if until = t.at.Add(t.pause()); !now.Before(until) {
		return "", time.Time{}
	}
	return fmt.Sprintf("%d replaced pods came back with the same type: the next attempt is at %s", t.failed+1, until.UTC().Format(time.TimeOnly)), until
}

// tried takes in that a pod is replaced for its type. It happens while all others are
// well, so that what the one before has brought shows.
func (r *Replacement) tried(key Key, v *inventory.View, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, again := r.tries[key]
	if again && !t.helped(v) {
		t.failed++
	} else {
		t.failed = 0
	}
	t.target, t.off, t.at = v.Target.Split, distance(v), now
	r.tries[key] = t
}

// arrived takes in that a workload has its split: what comes next is another matter.
func (r *Replacement) arrived(key Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tries, key)
}
