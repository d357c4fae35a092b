package store

import (
	"context"
	"sync"
)

// failure is the end of a store whose data can no longer be trusted: the embedded member has
// failed, or the store is not the one that was opened.
type failure struct {
	once   sync.Once
	report func(error)
	// dead is done when the store has failed: the embedded member no longer responds, and may not
	// even finish requests in progress. Its cause is why.
	dead context.Context
	died context.CancelCauseFunc
}

func newFailure(report func(error)) *failure {
	f := &failure{report: report}
	f.dead, f.died = context.WithCancelCause(context.Background())
	return f
}

// fatal reports once that the store has failed.
func (f *failure) fatal(err error) {
	f.once.Do(func() {
		f.died(err)
		f.report(err)
	})
}

// cause returns why the store has failed; nil = it has not.
func (f *failure) cause() error { return context.Cause(f.dead) }

// bound returns a context that is also done when the store fails, until end is called.
func (f *failure) bound(ctx context.Context) (bounded context.Context, end func()) {
	bounded, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(f.dead, func() { cancel(f.cause()) })
	return bounded, func() {
		stop()
		cancel(nil)
	}
}
