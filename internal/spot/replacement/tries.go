package replacement

import (
	"fmt"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/inventory"
)

// replaceAgain is the backoff after a replacement that changed nothing.
var replaceAgain = backoff.Backoff{First: 30 * time.Second, Most: time.Hour}

// tries tracks the replacements of a workload's pods. If a pod was replaced by one of the same
// type, the next replacement would be in vain too: something else determines the type of the
// workload's pods.
type tries struct {
	target split.Split // the target of the replacement
	off    int64       // distance from the split before the last replacement
	at     time.Time   // when that was
	failed int         // consecutive replacements that changed nothing, before the last one
}

// pause returns how long to wait if the last one has changed nothing either.
func (t tries) pause() time.Duration { return replaceAgain.After(t.failed + 1) }

// helped reports whether the last replacement has moved a workload closer to its split, or had
// another target.
func (t tries) helped(v *inventory.View) bool {
	return t.target != v.Target.Split || distance(v) < t.off
}

// distance returns how many pods would have to be of another type.
func distance(v *inventory.View) int64 {
	live := split.Live(v.Pods)
	return max(v.Target.OnDemand-live.OnDemand, 0) + max(v.Target.Spot-live.Spot, 0)
}

// hold says why no pod of a workload should be replaced because of its type now, and until when, if
// known.
func (r *Replacement) hold(key workloadKey, v *inventory.View, now time.Time) (why string, until time.Time) {
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

// tried records that a pod is being replaced because of its type. All others are healthy then, so
// the effect of the previous replacement is visible.
func (r *Replacement) tried(key workloadKey, v *inventory.View, now time.Time) {
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

// arrived records that a workload has reached its split, which resets the tries.
func (r *Replacement) arrived(key workloadKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tries, key)
}
