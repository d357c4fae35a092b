package reconcile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// write makes the next due decisions durable and visible, and removes them from unwritten. It
// returns the revision from which the fleet shows them, or 0 if nothing was written. It fails if
// the store belongs to another server.
func (r *loop) write(ctx context.Context, unwritten *unwritten) (revision int64, err error) {
	batch := unwritten.due(r.now())
	if len(batch) == 0 {
		return 0, nil
	}
	begin := time.Now()
	failed := map[api.Key]error{}
	derived := make([]store.StatusWrite, 0, len(batch))
	var parts []fleet.PartWrite
	for _, w := range batch {
		if lay := w.part(); lay != nil {
			parts = append(parts, fleet.PartWrite{Key: w.key(), SpecRevision: w.specRevision, Lay: lay})
			continue
		}
		value, err := r.encode(w.result())
		if err != nil {
			failed[w.key()] = err
			continue
		}
		derived = append(derived, store.StatusWrite{Key: w.key(), Value: value, SpecRevision: w.specRevision})
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.command.ctx, cancel)() //nolint:contextcheck // the end of the term cancels it as well
	revision, err = r.derive(ctx, derived, parts, failed)
	if err != nil && r.options.Standby {
		r.standDown()
		return 0, errStoodDown
	}
	if err != nil {
		return 0, fmt.Errorf("stop deciding: %w", err)
	}
	if ctx.Err() != nil { // stopping: unwritten decisions are made again after the restart
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
	r.traces.wrote(begin, batch)
	return revision, nil
}

// maxNamed is how many objects that cannot be written are named.
const maxNamed = 20

// derive writes statuses, and parts of statuses that others write as well, and notes those
// that failed. A conflict is no failure: the spec has changed or gone, and that change is
// on its way here and leads to another decision. The error is that of a store that belongs
// to somebody else.
func (r *loop) derive(ctx context.Context, writes []store.StatusWrite, parts []fleet.PartWrite, failed map[api.Key]error) (latest int64, err error) {
	note := func(revision int64, err error, keys iter.Seq[api.Key]) error {
		latest = max(latest, revision)
		var some *store.DeriveError
		var conflict *store.ConflictError
		switch {
		case errors.Is(err, store.ErrFenced):
			// It is true of every write, whichever of them met it first.
			return store.ErrFenced
		case errors.As(err, &some):
			maps.Copy(failed, some.Failed)
		case err != nil && !errors.As(err, &conflict):
			for key := range keys {
				failed[key] = err
			}
		}
		return nil
	}
	if len(writes) > 0 {
		revision, err := r.options.Store.Derive(ctx, writes)
		if err := note(revision, err, keysOf(writes, func(w store.StatusWrite) api.Key { return w.Key })); err != nil {
			return 0, err
		}
	}
	if len(parts) > 0 {
		revision, err := r.options.Fleet.PutParts(ctx, parts, r.encode, r.options.Store.Derive)
		if err := note(revision, err, keysOf(parts, func(w fleet.PartWrite) api.Key { return w.Key })); err != nil {
			return 0, err
		}
	}
	return latest, nil
}

// encode is the value of the status of an object. The error may be a *fault.Panic.
func (r *loop) encode(object api.Object) (value []byte, err error) {
	err = r.faults.Do(api.KeyOf(object).String(), func() (err error) {
		value, err = r.options.Codec.EncodeStatus(object)
		return err
	})
	return value, err
}

func keysOf[W any](writes []W, key func(W) api.Key) iter.Seq[api.Key] {
	return func(yield func(api.Key) bool) {
		for _, w := range writes {
			if !yield(key(w)) {
				return
			}
		}
	}
}
