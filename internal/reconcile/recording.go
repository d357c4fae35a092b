package reconcile

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/history"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// History records what decisions are made on; *history.Log implements it.
type History interface {
	// Enabled reports whether decisions are recorded.
	Enabled() bool
	// Recorded returns the revision of the last recorded pass.
	Recorded(ctx context.Context) (int64, error)
	// Record writes the inputs of a pass.
	Record(ctx context.Context, pass history.Pass) error
}

// recording records decisions while this server leads: each in the transaction that writes it, and before,
// what they were made on.
type recording struct {
	log    History // nil = nothing is recorded
	codec  Codec
	logger *slog.Logger

	begun bool // in this term: revision and at are those of the last recorded pass
	// whole says that changed does not have what changed before the first pass of the term.
	whole    bool
	revision int64
	at       time.Time
	changed  map[api.Key]struct{} // since the last recorded pass
	// promised says that decisions were previewed since. They may be committed without another pass,
	// and are explained by what they were previewed on.
	promised bool
	// kept are the objects whose status was written since the last recorded pass, with a record that has it.
	kept map[api.Key]span
	// bytes is what the records take that were written since the last recorded pass.
	bytes int64
}

// span are the revisions after one and up to another.
type span struct{ after, until int64 }

func (s span) has(revision int64) bool { return s.after < revision && revision <= s.until }

// enabled reports whether decisions are recorded.
func (r *recording) enabled() bool { return r.log != nil && r.log.Enabled() }

// changes notes that an object has changed.
func (r *recording) changes(key api.Key) {
	if r.begun && key.Kind != api.KindNotification {
		r.changed[key] = struct{}{}
	}
}

// promises reports whether what previews were decided on must be recorded, because they may be committed without
// another pass.
func (r *recording) promises() bool {
	return r.enabled() && r.promised && (!r.begun || r.whole || len(r.changed) > 0)
}

// over ends a term, or a session that may have missed changes.
func (r *recording) over() { r.begun, r.changed, r.kept, r.bytes = false, nil, nil, 0 }

// wrote notes that statuses were written within some revisions, with records that have them: they are not recorded
// again as what later passes decide on.
func (r *recording) wrote(keys []api.Key, within span) {
	if !r.begun {
		return
	}
	if r.kept == nil {
		r.kept = make(map[api.Key]span, len(keys))
	}
	for _, key := range keys {
		r.kept[key] = within
	}
}

// inputs records what a pass at a time decides on, if that is not recorded. The error is that another
// server has taken over the store; after others, the decisions are written all the same, and are
// explained by the pass before.
func (r *recording) inputs(ctx context.Context, snapshot *fleet.Snapshot, at time.Time) error {
	if !r.begun {
		revision, err := r.log.Recorded(ctx)
		if err != nil {
			r.logger.Warn("what decisions are made on could not be recorded; they cannot be explained later", "error", err)
			return nil
		}
		r.begun, r.whole, r.revision, r.at, r.changed = true, true, revision, time.Time{}, map[api.Key]struct{}{}
	} else if !r.whole && snapshot.Revision() == r.revision && at.Equal(r.at) {
		return nil
	}
	pass := history.Pass{Revision: snapshot.Revision(), Time: at, Recorded: r.bytes, All: r.all(snapshot, 0)}
	if r.whole {
		pass.Changed, pass.Keys = r.all(snapshot, r.revision), keysIn(snapshot)
	} else {
		pass.Changed = r.differing(snapshot)
	}
	err := r.log.Record(ctx, pass)
	if errors.Is(err, store.ErrFenced) {
		return store.ErrFenced
	}
	if err != nil {
		r.over()
		if ctx.Err() == nil {
			r.logger.Warn("what decisions are made on could not be recorded; they are explained by an earlier pass", "error", err)
		}
		return nil
	}
	r.whole, r.revision, r.at, r.bytes, r.promised = false, snapshot.Revision(), at, 0, false
	clear(r.changed)
	r.kept = nil
	return nil
}

// all yields the parts of all objects that changed after a revision.
func (r *recording) all(snapshot *fleet.Snapshot, after int64) iter.Seq[store.Record] {
	return func(yield func(store.Record) bool) {
		for entry := range everything(snapshot) {
			if entry.Revision() > after && !r.parts(entry, after, yield) {
				return
			}
		}
	}
}

// differing yields the parts of the objects that changed since the last recorded pass.
func (r *recording) differing(snapshot *fleet.Snapshot) iter.Seq[store.Record] {
	keys := slices.SortedFunc(maps.Keys(r.changed), api.Key.Compare)
	return func(yield func(store.Record) bool) {
		for _, key := range keys {
			if entry := snapshot.Get(key); entry != nil {
				kept, records := r.kept[key], yield
				if kept.until <= snapshot.Revision() && kept.has(entry.StatusRevision) {
					if entry.SpecRevision <= r.revision {
						continue
					}
					records = func(record store.Record) bool { return record.Part == store.Status || yield(record) }
				}
				if !r.parts(entry, r.revision, records) {
					return
				}
				continue
			}
			if !yield(store.Record{Key: key, Part: store.Spec}) || !yield(store.Record{Key: key, Part: store.Status}) {
				return
			}
		}
	}
}

// parts yields the parts of an object that changed after a revision: its status, and both if the object may be another one.
func (r *recording) parts(entry *fleet.Entry, after int64, yield func(store.Record) bool) bool {
	key := api.KeyOf(entry.Object)
	var spec, status []byte
	var err error
	if entry.SpecRevision > after {
		spec, status, err = r.codec.EncodeInputs(entry.Object)
	} else {
		status, err = r.codec.EncodeStatus(entry.Object)
	}
	if err != nil {
		r.logger.Warn("an object could not be recorded", "object", key.String(), "error", err)
		return true
	}
	return (spec == nil || yield(store.Record{Key: key, Part: store.Spec, Value: spec, ModRevision: entry.SpecRevision})) &&
		yield(store.Record{Key: key, Part: store.Status, Value: status, ModRevision: entry.StatusRevision})
}

// everything yields all objects that decisions can depend on.
func everything(snapshot *fleet.Snapshot) iter.Seq[*fleet.Entry] {
	return func(yield func(*fleet.Entry) bool) {
		for _, info := range api.Kinds {
			if info.Kind == api.KindNotification {
				continue
			}
			for entry := range snapshot.All(info.Kind, "") {
				if !yield(entry) {
					return
				}
			}
		}
	}
}

func keysIn(snapshot *fleet.Snapshot) iter.Seq[api.Key] {
	return func(yield func(api.Key) bool) {
		for entry := range everything(snapshot) {
			if !yield(api.KeyOf(entry.Object)) {
				return
			}
		}
	}
}

// recordOf is what is recorded of a status that is about to be written.
type recordOf struct {
	value   []byte // nil if it shows nothing new
	decided bool   // the decision may be another one than the stored one
	kept    bool   // value has the status
}

// record returns the record of a status that is about to be written. value is the encoded status, if that is all of
// the decision.
func (r *recording) record(snapshot *fleet.Snapshot, w write, value []byte, now time.Time) (record recordOf) {
	entry := snapshot.Get(w.key())
	if entry == nil || w.observed {
		return recordOf{}
	}
	var err error
	move := w.queued().move
	if move == nil {
		if sameRevision(entry.Object, w.verdict()) { // the most common case
			if record.value, err = history.EncodeStates(entry.Object, w.result(), now); err != nil {
				r.logger.Error("notifications are not told of a change", "object", w.key().String(), "error", err)
			}
			return record
		}
		move = newMove(ownCause(w.decision, false, false), nil, now) // only the order differs, because of the spec
	}
	record.value, record.kept, err = history.Encode(entry.Object, w.result(), history.Move{
		Time: move.at, Cause: move.cause, Actor: actorOf(snapshot, move.cause), Margin: move.margin,
	}, value)
	if err != nil {
		r.logger.Error("a decision is not in the history", "object", w.key().String(), "error", err)
		return recordOf{}
	}
	record.decided = record.value != nil
	r.bytes += int64(len(record.value))
	return record
}

// sameRevision reports whether a status contains the decision that is stored.
func sameRevision(stored api.Object, verdict any) bool {
	switch status := verdict.(type) {
	case *api.PlacementStatus:
		p, ok := stored.(*api.Placement)
		return ok && p.Status.DecisionRevision == status.DecisionRevision
	case *api.WorkloadStatus:
		w, ok := stored.(*api.Workload)
		return ok && w.Status.DecisionRevision == status.DecisionRevision
	}
	return false
}

// actorOf returns who wrote what is a cause, or nil if nobody did.
func actorOf(snapshot *fleet.Snapshot, cause *api.Cause) *api.HistoryActor {
	if cause.Object == nil || strings.HasPrefix(cause.Field, "status.") {
		return nil
	}
	switch cause.Type { //nolint:exhaustive // of all others, the object was written
	case api.CauseTime, api.CauseFailBack, api.CauseHealth, api.CauseUnknown, api.CauseStage, api.CauseWindowOpened:
		return nil
	}
	if entry := snapshot.Get(*cause.Object); entry != nil {
		return entry.Object.Meta().WrittenBy
	}
	return nil
}
