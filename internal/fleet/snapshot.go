package fleet

import (
	"iter"

	"github.com/google/btree"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Entry is one object at some revision. It and its object are immutable: modify a Copy.
type Entry struct {
	key api.Key // of the object
	// Object includes its status and resource version.
	Object api.Object
	// SpecRevision is the revision of the last change of the user-written part, StatusRevision that
	// of the derived part (0 = none).
	SpecRevision   int64
	StatusRevision int64
	// specBytes and statusBytes are the stored sizes of the two parts.
	specBytes, statusBytes int32
}

// Bytes returns the approximate size of the object's document, based on its stored size.
func (e *Entry) Bytes() int { return int(e.specBytes) + int(e.statusBytes) }

// Key returns the key of the object.
func (e *Entry) Key() api.Key { return e.key }

// Revision returns the revision of the object's last change, including its status.
func (e *Entry) Revision() int64 { return max(e.SpecRevision, e.StatusRevision) }

// Snapshot is the content of the whole store at one revision. It is immutable.
type Snapshot struct {
	revision int64
	objects  *btree.BTreeG[*Entry]
	// system holds the records of kinds that are not API objects.
	system *btree.BTreeG[store.Record]
	counts map[api.Kind]int // replaced, never modified
	// damaged holds what cannot be read, or is nil; replaced, never modified.
	damaged map[api.Key]*Damage
	// applied counts the records that were applied up to this snapshot.
	applied int64
}

// treeDegree keeps the tree flat; a change copies the nodes on the path to the object.
const treeDegree = 32

func emptySnapshot() *Snapshot {
	return &Snapshot{
		objects: btree.NewG(treeDegree, func(a, b *Entry) bool { return a.key.Compare(b.key) < 0 }),
		system:  btree.NewG(treeDegree, func(a, b store.Record) bool { return a.Key.Compare(b.Key) < 0 }),
		counts:  map[api.Kind]int{},
	}
}

// ChangedSince returns how many records were applied since an earlier snapshot: the earlier one keeps
// at most as many old versions of objects in memory.
func (s *Snapshot) ChangedSince(earlier *Snapshot) int64 { return s.applied - earlier.applied }

// Revision returns the store revision of the snapshot.
func (s *Snapshot) Revision() int64 { return s.revision }

// Get returns an object, or nil.
func (s *Snapshot) Get(key api.Key) *Entry {
	entry, _ := s.objects.Get(&Entry{key: key})
	return entry
}

// All yields the objects of a kind in one namespace, or ("") in all, in the order of
// api.Key.Compare.
func (s *Snapshot) All(kind api.Kind, namespace string) iter.Seq[*Entry] {
	return s.After(api.Key{Kind: kind, Namespace: namespace}, namespace)
}

// After is All, starting with the first object whose key is greater than key.
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

// Len returns the number of objects of a kind.
func (s *Snapshot) Len(kind api.Kind) int { return s.counts[kind] }

// System returns the record of a kind that is not an API object, such as a token.
func (s *Snapshot) System(key api.Key) (store.Record, bool) {
	return s.system.Get(store.Record{Key: key})
}

// AllSystem yields the records of such a kind in key order.
func (s *Snapshot) AllSystem(kind api.Kind) iter.Seq[store.Record] {
	return func(yield func(store.Record) bool) {
		s.system.AscendGreaterOrEqual(store.Record{Key: api.Key{Kind: kind}}, func(record store.Record) bool {
			return record.Key.Kind == kind && yield(record)
		})
	}
}
