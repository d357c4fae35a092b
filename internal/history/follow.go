package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Store is the part of *store.Store that the history uses.
type Store interface {
	Revision(ctx context.Context) (int64, error)
	WatchStatuses(ctx context.Context, from int64) <-chan store.Batch
}

// again is the backoff after the watch ended, and after the files could not be written.
var again = backoff.Backoff{First: 100 * time.Millisecond, Most: 10 * time.Second}

// Run writes what the store shows until ctx is done. It goes on where it ended when the server last
// ran.
func (l *Log) Run(ctx context.Context) error {
	for failures := 1; ; failures++ {
		before := l.complete()
		err := l.follow(ctx)
		if ctx.Err() != nil {
			return l.mark()
		}
		if l.complete() > before {
			failures = 1
		}
		l.options.Logger.Warn("the history of decisions is behind", "revision", l.complete(), "error", err)
		if !backoff.Wait(ctx, again.After(failures)) {
			return l.mark()
		}
	}
}

// complete returns the revision up to which the log is complete.
func (l *Log) complete() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.through
}

// follow writes what a watch shows until it ends.
func (l *Log) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	revision, err := l.options.Store.Revision(ctx)
	switch {
	case err != nil:
		return err
	case revision < l.complete():
		l.failed.Inc()
		return fmt.Errorf("the history in %s ends at revision %d, and the store is at %d: the files are those of another store; move them away, or choose another directory", l.options.Dir, l.complete(), revision)
	}
	for batch := range l.options.Store.WatchStatuses(ctx, l.complete()+1) {
		if compacted, ok := errors.AsType[*store.CompactedError](batch.Err); ok {
			return l.missed(ctx, compacted.Revision)
		}
		if batch.Err != nil {
			return batch.Err
		}
		var lines []line
		for i := range batch.Records {
			record := &batch.Records[i]
			if !slices.Contains(api.HistoryKinds, record.Key.Kind) {
				continue
			}
			if line, ok := lineOf(record, l.options.Now()); ok {
				lines = append(lines, line)
			}
		}
		if err := l.append(lines, batch.Revision); err != nil {
			return err
		}
	}
	return errors.New("the watch ended")
}

// missed takes from other servers what the store no longer has, the changes up to a revision, and writes
// that they are missing as far as no server has them.
func (l *Log) missed(ctx context.Context, until int64) error {
	first := l.complete()
	if err := l.take(ctx, until); err != nil {
		return err
	}
	through := l.complete()
	if through < until {
		reason := "this server did not run, and the store no longer had the changes when it started again"
		if through == 0 {
			reason = "this server keeps the history from here on"
		}
		if err := l.append([]line{{Gap: &api.HistoryGap{After: through, Until: until, Reason: reason}}}, until); err != nil {
			return err
		}
	}
	return fmt.Errorf("the store no longer has the revisions from %d to %d: %d of them are from other servers", first+1, until, through-first)
}
