package status

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
)

// writeAgain is the backoff after a failed write of a status.
var writeAgain = backoff.Backoff{First: time.Second, Most: 16 * time.Second}

// Retry tracks the backoff of one object whose status could not be written. The zero value has no
// failures.
type Retry struct {
	failures int
	until    time.Time
}

// Failed records a failure, and returns when to retry. A failed attempt during the delay, because
// of a new change, does not double it.
func (r *Retry) Failed(now time.Time) time.Time {
	if !now.Before(r.until) {
		r.failures++
		r.until = now.Add(writeAgain.After(r.failures))
	}
	return r.until
}

// Reset resets the backoff.
func (r *Retry) Reset() { *r = Retry{} }
