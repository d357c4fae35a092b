package store

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// clock measures the time since its start, independent of changes to the system clock.
type clock struct{ start time.Time }

// now is never 0.
func (c clock) now() int64 { return int64(time.Since(c.start)) + 1 }

// health tracks whether writes work.
type health struct {
	clock    clock
	patience time.Duration // that writes may fail or take
	// troubleSince is when the first of the writes began that have failed since the last success,
	// probing when the current probe began, and worked when the last successful write began: in
	// nanoseconds of the clock, 0 if there is none.
	troubleSince, probing, worked atomic.Int64
	cause                         atomic.Pointer[error]
}

// attempted records the result of a write that began at a time. A timeout of the caller says
// nothing about the store, nor does the failure of a write that began before another one that
// succeeded.
func (h *health) attempted(ctx context.Context, began int64, err error) {
	switch worked := h.worked.Load(); {
	case ctx.Err() != nil && err != nil:
	case err == nil, errors.Is(classify(err, true), ErrInvalid), errors.Is(classify(err, true), ErrFull):
		for began > worked && !h.worked.CompareAndSwap(worked, began) {
			worked = h.worked.Load()
		}
		h.troubleSince.Store(0)
		h.cause.Store(nil)
	case began < worked:
	default:
		// A timeout is less specific than a known cause.
		if !errors.Is(err, context.DeadlineExceeded) || h.cause.Load() == nil {
			h.cause.Store(&err)
		}
		h.troubleSince.CompareAndSwap(0, began)
	}
}

// responded records that a store that is too full for writes has responded to a read.
func (h *health) responded() { h.troubleSince.Store(0) }

// stalled returns nil while writes are answered. A single failure does not count: writes may fail
// or take as long as patience.
func (h *health) stalled() error {
	now := h.clock.now()
	lasted := func(since int64) time.Duration {
		if since == 0 {
			return 0
		}
		return time.Duration(now - since)
	}
	d := max(lasted(h.troubleSince.Load()), lasted(h.probing.Load()))
	if d <= h.patience {
		return nil
	}
	stalled := &StalledError{For: d}
	if cause := h.cause.Load(); cause != nil {
		stalled.Cause = *cause
	}
	return stalled
}
