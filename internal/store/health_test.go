package store

import (
	"context"
	"testing"
	"time"
)

// A write that etcd lost with its leader fails long after others have succeeded. It says nothing about the present
// state of the store.
func TestLateFailureIsIgnored(t *testing.T) {
	h := &health{clock: clock{time.Now().Add(-time.Minute)}, patience: 3 * time.Second}
	now := h.clock.now()
	lost, next := now-int64(20*time.Second), now-int64(10*time.Second)
	h.attempted(t.Context(), next, nil)
	h.attempted(t.Context(), lost, context.DeadlineExceeded)
	if err := h.stalled(); err != nil {
		t.Errorf("a failure of a write that began before a successful one counts: %v", err)
	}
	h.attempted(t.Context(), next+1, context.DeadlineExceeded)
	if h.stalled() == nil {
		t.Error("a failure of a write that began after a successful one does not count")
	}
	h.attempted(t.Context(), lost, nil) // a late answer is an answer nevertheless
	if err := h.stalled(); err != nil {
		t.Errorf("stalled() = %v after an answer", err)
	}
}
