package status

import "time"

// How long after a failed write of a status the next try comes: the pause doubles
// with every failure in a row.
const (
	firstRetry = time.Second
	maxRetry   = 16 * time.Second
)

// Retry is the back-off of one object whose status could not be written. The zero
// value has no failure behind it.
type Retry struct {
	pause time.Duration
	until time.Time
}

// Failed notes a failure, and returns when to try again. An attempt that was made
// during the pause, because there was something new to write, does not double it.
func (r *Retry) Failed(now time.Time) time.Time {
	if !now.Before(r.until) {
		r.pause = min(max(firstRetry, 2*r.pause), maxRetry)
		r.until = now.Add(r.pause)
	}
	return r.until
}

// Reset forgets the failures.
func (r *Retry) Reset() { *r = Retry{} }
