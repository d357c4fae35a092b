// Package firstread lets a writer wait until the signals have processed a change: every changed object
// has been read or probed once.
package firstread

import (
	"context"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// courtesy is how long a change delays writers of other objects. Without a limit, one provider that
// hangs would slow down every write; without any delay, a burst of related writes would be decided
// before their metrics are read.
const courtesy = time.Second

// Tracker tracks which changes have not been processed yet.
type Tracker struct {
	mu      sync.Mutex
	seen    int64 // all changes up to this revision have been opened
	written int64 // newest revision of a status write that processed a change
	open    map[api.Key]change
	moved   chan struct{} // closed and replaced whenever one of the above changes
}

// change is an unprocessed change: the object changed in since and last in latest, which was
// noticed at noticed.
type change struct {
	since, latest int64
	noticed       time.Time
}

// New returns an empty Tracker.
func New() *Tracker {
	return &Tracker{open: map[api.Key]change{}, moved: make(chan struct{})}
}

// Open records that the object changed between two revisions, both included.
func (t *Tracker) Open(key api.Key, since, latest int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, ok := t.open[key]; ok {
		since = min(since, old.since)
		latest = max(latest, old.latest)
	}
	t.open[key] = change{since: since, latest: latest, noticed: time.Now()}
}

// Latest returns the revision to pass to Close once everything known of the object so far is
// processed; 0 if nothing is open.
func (t *Tracker) Latest(key api.Key) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[key].latest
}

// Close records that the object is processed up to a revision, by a status write with the revision
// written, or 0.
func (t *Tracker) Close(key api.Key, latest, written int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.open[key]
	if !ok || c.latest > latest {
		return
	}
	delete(t.open, key)
	t.written = max(t.written, written)
	t.wake()
}

// Advance records that all changes up to a revision have been opened.
func (t *Tracker) Advance(revision int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if revision > t.seen {
		t.seen = revision
		t.wake()
	}
}

// Reach waits until all changes up to a revision have been opened.
func (t *Tracker) Reach(ctx context.Context, revision int64) error {
	for {
		t.mu.Lock()
		reached, moved := t.seen >= revision, t.moved
		t.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (t *Tracker) wake() {
	close(t.moved)
	t.moved = make(chan struct{})
}

// Wait returns once the changes up to a revision are processed, or ctx is done. It waits without a
// limit for objects that changed in exactly this revision, and for those that changed earlier only
// during their first second. It returns the revision that shows the results.
func (t *Tracker) Wait(ctx context.Context, revision int64) (int64, error) {
	for {
		written, pause, moved := t.look(revision)
		if moved == nil {
			return max(revision, written), nil
		}
		var timeout <-chan time.Time
		var timer *time.Timer
		if pause > 0 {
			timer = time.NewTimer(pause)
			timeout = timer.C
		}
		var err error
		select {
		case <-moved:
		case <-timeout:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if timer != nil {
			timer.Stop()
		}
		if err != nil {
			return max(revision, written), err
		}
	}
}

// look returns a nil channel if nothing delays the revision; otherwise the channel, and the time
// after which that may have changed by itself.
func (t *Tracker) look(revision int64) (written int64, pause time.Duration, moved <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen < revision {
		return t.written, 0, t.moved
	}
	exact := false
	for _, c := range t.open {
		switch {
		case c.since > revision:
		case c.latest >= revision:
			exact = true
		default:
			pause = max(pause, courtesy-time.Since(c.noticed))
		}
	}
	switch {
	case exact:
		return t.written, 0, t.moved
	case pause > 0:
		return t.written, pause, t.moved
	}
	return t.written, 0, nil
}
