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
type Retry struct{ pause time.Duration }

// Failed notes a failure, and returns how long to wait.
func (r *Retry) Failed() time.Duration {
	r.pause = min(max(firstRetry, 2*r.pause), maxRetry)
	return r.pause
}

// Reset forgets the failures.
func (r *Retry) Reset() { r.pause = 0 }
