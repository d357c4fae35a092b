package reconcile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// writeDue makes the next due decisions durable and visible, and removes them from unwritten. It
// also records what previews were decided on. It returns the revision from which the fleet shows
// the decisions, or 0 if none was written. It fails if the store belongs to another server.
func (r *loop) writeDue(ctx context.Context, at *fleet.Snapshot, unwritten *unwritten) (revision int64, err error) {
	batch := unwritten.due(r.now())
	recorded := r.leads(at.Revision()) && r.recording.promises()
	if len(batch) == 0 && !recorded {
		return 0, nil
	}
	begin, recording := time.Now(), r.recording.enabled()
	var kept []api.Key
	record := func(w write, value []byte) []byte {
		if !recording {
			return nil
		}
		record := r.recording.record(at, w, value, r.planner.fleet.Now())
		recorded = recorded || record.decided
		if record.kept {
			kept = append(kept, w.key())
		}
		return record.value
	}
	failed := map[api.Key]error{}
	derived := make([]store.StatusWrite, 0, len(batch))
	var parts []fleet.PartWrite
	values := map[any][]byte{} // by status
	for _, w := range batch {
		if lay := w.part(); lay != nil {
			parts = append(parts, fleet.PartWrite{Key: w.key(), SpecRevision: w.specRevision, Lay: lay, History: record(w, nil)})
			continue
		}
		value, encoded := values[w.verdict()]
		if _, again := r.unencoded[w.key()]; !encoded || again {
			if value, err = r.encode(w.result()); err != nil {
				failed[w.key()] = err
				r.unencoded[w.key()] = struct{}{}
				continue
			}
			delete(r.unencoded, w.key())
			values[w.verdict()] = value
		}
		derived = append(derived, store.StatusWrite{Key: w.key(), Value: value, SpecRevision: w.specRevision, History: record(w, value)})
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.command.ctx, cancel)() //nolint:contextcheck // the end of the term cancels it as well
	superseded := map[api.Key]bool{}
	if err = nil; recorded {
		err = r.recording.inputs(ctx, at, r.planner.fleet.Now())
	}
	if err == nil {
		revision, err = r.derive(ctx, derived, parts, failed, superseded)
	}
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
	r.recording.wrote(slices.DeleteFunc(kept, func(key api.Key) bool { return failed[key] != nil || superseded[key] }), span{at.Revision(), revision})
	logged := 0
	for _, w := range batch {
		err, refused := failed[w.key()]
		if !refused {
			unwritten.done(w.decision)
			if !superseded[w.key()] {
				w.queued().move = nil
			}
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

// maxNamed is the number of objects listed as unwritable.
const maxNamed = 20

// derive writes statuses, and parts of statuses that others write as well, and records failures. A conflict is not a
// failure: the spec has been changed or deleted, and that change will arrive and cause a new decision, which supersedes
// the one that was not written. It returns an error if another server has taken over the store.
func (r *loop) derive(ctx context.Context, writes []store.StatusWrite, parts []fleet.PartWrite, failed map[api.Key]error, superseded map[api.Key]bool) (latest int64, err error) {
	note := func(revision int64, err error, keys iter.Seq[api.Key]) error {
		latest = max(latest, revision)
		var some *store.DeriveError
		var conflict *store.ConflictError
		if errors.As(err, &conflict) {
			for _, c := range conflict.Conflicts {
				superseded[c.Key] = true
			}
		}
		switch {
		case errors.Is(err, store.ErrFenced):
			// This applies to every write, whichever detects it first.
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

// encode returns the encoded status of an object. The error may be a *fault.Panic.
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
