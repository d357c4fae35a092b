package reconcile

import (
	"context"
	"fmt"
	"sync"
)

// settled is the revision of the store up to which every decision is durable and visible.
type settled struct {
	mu       sync.Mutex
	revision int64         // guarded by mu
	changed  chan struct{} // guarded by mu; closed and replaced when revision grows
}

func newSettled() *settled { return &settled{changed: make(chan struct{})} }

// reach says that every decision that follows from a revision is visible.
func (s *settled) reach(revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if revision > s.revision {
		s.revision = revision
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// forget says that what was visible so far was only known, and not decided.
func (s *settled) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision = 0
}

// wait waits until every decision that follows from a revision is visible. The error is
// that of ctx.
func (s *settled) wait(ctx context.Context, revision int64) error {
	for {
		s.mu.Lock()
		reached, changed := s.revision, s.changed
		s.mu.Unlock()
		if reached >= revision {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for the decisions of revision %d: %w", revision, ctx.Err())
		}
	}
}
