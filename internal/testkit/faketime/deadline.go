package faketime

import (
	"context"
	"sync"
	"testing"
	"time"
)

// Deadline returns a context whose time is over as soon as the test says so. A clock runs on while a busy machine does
// nothing, so a deadline by the clock may pass before the code under test has come to what the test is about.
func Deadline(t testing.TB) (ctx context.Context, pass func()) {
	t.Helper()
	d := make(deadline)
	pass = sync.OnceFunc(func() { close(d) })
	t.Cleanup(pass) // what still waits ends with the test
	return d, pass
}

// deadline is closed when the time is over.
type deadline chan struct{}

// Deadline implements context.Context: the moment is not known in advance.
func (deadline) Deadline() (at time.Time, known bool) { return time.Time{}, false }

// Done implements context.Context.
func (d deadline) Done() <-chan struct{} { return d }

// Err implements context.Context.
func (d deadline) Err() error {
	select {
	case <-d:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Value implements context.Context.
func (deadline) Value(any) any { return nil }
