package status

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
)

// writeAgain is how long after a failed write of a status the next try comes.
var writeAgain = backoff.Backoff{First: time.Second, Most: 16 * time.Second}

// Retry is the back-off of one object whose status could not be written. The zero
// value has no failure behind it.
type Retry struct {
	failures int
	until    time.Time
}

// Failed notes a failure, and returns when to try again. An attempt that was made
// during the pause, because there was something new to write, does not double it.
func (r *Retry) Failed(now time.Time) time.Time {
	if !now.Before(r.until) {
		r.failures++
		r.until = now.Add(writeAgain.After(r.failures))
	}
	return r.until
}

// Reset forgets the failures.
func (r *Retry) Reset() { *r = Retry{} }
