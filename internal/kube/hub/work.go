package hub

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/keyed"
)

const (
	// requestsAtOnce limits the keys that are worked on at the same time.
	requestsAtOnce = 8
	// Apart is the least time between working on a key twice: what becomes due in between is done
	// together.
	Apart = time.Second
)

// Work does something for the keys that are due, in the background, until it succeeds.
type Work[K comparable] struct {
	do     func(context.Context, K) error
	failed func(K, error)
	slots  *semaphore.Weighted
	group  *keyed.Group[K]

	mu      sync.Mutex
	waiting map[K]bool // guarded by mu: true = became due since do was called last
	failing map[K]bool // guarded by mu
}

// NewWork returns Work without keys. do is called for one key at most once at a time; failed with the
// first of several failures in a row. name names a key in panics, which faults records.
func NewWork[K comparable](faults *fault.Component, name func(K) string, do func(context.Context, K) error, failed func(K, error)) *Work[K] {
	return &Work[K]{
		do: do, failed: failed, slots: semaphore.NewWeighted(requestsAtOnce), group: keyed.New(faults, name),
		waiting: map[K]bool{}, failing: map[K]bool{},
	}
}

// Run works until ctx is done.
func (w *Work[K]) Run(ctx context.Context) error { return w.group.Run(ctx) }

// Due makes a key worked on, now or after what is being done for it.
func (w *Work[K]) Due(key K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, running := w.waiting[key]
	w.waiting[key] = true
	if !running {
		w.group.Start(key, func(ctx context.Context) error { w.keepDoing(ctx, key); return nil })
	}
}

// Count returns how many keys are being worked on or just were, and how many of them fail.
func (w *Work[K]) Count() (waiting, failing int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting), len(w.failing)
}

// keepDoing works on a key until there is nothing new.
func (w *Work[K]) keepDoing(ctx context.Context, key K) {
	for failures := 0; ; {
		err := w.once(ctx, key)
		if ctx.Err() != nil {
			return
		}
		pause := Apart
		if err == nil {
			failures = 0
		} else {
			if failures++; failures == 1 {
				w.failed(key, err)
			}
			pause = again.After(failures)
		}
		w.mu.Lock()
		if err == nil {
			delete(w.failing, key)
		} else {
			w.failing[key] = true
		}
		w.mu.Unlock()
		if !backoff.Wait(ctx, pause) {
			return
		}
		w.mu.Lock()
		if err == nil && !w.waiting[key] {
			delete(w.waiting, key)
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
	}
}

func (w *Work[K]) once(ctx context.Context, key K) error {
	if err := w.slots.Acquire(ctx, 1); err != nil {
		return err
	}
	defer w.slots.Release(1)
	w.mu.Lock()
	w.waiting[key] = false
	w.mu.Unlock()
	return w.do(ctx, key)
}
