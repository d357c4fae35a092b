// Package backoff computes how long to wait after a failure: the pause doubles with
// every consecutive failure, up to a limit.
package backoff

import (
	"context"
	"time"
)

// Backoff is an exponential backoff. The caller counts its failures, and resets the count after a
// success.
type Backoff struct {
	// First is the delay after the first failure, Most the maximum.
	First, Most time.Duration
}

// After returns the delay after a number of consecutive failures. After 0 failures it is First: an
// operation that keeps ending without failure must not become a busy loop.
func (b Backoff) After(failures int) time.Duration {
	pause := b.First
	for ; failures > 1 && pause < b.Most; failures-- {
		pause *= 2
	}
	return min(pause, b.Most)
}

// Wait waits for a delay, or until ctx is done. It reports whether ctx is not done.
func Wait(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
