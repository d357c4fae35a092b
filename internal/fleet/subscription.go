package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"weak"
)

// errTooOld is returned to a subscriber that has fallen too far behind: it has lost changes and
// must start over with a new subscription.
var errTooOld = errors.New("the subscriber is too far behind the changes")

// Batch contains the changes of one publication: all changes of one or more complete revisions, at
// most one for each object.
type Batch struct {
	Revision int64
	Changes  []Change
	// Snapshot is the snapshot after the changes.
	Snapshot *Snapshot
	// Reset says that the changes are the difference to the snapshot that the subscriber last saw,
	// without intermediate steps.
	Reset bool
	// Passed says that some objects were created and deleted again. A consumer that already knows
	// some revisions of the batch may know such an object, and no change says that it is gone.
	Passed bool
}

// node is one publication in the list that subscriptions walk. The fleet only holds the last node;
// nodes before the positions of all subscriptions are garbage.
type node struct {
	batch Batch
	next  atomic.Pointer[node]
	ready chan struct{} // closed when next is set
}

func newNode(batch Batch) *node { return &node{batch: batch, ready: make(chan struct{})} }

// severed ends the list for subscribers that are too far behind, so that they do not retain all
// batches since.
var severed = &node{}

// SubscribeOptions configures a subscription.
type SubscribeOptions struct {
	// Unbounded subscriptions never get ErrTooOld. One that is too far behind gets a single batch
	// with Reset set, which contains the difference between what it last saw and the current
	// snapshot.
	Unbounded bool
}

// Subscription follows the changes after a snapshot. It belongs to one goroutine and need not be
// closed.
type Subscription struct {
	fleet     *Fleet
	at        *node
	seen      *Snapshot
	unbounded bool
}

// Snapshot returns the snapshot after the last batch that Next returned, initially the one that the
// subscription started with.
func (s *Subscription) Snapshot() *Snapshot { return s.seen }

// Next waits for the next batch. Batches are in revision order and without gaps.
func (s *Subscription) Next(ctx context.Context) (Batch, error) {
	if batch, ok, err := s.Pending(); ok || err != nil {
		return batch, err // also if ctx is done
	}
	select {
	case <-s.at.ready:
		return s.advance()
	case <-ctx.Done():
		return Batch{}, ctx.Err()
	}
}

// Pending returns the next batch if it is there already.
func (s *Subscription) Pending() (batch Batch, ok bool, err error) {
	select {
	case <-s.at.ready:
		batch, err = s.advance()
		return batch, err == nil, err
	default:
		return Batch{}, false, nil
	}
}

// advance returns the next batch, which is there.
func (s *Subscription) advance() (Batch, error) {
	next := s.at.next.Load()
	if next == severed {
		return s.resume()
	}
	s.at, s.seen = next, next.batch.Snapshot
	return next.batch, nil
}

func (s *Subscription) resume() (Batch, error) {
	if !s.unbounded {
		return Batch{}, fmt.Errorf("%w: its last revision was %d", errTooOld, s.seen.Revision())
	}
	now := s.fleet.Subscribe(SubscribeOptions{})
	batch := Batch{Revision: now.seen.Revision(), Changes: Difference(s.seen, now.seen), Snapshot: now.seen, Reset: true}
	s.at, s.seen = now.at, now.seen
	return batch, nil
}

// backlog severs the list after the most recent publications. It uses weak references, so that a
// list without readers is not retained.
type backlog struct {
	ring []weak.Pointer[node]
	next int
}

func newBacklog(size int) *backlog { return &backlog{ring: make([]weak.Pointer[node], size)} }

// push adds the newest node and severs the one that is now too old.
func (b *backlog) push(n *node) {
	if old := b.ring[b.next].Value(); old != nil {
		old.next.Store(severed)
	}
	b.ring[b.next] = weak.Make(n)
	b.next = (b.next + 1) % len(b.ring)
}
