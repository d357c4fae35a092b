package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// PartWrite is one writer's part of the status of an object that several writers update. It is stored only while the
// Spec part has the given revision.
type PartWrite struct {
	Key          api.Key
	SpecRevision int64
	// Lay applies the part to a copy of the stored status.
	Lay func(stored api.Object)
	// History is a record of the decision; see store.StatusWrite.
	History []byte
	// Record, if not nil, returns the record instead: of the change from the stored version to the one with the
	// part.
	Record func(before, after api.Object) []byte
}

// Derive writes statuses; see store.Store.Derive.
type Derive func(ctx context.Context, writes []store.StatusWrite) (revision int64, err error)

// PutParts writes parts of statuses with several writers. Each part is merged into the status that the fleet shows, and
// only replaces that version. If another writer has changed it in the meantime, the part is merged into the new
// version. It returns what Derive returns. A key may occur only once.
func (f *Fleet) PutParts(ctx context.Context, writes []PartWrite, encode func(api.Object) ([]byte, error), derive Derive) (latest int64, err error) {
	failed := map[api.Key]error{}
	var conflicts []error
	for len(writes) > 0 {
		laid := f.lay(writes, encode, failed)
		if len(laid) == 0 {
			break
		}
		revision, err := derive(ctx, laid)
		latest = max(latest, revision)
		var some *store.DeriveError
		var conflict, overtaken *store.ConflictError
		if errors.As(err, &some) {
			maps.Copy(failed, some.Failed)
		}
		if errors.As(err, &conflict) {
			overtaken = conflict.Of(store.Status)
			if of := conflict.Of(store.Spec); of != nil {
				conflicts = append(conflicts, of)
			}
		}
		if err != nil && some == nil && conflict == nil || errors.Is(err, store.ErrFenced) {
			return latest, err
		}
		if overtaken == nil {
			break
		}
		if writes, err = f.awaitOvertaken(ctx, writes, overtaken); err != nil {
			return latest, err
		}
	}
	if len(failed) > 0 {
		conflicts = append(conflicts, &store.DeriveError{Failed: failed})
	}
	return latest, errors.Join(conflicts...)
}

// lay merges parts into the statuses that the fleet shows. Failures are recorded.
func (f *Fleet) lay(writes []PartWrite, encode func(api.Object) ([]byte, error), failed map[api.Key]error) []store.StatusWrite {
	at, laid := f.Snapshot(), make([]store.StatusWrite, 0, len(writes))
	for _, w := range writes {
		one := store.StatusWrite{Key: w.Key, SpecRevision: w.SpecRevision, History: w.History}
		var object api.Object
		if entry := at.Get(w.Key); entry != nil {
			object = entry.Object.Copy()
			one.Over = entry.storedStatus()
		} else if info, ok := api.LookupKind(w.Key.Kind); ok {
			object = info.New() // deleted, which the comparison of the Spec part detects
		} else {
			failed[w.Key] = fmt.Errorf("%w: %q is not a kind of object", store.ErrInvalid, w.Key.Kind)
			continue
		}
		if d := at.Damaged(w.Key); d != nil && d.Status != nil {
			one.Over = nil // the stored status has nothing to keep
		}
		w.Lay(object)
		if w.Record != nil && at.Get(w.Key) != nil {
			one.History = w.Record(at.Get(w.Key).Object, object)
		}
		var err error
		if one.Value, err = encode(object); err != nil {
			failed[w.Key] = err
			continue
		}
		laid = append(laid, one)
	}
	return laid
}

// storedStatus returns the revision of the Status part in the store, or 0 if there is none. After a deletion,
// StatusRevision keeps the old value, but the key does not exist.
func (e *Entry) storedStatus() *int64 {
	if e.statusBytes == 0 {
		return new(int64)
	}
	return &e.StatusRevision
}

// awaitOvertaken waits until the fleet shows the statuses that were written in the meantime, and returns the writes to
// be merged into those.
func (f *Fleet) awaitOvertaken(ctx context.Context, writes []PartWrite, overtaken *store.ConflictError) (again []PartWrite, err error) {
	until, of := int64(0), make(map[api.Key]bool, len(overtaken.Conflicts))
	for _, c := range overtaken.Conflicts {
		until, of[c.Key] = max(until, c.Actual), true
	}
	for _, w := range writes {
		if of[w.Key] {
			again = append(again, w)
		}
	}
	_, err = f.WaitRevision(ctx, until)
	return again, err
}
