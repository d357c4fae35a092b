package store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
)

// watchBuffer is how many batches are buffered for the reader before etcd must hold them.
const watchBuffer = 64

// Watch delivers all changes from a revision on, in order, complete revisions only. It is a single
// etcd watch: a process needs only one and distributes the events itself. The channel is closed
// after a batch with Err, or when ctx is done.
func (s *Store) Watch(ctx context.Context, from int64) <-chan Batch {
	return s.watchRange(ctx, from, watched{from: specPrefix, to: systemPrefix, reached: &s.watched})
}

// WatchStatuses is like Watch for the Status parts alone, each with its value before.
func (s *Store) WatchStatuses(ctx context.Context, from int64) <-chan Batch {
	return s.watchRange(ctx, from, watched{from: statusPrefix, to: clientv3.GetPrefixRangeEnd(statusPrefix), before: true})
}

// watched is what a watch is about.
type watched struct {
	from, to string        // range of keys
	before   bool          // with the values before
	reached  *atomic.Int64 // receives the revision that the watch has reached; nil = nobody asks
}

func (s *Store) watchRange(ctx context.Context, from int64, about watched) <-chan Batch {
	out := make(chan Batch, watchBuffer)
	s.watches.Add(1)
	go func() {
		defer close(out)
		defer s.watches.Add(-1)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)() //nolint:contextcheck // the watch ends with the store too
		if err := recovery.Confine("", func() error { return s.watch(ctx, from, about, out) }); err != nil {
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
func (s *Store) watch(ctx context.Context, next int64, about watched, out chan<- Batch) error {
	for failures := 1; ; failures++ {
		before := next
		err := s.watchStream(ctx, &next, about, out)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the reader is gone, nothing failed
		case errors.Is(err, ErrCompacted):
			return err
		}
		if next > before {
			failures = 1
		}
		s.metrics.watchRestarts.Inc()
		s.options.Logger.Warn("the watch of the store broke; resuming it", "revision", next, "error", err)
		if !backoff.Wait(ctx, watchAgain.After(failures)) {
			return nil
		}
	}
}

func (s *Store) watchStream(ctx context.Context, next *int64, about watched, out chan<- Batch) error {
	ctx, cancel := context.WithCancel(s.streamContext(ctx))
	defer cancel()
	options := []clientv3.OpOption{clientv3.WithRange(about.to), clientv3.WithRev(*next), clientv3.WithProgressNotify(), clientv3.WithFragment()}
	if about.before {
		options = append(options, clientv3.WithPrevKV())
	}
	stream := s.client.Watch(ctx, about.from, options...)
	for resp := range stream {
		if resp.CompactRevision != 0 {
			return &CompactedError{resp.CompactRevision}
		}
		if err := resp.Err(); err != nil {
			return classify(err, false)
		}
		if resp.Header.ClusterId != s.clusterID {
			return s.isReplaced(fmt.Sprintf("its cluster id is %x, it was %x", resp.Header.ClusterId, s.clusterID))
		}
		batch, err := s.toBatch(&resp)
		if err != nil {
			return err
		}
		if batch.Revision < *next {
			// A notification without news.
			continue
		}
		s.sawRevision(batch.Revision)
		select {
		case out <- batch:
			*next = batch.Revision + 1
			if about.reached != nil {
				about.reached.Store(batch.Revision)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.New("the stream ended")
}

// toBatch converts a watch response to a batch. The revision is that of the last event: the header
// of a response to a watch that is catching up is ahead of it.
func (s *Store) toBatch(resp *clientv3.WatchResponse) (Batch, error) {
	if len(resp.Events) == 0 {
		if !resp.IsProgressNotify() {
			return Batch{}, nil
		}
		return Batch{Revision: resp.Header.Revision}, nil
	}
	batch := Batch{Records: make([]Record, len(resp.Events))}
	for i, event := range resp.Events {
		record, err := toRecord(event.Kv)
		if err != nil {
			return Batch{}, err
		}
		if event.Type == clientv3.EventTypeDelete {
			record.Value, record.Damage = nil, nil
		}
		if event.PrevKv != nil {
			if before, err := openEnvelope(event.PrevKv); err == nil { // a damaged one is as unknown as one that is not kept
				record.Before = before
			}
		}
		batch.Records[i] = record
		batch.Revision = record.ModRevision
	}
	return batch, nil
}

// RequestProgress requests a batch on the watch that says which revision it has reached. Without
// it, a reader that waits for a revision in which nothing watched has changed would wait forever.
func (s *Store) RequestProgress(ctx context.Context) error {
	if err := s.client.RequestProgress(s.streamContext(ctx)); err != nil {
		return fmt.Errorf("ask for the progress of the watch: %w", classify(err, false))
	}
	return nil
}
