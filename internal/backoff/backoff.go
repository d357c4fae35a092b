// Package backoff computes how long to wait after a failure: the pause doubles with
// every consecutive failure, up to a limit.
package backoff

import (
	"context"
	"time"
)

// Backoff are the pauses of one sort of work. Who does the work counts its failures,
// and begins anew after a success.
type Backoff struct {
	// First is the pause after the first failure, Most the longest one.
	First, Most time.Duration
}

// After is the pause after so many failures in a row. Where there was none it is the
// first: what ends all the time without a failure must not become a busy loop.
func (b Backoff) After(failures int) time.Duration {
	pause := b.First
	for ; failures > 1 && pause < b.Most; failures-- {
		pause *= 2
	}
	return min(pause, b.Most)
}

// Wait waits for a pause, or until ctx ends. It reports whether ctx goes on.
func Wait(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
