package store

import (
	"context"
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

// maxBatch is the number of status writes that a Batcher passes to the store at once: as many as
// Derive writes concurrently.
const maxBatch = maxDeriveWrites * maxDeriveConcurrent

// Batcher combines single status writes of many goroutines into few transactions: writes that
// arrive during a transaction go into the next one.
type Batcher struct {
	store   *Store
	queue   chan submission
	stopped chan struct{}
}

type submission struct {
	write StatusWrite
	done  chan outcome // has a capacity of one
}

// NewBatcher returns a batcher. Submit works only while Run is running.
func NewBatcher(s *Store) *Batcher {
	return &Batcher{store: s, queue: make(chan submission, maxBatch), stopped: make(chan struct{})}
}

// Run writes what is submitted until ctx is done. It may be called once.
func (b *Batcher) Run(ctx context.Context) error {
	defer func() {
		if ctx.Err() != nil { // otherwise it panicked and is restarted
			close(b.stopped)
		}
	}()
	var deferred []submission
	for {
		batch := deferred
		if len(batch) == 0 {
			select {
			case <-ctx.Done():
				return nil
			case first := <-b.queue:
				batch = append(batch, first)
			}
		}
		batch = b.drain(batch)
		batch, deferred = distinct(batch)
		writes := make([]StatusWrite, len(batch))
		for i, sub := range batch {
			writes[i] = sub.write
		}
		for i, o := range b.store.derive(ctx, writes) {
			batch[i].done <- o
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

func (b *Batcher) drain(batch []submission) []submission {
	for len(batch) < maxBatch {
		select {
		case sub := <-b.queue:
			batch = append(batch, sub)
		default:
			return batch
		}
	}
	return batch
}

// distinct returns the first write of every object, and the others separately, because a
// transaction cannot write a key twice.
func distinct(batch []submission) (now, later []submission) {
	seen := make(map[api.Key]bool, len(batch))
	for _, sub := range batch {
		if seen[sub.write.Key] {
			later = append(later, sub)
			continue
		}
		seen[sub.write.Key] = true
		now = append(now, sub)
	}
	return now, later
}

// Submit writes one status part and returns its revision, or a *ConflictError if its Spec part has
// changed. If ctx is done first, or the store takes longer than two transactions may, the write may
// still happen, and the error is ErrUncertain.
func (b *Batcher) Submit(ctx context.Context, write StatusWrite) (int64, error) {
	within, span := tracing.Start(ctx, "store derive")
	revision, err := b.submit(within, write)
	if span.Recording() && err == nil {
		span.Object(string(write.Key.Kind), write.Key.Namespace, write.Key.Name)
		ended(span, 1, revision)
		b.store.options.Tracer.Caused(ctx, revision)
	}
	span.End(err)
	return revision, err
}

func (b *Batcher) submit(ctx context.Context, write StatusWrite) (int64, error) {
	if err := checkStatusWrite(write); err != nil {
		return 0, err
	}
	// One for earlier submissions, one for this write.
	ctx, cancel := context.WithTimeout(ctx, 2*b.store.options.RequestTimeout)
	defer cancel()
	sub := submission{write, make(chan outcome, 1)}
	select {
	case <-b.stopped:
		return 0, fmt.Errorf("%w: it is closing", ErrUnavailable)
	case <-ctx.Done():
		return 0, ctx.Err()
	case b.queue <- sub:
	}
	select {
	case o := <-sub.done:
		return o.result()
	case <-ctx.Done():
		return 0, fmt.Errorf("%w: %w", ErrUncertain, ctx.Err())
	case <-b.stopped:
	}
	// The last batch may have been finished while the batcher stopped.
	select {
	case o := <-sub.done:
		return o.result()
	default:
		return 0, fmt.Errorf("%w: it is closing", ErrUnavailable)
	}
}

func (o outcome) result() (int64, error) {
	if o.conflict != nil {
		return 0, newConflictError([]Conflict{*o.conflict})
	}
	return o.revision, o.err
}
