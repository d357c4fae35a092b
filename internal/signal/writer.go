package signal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/status"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Store writes many statuses at once.
type Store interface {
	Derive(ctx context.Context, writes []store.StatusWrite) (int64, error)
}

// Batcher combines single writes of statuses into transactions.
type Batcher interface {
	Submit(ctx context.Context, write store.StatusWrite) (int64, error)
}

// Codec encodes the status of an object.
type Codec interface {
	EncodeStatus(object api.Object) ([]byte, error)
}

// Record returns what the history has of a change of what was observed of an object; nil if it is nothing.
type Record func(before, after api.Object, now time.Time) ([]byte, error)

// writer stores the observations of the collector and the monitor.
type writer struct {
	fleet   *fleet.Fleet
	store   Store
	batcher Batcher
	codec   Codec
	record  Record // nil = nothing is recorded
	now     func() time.Time
	logger  *slog.Logger
}

// WriteAll implements collect.Writer.
func (w writer) WriteAll(ctx context.Context, writes []status.Write) (int64, error) {
	failed := map[api.Key]error{}
	encoded := make([]store.StatusWrite, 0, len(writes))
	var providers []fleet.PartWrite
	for _, write := range writes {
		if provider, ok := write.Object.(*api.MetricsProvider); ok && w.record != nil {
			providers = append(providers, w.part(write, func(stored api.Object) {
				if p, ok := stored.(*api.MetricsProvider); ok {
					p.Status = provider.Status
				}
			}))
			continue
		}
		one, err := w.encode(write)
		if err != nil {
			failed[api.KeyOf(write.Object)] = err
			continue
		}
		encoded = append(encoded, one)
	}
	var revision int64
	var stale []api.Key
	wrote := func(shown int64, err error) error {
		revision = max(revision, shown)
		keys, other := split(err)
		stale = append(stale, keys...)
		if some, ok := errors.AsType[*store.DeriveError](other); ok {
			maps.Copy(failed, some.Failed)
			return nil
		}
		return other
	}
	if len(encoded) > 0 {
		if err := wrote(w.store.Derive(ctx, encoded)); err != nil {
			return revision, err
		}
	}
	if len(providers) > 0 {
		// As parts, so that what is recorded is the difference from what is stored.
		if err := wrote(w.fleet.PutParts(ctx, providers, w.codec.EncodeStatus, w.store.Derive)); err != nil {
			return revision, err
		}
	}
	var errs []error
	if len(stale) > 0 {
		errs = append(errs, &status.StaleError{Keys: stale})
	}
	if len(failed) > 0 {
		errs = append(errs, &status.FailedError{Failed: failed})
	}
	return revision, errors.Join(errs...)
}

// WriteOne implements status.Writer.
func (w writer) WriteOne(ctx context.Context, write status.Write) (int64, error) {
	if observed, ok := write.Object.(*api.Cluster); ok {
		return w.writeObserved(ctx, observed, write.SpecRevision)
	}
	encoded, err := w.encode(write)
	if err != nil {
		return 0, err
	}
	revision, err := w.batcher.Submit(ctx, encoded)
	return revision, translate(err)
}

// writeObserved stores what was observed of a cluster. The rest of its status is decided,
// and not for the signals to write.
func (w writer) writeObserved(ctx context.Context, observed *api.Cluster, specRevision int64) (int64, error) {
	part := w.part(status.Write{Object: observed, SpecRevision: specRevision}, func(stored api.Object) {
		if c, ok := stored.(*api.Cluster); ok {
			c.Status.TakeObserved(&observed.Status)
		}
	})
	revision, err := w.fleet.PutParts(ctx, []fleet.PartWrite{part}, w.codec.EncodeStatus, func(ctx context.Context, writes []store.StatusWrite) (int64, error) {
		return w.batcher.Submit(ctx, writes[0])
	})
	return revision, translate(err)
}

// part returns a write of a part of a status, with what notifications tell of it.
func (w writer) part(write status.Write, lay func(stored api.Object)) fleet.PartWrite {
	part := fleet.PartWrite{Key: api.KeyOf(write.Object), SpecRevision: write.SpecRevision, Lay: lay}
	if w.record != nil {
		part.Record = func(before, after api.Object) []byte {
			record, err := w.record(before, after, w.now())
			if err != nil {
				w.logger.Error("notifications are not told of a change", "object", part.Key.String(), "error", err)
			}
			return record
		}
	}
	return part
}

func (w writer) encode(write status.Write) (store.StatusWrite, error) {
	key := api.KeyOf(write.Object)
	value, err := w.codec.EncodeStatus(write.Object)
	if err != nil {
		return store.StatusWrite{}, fmt.Errorf("encode the status of %s: %w", key, err)
	}
	return store.StatusWrite{Key: key, Value: value, SpecRevision: write.SpecRevision}, nil
}

// translate converts a conflict of the store to a *status.StaleError, unless another error is
// joined to it.
func translate(err error) error {
	stale, other := split(err)
	if other != nil || stale == nil {
		return other
	}
	return &status.StaleError{Keys: stale}
}

// split splits a joined error.
func split(err error) (stale []api.Key, other error) {
	if err == nil {
		return nil, nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			keys, o := split(e)
			stale, other = append(stale, keys...), errors.Join(other, o)
		}
		if stale == nil {
			return nil, err
		}
		return stale, other
	}
	if conflict, ok := err.(*store.ConflictError); ok { //nolint:errorlint // the other errors in a join count too
		return conflict.Keys, nil
	}
	return nil, err
}
