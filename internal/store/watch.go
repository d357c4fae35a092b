package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
)

// watchBuffer is how many batches are buffered for the reader before etcd must hold them.
const watchBuffer = 64

// watcher watches the objects.
type watcher struct {
	etcd      *connection
	envelopes *envelopes
	metrics   *storeMetrics
	logger    *slog.Logger

	watches atomic.Int64 // number of watches
	watched atomic.Int64 // highest revision that any of them has reached
}

// isBehind reports whether the store has revisions that no watch has reached.
func (w *watcher) isBehind() bool {
	return w.watches.Load() > 0 && w.watched.Load() < w.etcd.revision.Load()
}

// Watch delivers all changes from a revision on, in order, complete revisions only. It is a single
// etcd watch: a process needs only one and distributes the events itself. The channel is closed
// after a batch with Err, or when ctx is done.
func (w *watcher) Watch(ctx context.Context, from int64) <-chan Batch {
	out := make(chan Batch, watchBuffer)
	w.watches.Add(1)
	go func() {
		defer close(out)
		defer w.watches.Add(-1)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(w.etcd.closed, cancel)() //nolint:contextcheck // the watch ends with the store too
		if err := fault.Confine("", func() error { return w.watch(ctx, from, out) }); err != nil {
			select {
			case out <- Batch{Err: err}:
			case <-ctx.Done():
			}
		}
	}()
	return out
}

// watchAgain is the backoff for resuming a watch.
var watchAgain = backoff.Backoff{First: 10 * time.Millisecond, Most: time.Second}

// watch reads until ctx is done (nil) or the reader must load again. A broken stream is resumed
// where it ended.
func (w *watcher) watch(ctx context.Context, next int64, out chan<- Batch) error {
	for failures := 1; ; failures++ {
		before := next
		err := w.watchStream(ctx, &next, out)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the reader is gone, nothing failed
		case errors.Is(err, ErrCompacted):
			return err
		}
		if next > before {
			failures = 1
		}
		w.metrics.watchRestarts.Inc()
		w.logger.Warn("the watch of the store broke; resuming it", "revision", next, "error", err)
		if !backoff.Wait(ctx, watchAgain.After(failures)) {
			return nil
		}
	}
}

func (w *watcher) watchStream(ctx context.Context, next *int64, out chan<- Batch) error {
	ctx, cancel := context.WithCancel(w.etcd.streamContext(ctx))
	defer cancel()
	stream := w.etcd.client.Watch(ctx, specPrefix, clientv3.WithRange(systemPrefix), clientv3.WithRev(*next),
		clientv3.WithProgressNotify(), clientv3.WithFragment())
	for resp := range stream {
		if resp.CompactRevision != 0 {
			return fmt.Errorf("%w: revisions before %d are compacted", ErrCompacted, resp.CompactRevision)
		}
		if err := resp.Err(); err != nil {
			return classify(err, false)
		}
		if err := w.etcd.sameCluster(resp.Header.ClusterId); err != nil {
			return err
		}
		batch, err := w.toBatch(&resp)
		if err != nil {
			return err
		}
		if batch.Revision < *next {
			// A notification without news.
			continue
		}
		w.etcd.sawRevision(batch.Revision)
		select {
		case out <- batch:
			*next = batch.Revision + 1
			w.watched.Store(batch.Revision)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.New("the stream ended")
}

// toBatch converts a watch response to a batch. The revision is that of the last event: the header
// of a response to a watch that is catching up is ahead of it.
func (w *watcher) toBatch(resp *clientv3.WatchResponse) (Batch, error) {
	if len(resp.Events) == 0 {
		if !resp.IsProgressNotify() {
			return Batch{}, nil
		}
		return Batch{Revision: resp.Header.Revision}, nil
	}
	batch := Batch{Records: make([]Record, len(resp.Events))}
	for i, event := range resp.Events {
		record, err := w.envelopes.toRecord(event.Kv)
		if err != nil {
			return Batch{}, err
		}
		if event.Type == clientv3.EventTypeDelete {
			record.Value, record.Damage = nil, nil
		}
		batch.Records[i] = record
		batch.Revision = record.ModRevision
	}
	return batch, nil
}

// RequestProgress requests a batch on the watch that says which revision it has reached. Without
// it, a reader that waits for a revision in which nothing watched has changed would wait forever.
func (w *watcher) RequestProgress(ctx context.Context) error {
	if err := w.etcd.client.RequestProgress(w.etcd.streamContext(ctx)); err != nil {
		return fmt.Errorf("ask for the progress of the watch: %w", classify(err, false))
	}
	return nil
}
