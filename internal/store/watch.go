package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
)

// watchBuffer is how many batches may wait for the reader before etcd has to
// hold them.
const watchBuffer = 64

// Watch delivers every change from a revision on, whole revisions only and in
// order. It is one etcd watch: a process needs one, and fans out itself. The
// channel is closed after a batch with Err, or when ctx ends.
func (s *Store) Watch(ctx context.Context, from int64) <-chan Batch {
	out := make(chan Batch, watchBuffer)
	s.watches.Add(1)
	go func() {
		defer close(out)
		defer s.watches.Add(-1)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)() //nolint:contextcheck // the watch ends with the store too
		if err := fault.Confine("", func() error { return s.watch(ctx, from, out) }); err != nil {
			select {
			case out <- Batch{Err: err}:
			case <-ctx.Done():
			}
		}
	}()
	return out
}

// watchAgain is when a watch that broke is taken up again.
var watchAgain = backoff.Backoff{First: 10 * time.Millisecond, Most: time.Second}

// watch reads until ctx ends (nil) or the reader has to load again. A stream
// that merely breaks is taken up where it ended.
func (s *Store) watch(ctx context.Context, next int64, out chan<- Batch) error {
	for failures := 1; ; failures++ {
		before := next
		err := s.watchStream(ctx, &next, out)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the reader has gone, nothing failed
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

func (s *Store) watchStream(ctx context.Context, next *int64, out chan<- Batch) error {
	ctx, cancel := context.WithCancel(s.streamContext(ctx))
	defer cancel()
	stream := s.client.Watch(ctx, specPrefix, clientv3.WithRange(systemPrefix), clientv3.WithRev(*next),
		clientv3.WithProgressNotify(), clientv3.WithFragment())
	for resp := range stream {
		if resp.CompactRevision != 0 {
			return fmt.Errorf("%w: revisions before %d are compacted", ErrCompacted, resp.CompactRevision)
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
			// A notification that tells nothing new.
			continue
		}
		s.sawRevision(batch.Revision)
		select {
		case out <- batch:
			*next = batch.Revision + 1
			s.watched.Store(batch.Revision)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.New("the stream ended")
}

// toBatch turns an answer of a watch into a batch. The revision is that of the
// last event: the header of an answer to a watch that catches up is ahead of it.
func (s *Store) toBatch(resp *clientv3.WatchResponse) (Batch, error) {
	if len(resp.Events) == 0 {
		if !resp.IsProgressNotify() {
			return Batch{}, nil
		}
		return Batch{Revision: resp.Header.Revision}, nil
	}
	batch := Batch{Records: make([]Record, len(resp.Events))}
	for i, event := range resp.Events {
		record, err := s.envelopes.toRecord(event.Kv)
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

// streamContext makes a member without a leader end the stream instead of
// falling silent. The embedded member has nobody to lose.
func (s *Store) streamContext(ctx context.Context) context.Context {
	if s.member != nil {
		return ctx
	}
	return clientv3.WithRequireLeader(ctx)
}

// RequestProgress asks for a batch on the watch that says how far it has come.
// A reader that waits for a revision in which nothing it watches has changed
// would wait for ever without.
func (s *Store) RequestProgress(ctx context.Context) error {
	if err := s.client.RequestProgress(s.streamContext(ctx)); err != nil {
		return fmt.Errorf("ask for the progress of the watch: %w", classify(err, false))
	}
	return nil
}
