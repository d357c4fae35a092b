package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Store is the part of *store.Store that the fleet uses.
type Store interface {
	// Load reads the objects at a revision, 0 for the newest.
	Load(ctx context.Context, at int64, fn func(store.Record) error) (revision int64, err error)
	Watch(ctx context.Context, from int64) <-chan store.Batch
	RequestProgress(ctx context.Context) error
}

// Codec is the part of *store.Codec that the fleet uses.
type Codec interface {
	DecodeSpec(kind api.Kind, value []byte) (api.Object, error)
	DecodeStatus(object api.Object, value []byte) error
}

// Options configures a fleet. Store and Codec are required.
type Options struct {
	Store Store
	Codec Codec
	// Logger receives errors. If nil, they are discarded.
	Logger *slog.Logger
	// Backlog is how many batches a subscriber may fall behind. Zero means 10,000.
	Backlog int
}

// progressInterval is how long a reader waits for a revision before the store is asked for its
// progress.
const progressInterval = 20 * time.Millisecond

// Fleet is the in-memory copy of the store. It is safe for concurrent use, also before Run.
type Fleet struct {
	options Options
	ready   chan struct{}
	metrics *fleetMetrics

	// last is the newest publication; it is stored under mu.
	last atomic.Pointer[node]

	mu      sync.Mutex
	backlog *backlog
	// waiting holds a channel for each object that somebody waits for; it is closed when the object
	// changes.
	waiting map[api.Key]chan struct{}
}

// New returns an empty fleet; Run fills it.
func New(options Options) *Fleet {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	options.Backlog = cmp.Or(options.Backlog, 10_000)
	f := &Fleet{
		options: options,
		ready:   make(chan struct{}),
		metrics: newFleetMetrics(),
		backlog: newBacklog(options.Backlog),
		waiting: map[api.Key]chan struct{}{},
	}
	f.last.Store(newNode(Batch{Snapshot: emptySnapshot()}))
	return f
}

// readAgain is the backoff for reloading after the watch failed.
var readAgain = backoff.Backoff{First: 50 * time.Millisecond, Most: 5 * time.Second}

// firstLoads is how often a server that starts tries to load a store that does not respond: for about
// ten seconds, in which a cluster of stores elects a leader.
const firstLoads = 9

// Run follows the store until ctx is done. It fails if the store cannot be loaded at first, for example
// because of a wrong key. Later it retries.
func (f *Fleet) Run(ctx context.Context) error {
	loaded := f.isLoaded()
	for failures := 1; ; failures++ {
		err := f.load(ctx, !loaded)
		if err == nil {
			if !loaded {
				loaded = true
				close(f.ready)
			}
			failures = 1
			err = f.follow(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was canceled
		case !loaded && (failures == firstLoads || !errors.Is(err, store.ErrUnavailable)):
			return fmt.Errorf("load the fleet: %w", err)
		}
		f.metrics.relists.Inc()
		f.options.Logger.Warn("reading all objects from the store again", "revision", f.Snapshot().Revision(), "error", err)
		if !backoff.Wait(ctx, readAgain.After(failures)) {
			return nil
		}
	}
}

// isLoaded reports whether the first load is complete. Run is restarted after a panic.
func (f *Fleet) isLoaded() bool {
	select {
	case <-f.ready:
		return true
	default:
		return false
	}
}

// Ready returns a channel that is closed when the first load is complete.
func (f *Fleet) Ready() <-chan struct{} { return f.ready }

// Collectors returns the metrics of the fleet.
func (f *Fleet) Collectors() []prometheus.Collector { return f.metrics.collectors(f) }

// load reads everything and publishes the difference to the current snapshot, including deletions.
// An object that cannot be read is kept and marked as damaged. With strict, it fails if the key is
// not that of the store: nothing is damaged then, although no secret can be decrypted.
func (f *Fleet) load(ctx context.Context, strict bool) error {
	before := f.Snapshot()
	b := newBuilder(emptySnapshot(), f.options.Codec)
	b.first = nil
	b.applied = before.applied // a complete reading counts as many changes as it has records
	revision, err := f.options.Store.Load(ctx, 0, func(record store.Record) error {
		err := b.load(before, record)
		if err == nil || strict && errors.Is(err, store.ErrWrongKey) {
			return err
		}
		f.unreadable(before, record, err)
		b.hurt(before.Get(record.Key), record, err)
		return nil
	})
	if err != nil {
		return err
	}
	after := b.snapshot(revision)
	f.publish(Batch{Revision: revision, Changes: Difference(before, after), Snapshot: after, Reset: true})
	return nil
}

// At returns the fleet as it was at an earlier revision, or store.ErrCompacted. What cannot be read is marked as damaged.
func (f *Fleet) At(ctx context.Context, revision int64) (*Snapshot, error) {
	now := f.Snapshot()
	b := newBuilder(emptySnapshot(), f.options.Codec)
	b.first = nil
	_, err := f.options.Store.Load(ctx, revision, func(record store.Record) error {
		if err := b.load(now, record); err != nil {
			b.hurt(nil, record, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return b.snapshot(revision), nil
}

// follow applies the watch until it ends.
func (f *Fleet) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for batch := range f.options.Store.Watch(ctx, f.Snapshot().Revision()+1) {
		if batch.Err != nil {
			return batch.Err
		}
		f.apply(batch)
	}
	return errors.New("the watch ended")
}

// apply publishes a snapshot with a batch of the store applied.
func (f *Fleet) apply(batch store.Batch) {
	before := f.Snapshot()
	b := newBuilder(before, f.options.Codec)
	for record := range specsFirst(batch.Records) {
		if err := b.apply(record); err != nil {
			f.unreadable(before, record, err)
			b.hurt(b.known(record.Key), record, err)
		}
	}
	after := b.snapshot(batch.Revision)
	changes, passed := b.changes(after)
	f.publish(Batch{Revision: batch.Revision, Changes: changes, Snapshot: after, Passed: passed})
}

// unreadable logs once that an object is damaged.
func (f *Fleet) unreadable(before *Snapshot, record store.Record, err error) {
	f.metrics.unreadable.Inc()
	if d := before.Damaged(record.Key); d != nil && (record.Part == store.Spec && d.Spec != nil || record.Part == store.Status && d.Status != nil) {
		return
	}
	f.options.Logger.Error("a stored object is damaged: write it again or delete it, or restore a backup; decisions that depend on it stay as they are",
		"object", record.Key.String(), "part", record.Part.String(), "error", err)
}

// publish publishes a batch and wakes everybody who waits for it.
func (f *Fleet) publish(batch Batch) {
	n := newNode(batch)
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.last.Swap(n)
	f.backlog.push(before)
	before.next.Store(n)
	close(before.ready)
	for _, change := range batch.Changes {
		if ch, ok := f.waiting[change.Key]; ok {
			close(ch)
			delete(f.waiting, change.Key)
		}
	}
}

// Snapshot returns the current snapshot.
func (f *Fleet) Snapshot() *Snapshot { return f.last.Load().batch.Snapshot }

// Subscribe follows the changes after the current snapshot, which is the subscription's Snapshot.
func (f *Fleet) Subscribe(options ...SubscribeOptions) *Subscription {
	n := f.last.Load()
	s := &Subscription{fleet: f, at: n, seen: n.batch.Snapshot}
	for _, o := range options {
		s.unbounded = s.unbounded || o.Unbounded
	}
	return s
}

// WaitRevision waits until the snapshot has reached a revision, and returns it.
func (f *Fleet) WaitRevision(ctx context.Context, revision int64) (*Snapshot, error) {
	var timer *time.Timer
	for {
		n := f.last.Load()
		if n.batch.Snapshot.Revision() >= revision {
			return n.batch.Snapshot, nil
		}
		if timer == nil {
			timer = time.NewTimer(progressInterval)
			defer timer.Stop()
		}
		select {
		case <-n.ready:
		case <-timer.C:
			// The revision may have changed nothing that the fleet contains.
			if err := f.options.Store.RequestProgress(ctx); err != nil && ctx.Err() == nil {
				f.options.Logger.Warn("the store does not report its progress", "error", err)
			}
			timer.Reset(progressInterval)
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for revision %d: %w", revision, ctx.Err())
		}
	}
}

// WaitNewer waits until an object has a higher revision than the given one, and returns it. It
// returns nil without an error if the object does not exist or is deleted.
func (f *Fleet) WaitNewer(ctx context.Context, key api.Key, revision int64) (*Entry, error) {
	for {
		entry, changed := f.watchObject(key)
		if entry == nil || entry.Revision() > revision {
			return entry, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for a version of %s after %d: %w", key, revision, ctx.Err())
		}
	}
}

// watchObject returns an object, and a channel that is closed when it changes.
func (f *Fleet) watchObject(key api.Key) (*Entry, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	entry := f.last.Load().batch.Snapshot.Get(key)
	if entry == nil {
		return nil, nil
	}
	ch, ok := f.waiting[key]
	if !ok {
		ch = make(chan struct{})
		f.waiting[key] = ch
	}
	return entry, ch
}
