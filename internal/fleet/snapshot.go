package fleet

import (
	"iter"

	"github.com/google/btree"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Entry is one object as it was at some revision. It is immutable, and so is the
// object in it: work on a Copy.
type Entry struct {
	key api.Key // of the object
	// Object has its status merged in and its resource version set.
	Object api.Object
	// SpecRevision is the revision of the last change of the user-written part,
	// StatusRevision that of the derived part (0 = there is none).
	SpecRevision   int64
	StatusRevision int64
	// specBytes and statusBytes are how large the two parts are where they are stored.
	specBytes, statusBytes int32
}

// Bytes is about how large the object is as a document: as large as what is stored
// of it.
func (e *Entry) Bytes() int { return int(e.specBytes) + int(e.statusBytes) }

// Revision is that of the object's last change, status included.
func (e *Entry) Revision() int64 { return max(e.SpecRevision, e.StatusRevision) }

// Snapshot is the picture of the whole store at one revision. It never changes.
type Snapshot struct {
	revision int64
	objects  *btree.BTreeG[*Entry]
	// system holds the records of kinds that are not objects of the API.
	system *btree.BTreeG[store.Record]
	counts map[api.Kind]int // replaced, never changed
	// damaged is nil or holds what cannot be read; replaced, never changed.
	damaged map[api.Key]*Damage
}

// treeDegree makes few nodes, of which a change copies those above one object.
const treeDegree = 32

func emptySnapshot() *Snapshot {
	return &Snapshot{
		objects: btree.NewG(treeDegree, func(a, b *Entry) bool { return a.key.Compare(b.key) < 0 }),
		system:  btree.NewG(treeDegree, func(a, b store.Record) bool { return a.Key.Compare(b.Key) < 0 }),
		counts:  map[api.Kind]int{},
	}
}

// Revision is the store revision that the snapshot shows.
func (s *Snapshot) Revision() int64 { return s.revision }

// Get returns an object, nil when there is none of that key.
func (s *Snapshot) Get(key api.Key) *Entry {
	entry, _ := s.objects.Get(&Entry{key: key})
	return entry
}

// All yields the objects of a kind in one namespace, or ("") in all of them, in
// the order of api.Key.Compare.
func (s *Snapshot) All(kind api.Kind, namespace string) iter.Seq[*Entry] {
	return s.After(api.Key{Kind: kind, Namespace: namespace}, namespace)
}

// After yields like All, beginning with the first object whose key is greater
// than key.
func (s *Snapshot) After(key api.Key, namespace string) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		s.objects.AscendGreaterOrEqual(&Entry{key: key}, func(entry *Entry) bool {
			switch {
			case entry.key == key:
				return true
			case entry.key.Kind != key.Kind, namespace != "" && entry.key.Namespace != namespace:
				return false
			}
			return yield(entry)
		})
	}
}

// Len is the number of objects of a kind.
func (s *Snapshot) Len(kind api.Kind) int { return s.counts[kind] }

// System returns the record of a kind that is not an object of the API, such as
// a token.
func (s *Snapshot) System(key api.Key) (store.Record, bool) {
	return s.system.Get(store.Record{Key: key})
}

// AllSystem yields the records of such a kind in the order of their keys.
func (s *Snapshot) AllSystem(kind api.Kind) iter.Seq[store.Record] {
	return func(yield func(store.Record) bool) {
		s.system.AscendGreaterOrEqual(store.Record{Key: api.Key{Kind: kind}}, func(record store.Record) bool {
			return record.Key.Kind == kind && yield(record)
		})
	}
}
