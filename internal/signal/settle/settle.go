// Package settle lets a writer wait until the signals have answered a change:
// every changed object has been read or probed once.
package settle

import (
	"context"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// courtesy is how long a change holds up writers of other objects. Without a
// limit one provider that hangs would slow down every write; without any wait a
// burst of related writes would be decided before its metrics are read.
const courtesy = time.Second

// Tracker knows which changes have not been answered yet.
type Tracker struct {
	mu      sync.Mutex
	seen    int64 // every change up to here has been opened
	written int64 // newest revision of a status write that answered a change
	open    map[api.Key]change
	moved   chan struct{} // closed and replaced whenever something above changes
}

// change is an unanswered change: the object changed in since, for the last
// time in latest, and this was noticed at the moment noticed.
type change struct {
	since, latest int64
	noticed       time.Time
}

// New makes an empty Tracker.
func New() *Tracker {
	return &Tracker{open: map[api.Key]change{}, moved: make(chan struct{})}
}

// Open notes that the object changed between two revisions, both included, and
// has to be answered.
func (t *Tracker) Open(key api.Key, since, latest int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, ok := t.open[key]; ok {
		since = min(since, old.since)
		latest = max(latest, old.latest)
	}
	t.open[key] = change{since: since, latest: latest, noticed: time.Now()}
}

// Latest is the revision to give to Close once everything known of the object
// so far is answered; 0 when nothing is open.
func (t *Tracker) Latest(key api.Key) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[key].latest
}

// Close notes that the object is answered up to a revision, by a status write
// that has the revision written, 0 for none.
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

// Advance notes that every change up to a revision has been opened.
func (t *Tracker) Advance(revision int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if revision > t.seen {
		t.seen = revision
		t.wake()
	}
}

// Reach waits until every change up to a revision has been opened.
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

// Wait returns once the changes up to a revision are answered, or ctx ends. It
// waits without limit for the objects that changed in that very revision, and
// for those that changed earlier only in their first second. It returns the
// revision that shows the answers.
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

// look returns a nil channel when nothing holds the revision up; otherwise the
// channel, and the pause after which time alone may have changed that.
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
