package replacement

import (
	"fmt"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/inventory"
)

const (
	// firstRetry and lastRetry are the pauses after a replacement that changed nothing.
	firstRetry = 30 * time.Second
	lastRetry  = time.Hour
)

// tries is how replacing pods of a workload has gone. A pod that is replaced by one of
// the same type was taken away for nothing, and so would be the next: something else
// decides about the workload's pods.
type tries struct {
	target spot.Split // that was to be reached
	off    int64      // how far the split was off before the last replacement
	failed int
	next   time.Time // when to try again
}

// distance is how many pods would have to be of another type.
func distance(v *inventory.View) int64 {
	live := spot.Live(v.Pods)
	return max(v.Target.OnDemand-live.OnDemand, 0) + max(v.Target.Spot-live.Spot, 0)
}

// hold says why a pod of a workload should not be replaced for its type now.
func (r *Replacement) hold(key Key, v *inventory.View, now time.Time) string {
	if !v.Managed {
		return ""
	}
	if why := r.Hold(); why != "" {
		return why
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tries[key]
	if now.Before(t.next) {
		return fmt.Sprintf("%d replaced pods came back as what they were: the next is tried at %s", t.failed, t.next.UTC().Format(time.TimeOnly))
	}
	return ""
}

// tried takes in that a pod is replaced for its type. It happens while all others are
// well, so that what the one before has brought shows.
func (r *Replacement) tried(key Key, v *inventory.View, now time.Time) {
	off := distance(v)
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tries[key]
	if t.target == v.Target.Split && off >= t.off {
		t.failed++
		t.next = now.Add(min(firstRetry<<min(t.failed-1, 10), lastRetry))
	} else {
		t.failed, t.next = 0, time.Time{}
	}
	t.target, t.off = v.Target.Split, off
	r.tries[key] = t
}

// arrived takes in that a workload has its split: what comes next is another matter.
func (r *Replacement) arrived(key Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tries, key)
}

func (r *Replacement) retryAt(key Key) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tries[key].next
}
