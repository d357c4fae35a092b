// Package eventually is test code: it waits for a condition that must become true, and
// reports how long it waited. Tests must not depend on the speed of the machine, so the
// time limit is far longer than a busy machine needs.
package eventually

import (
	"testing"
	"time"
)

// Limit is when a test fails: at a load of 60 on two processors, what takes a tenth of a second
// takes several seconds.
const Limit = 3 * time.Minute

// pause is the polling interval.
const pause = 5 * time.Millisecond

// True waits until a condition holds, and returns how long that took. It fails the test if that
// takes longer than Limit.
func True(t testing.TB, what string, holds func() bool) time.Duration {
	t.Helper()
	return Within(t, Limit, what, holds)
}

// Within is True with a different limit: one that is a property of the server, such as how many
// readings a decision takes, or a longer one.
func Within(t testing.TB, limit time.Duration, what string, holds func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !holds() {
		if time.Since(began) > limit {
			t.Fatalf("within %s this did not come true: %s", limit, what)
		}
		time.Sleep(pause)
	}
	return time.Since(began)
}
