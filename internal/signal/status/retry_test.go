package status

import (
	"testing"
	"time"
)

// The delay doubles with every failure, up to a limit. Attempts during a delay do not change it.
func TestRetryPauses(t *testing.T) {
	var r Retry
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 16 * time.Second} {
		at := r.Failed(now)
		if pause := at.Sub(now); pause != want {
			t.Errorf("pause %s, want %s", pause, want)
		}
		for range 10 {
			if again := r.Failed(now.Add(at.Sub(now) / 2)); !again.Equal(at) {
				t.Errorf("a failure during the pause moves its end from %s to %s", at, again)
			}
		}
		now = at
	}
	r.Reset()
	if pause := r.Failed(now).Sub(now); pause != time.Second {
		t.Errorf("pause %s after a success, want 1s", pause)
	}
}
