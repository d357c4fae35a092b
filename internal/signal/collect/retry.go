package collect

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/status"
)

// stored applies what was stored, and returns what could not be stored, which is retried
// separately.
func (l *loop) stored(apply map[api.Key]func()) (unanswered []api.Key) {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	for key, done := range apply {
		done()
		delete(l.retries, key)
	}
	return slices.Collect(maps.Keys(l.retries))
}

// retry is a status that could not be stored, and when to retry it. A write that failed may have been
// stored all the same, so another one must follow, even if the status is again what was stored before.
type retry struct {
	status.Retry
	at time.Time
}

// refused returns which statuses were not stored, and schedules retries.
func (l *loop) refused(ctx context.Context, writes []status.Write, err error) []api.Key {
	if err == nil {
		return nil
	}
	var keys []api.Key
	var stale *status.StaleError
	if errors.As(err, &stale) {
		keys = append(keys, stale.Keys...)
	}
	var some *status.FailedError
	var failed []api.Key
	switch {
	case errors.As(err, &some):
		failed = slices.Collect(maps.Keys(some.Failed))
	case stale == nil:
		for _, w := range writes {
			failed = append(failed, api.KeyOf(w.Object))
		}
	}
	if len(failed) > 0 && ctx.Err() == nil {
		l.c.Logger.Warn("the statuses of metrics could not be stored; retrying", "provider", l.key.Path(), "error", err)
	}
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	now := l.c.Now()
	for _, key := range failed {
		r := l.retries[key]
		if r == nil {
			r = &retry{}
			l.retries[key] = r
		}
		r.at = r.Failed(now)
		l.readAllAt(r.at)
	}
	return append(keys, failed...)
}

// waits reports whether the status of an object could not be stored and its retry is not due yet. The
// reading for the retry is scheduled again: the present one may have taken its place.
func (l *loop) waits(key api.Key, now time.Time) bool {
	r := l.retries[key]
	if r == nil || !now.Before(r.at) {
		return false
	}
	l.readAllAt(r.at)
	return true
}
