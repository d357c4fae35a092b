package store

import (
	"context"
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// maxBatch is how many status writes a Batcher passes to the store at once: as
// many as Derive writes concurrently.
const maxBatch = maxDeriveWrites * maxDeriveConcurrent

// Batcher joins single status writes of many goroutines into few transactions:
// whatever arrives while one is being written goes into the next.
type Batcher struct {
	store   *Store
	queue   chan submission
	stopped chan struct{}
}

type submission struct {
	write StatusWrite
	done  chan outcome // has room for one
}

// NewBatcher makes a batcher; Run has to be running for Submit to work.
func NewBatcher(s *Store) *Batcher {
	return &Batcher{store: s, queue: make(chan submission, maxBatch), stopped: make(chan struct{})}
}

// Run writes what is submitted until ctx ends. It may be called once.
func (b *Batcher) Run(ctx context.Context) error {
	defer func() {
		if ctx.Err() != nil { // else it panicked, and is begun again
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

// distinct keeps the first write of every object and puts off the others, which
// a transaction could not hold beside it.
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

// Submit writes one status part and returns its revision, or a *ConflictError
// when its Spec part has changed. When ctx ends first, or the store takes longer
// than for two transactions, the write may still happen, and the error is
// ErrUncertain.
func (b *Batcher) Submit(ctx context.Context, write StatusWrite) (int64, error) {
	if err := checkStatusWrite(write); err != nil {
		return 0, err
	}
	// One for what was submitted before, one for this write.
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
	// The last batch may have been answered while the batcher stopped.
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
