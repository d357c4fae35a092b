package backoff

import (
	"math"
	"testing"
	"time"
)

// The delay doubles until it reaches the limit, which need not be a multiple of the first delay.
func TestAfter(t *testing.T) {
	b := Backoff{First: time.Second, Most: 15 * time.Second}
	for failures, want := range map[int]time.Duration{
		-1: time.Second, 0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 4: 8 * time.Second,
		5: 15 * time.Second, 6: 15 * time.Second, 1000: 15 * time.Second, math.MaxInt: 15 * time.Second,
	} {
		if got := b.After(failures); got != want {
			t.Errorf("After(%d) = %s, want %s", failures, got, want)
		}
	}
	if got := (Backoff{First: time.Minute, Most: time.Second}).After(1); got != time.Second {
		t.Errorf("After(1) = %s with a limit below the first pause, want 1s", got)
	}
}
