package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// write makes the decisions that are due next durable and visible, and takes them out
// of those that are unwritten. It returns the revision from which the fleet shows them, 0
// where nothing was written. The error is that of a store that belongs to somebody else.
func (r *loop) write(ctx context.Context, unwritten *unwritten) (revision int64, err error) {
	batch := unwritten.due(r.now())
	if len(batch) == 0 {
		return 0, nil
	}
	begin := time.Now()
	failed := map[api.Key]error{}
	derived := make([]store.StatusWrite, 0, len(batch))
	var hosted []write
	for _, w := range batch {
		if w.key().Kind == api.KindCluster && r.options.BindCluster != nil {
			hosted = append(hosted, w)
			continue
		}
		var value []byte
		err := r.faults.Do(w.key().String(), func() (err error) {
			value, err = r.options.Codec.EncodeStatus(w.result())
			return err
		})
		if err != nil {
			failed[w.key()] = err
			continue
		}
		derived = append(derived, store.StatusWrite{Key: w.key(), Value: value, SpecRevision: w.specRevision})
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.command.ctx, cancel)() //nolint:contextcheck // the term ends it as well
	revision, err = r.derive(ctx, derived, failed)
	if err != nil && r.options.Standby {
		r.standDown()
		return 0, errStoodDown
	}
	if err != nil {
		return 0, fmt.Errorf("stop deciding: %w", err)
	}
	revision = max(revision, r.bind(ctx, hosted, failed))
	if ctx.Err() != nil { // stopping: what was not written is decided again after the start
		return 0, nil
	}
	if revision > 0 {
		if _, err := r.options.Fleet.WaitRevision(ctx, revision); err != nil {
			return 0, nil
		}
	}
	logged := 0
	for _, w := range batch {
		err, refused := failed[w.key()]
		if !refused {
			unwritten.done(w.decision)
			r.metrics.decided(w)
			continue
		}
		unwritten.failed(w.decision, err, r.now())
		if logged++; logged <= maxNamed {
			r.logger.Error("a decision could not be written; the previous one stays, and it is retried", "object", w.key().String(), "error", err)
		}
	}
	if len(failed) > 0 {
		r.metrics.failed.Inc()
	}
	if more := len(failed) - maxNamed; more > 0 {
		r.logger.Error("more decisions could not be written; they are retried", "decisions", more)
	}
	r.metrics.writing.Observe(time.Since(begin).Seconds())
	return revision, nil
}

// maxNamed is how many objects are named that cannot be written.
const maxNamed = 20

// derive writes statuses, and notes those that failed. A conflict is no failure:
// the spec has changed or gone, and that change is on its way here and leads to
// another decision. The error is that of a store that belongs to somebody else.
func (r *loop) derive(ctx context.Context, writes []store.StatusWrite, failed map[api.Key]error) (int64, error) {
	if len(writes) == 0 {
		return 0, nil
	}
	revision, err := r.options.Store.Derive(ctx, writes)
	var some *store.DeriveError
	var conflict *store.ConflictError
	switch {
	case errors.Is(err, store.ErrFenced):
		// It is true of every write, whichever of them met it first.
		return 0, store.ErrFenced
	case errors.As(err, &some):
		maps.Copy(failed, some.Failed)
	case err != nil && !errors.As(err, &conflict):
		for _, w := range writes {
			failed[w.Key] = err
		}
	}
	return revision, nil
}

// maxBinds is how many clusters are told of their cloud at a time.
const maxBinds = 64

// bind stores the clouds that were chosen for clusters, each by itself, and notes
// those that failed.
func (r *loop) bind(ctx context.Context, writes []write, failed map[api.Key]error) int64 {
	var mu sync.Mutex
	latest := int64(0)
	var group errgroup.Group
	group.SetLimit(maxBinds)
	for _, w := range writes {
		group.Go(func() error {
			decided, ok := w.result().(*api.Cluster)
			if !ok {
				return nil
			}
			var revision int64
			err := r.faults.Do(w.key().String(), func() (err error) {
				revision, err = r.options.BindCluster(ctx, decided, w.specRevision)
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			latest = max(latest, revision)
			if err != nil && !errors.Is(err, ErrConflict) { // a conflict: as in derive
				failed[w.key()] = err
			}
			return nil
		})
	}
	_ = group.Wait() // has no errors
	return latest
}
