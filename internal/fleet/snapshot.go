package fleet

import (
	"iter"

	iradix "github.com/hashicorp/go-immutable-radix/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Entry is one object as it was at some revision. It is immutable, and so is the
// object in it: work on a Copy.
type Entry struct {
	// Object has its status merged in and its resource version set.
	Object api.Object
	// SpecRevision is the revision of the last change of the user-written part,
	// StatusRevision that of the derived part (0 = there is none).
	SpecRevision   int64
	StatusRevision int64
	// specBytes and statusBytes are how large the two parts are where they are stored.
	specBytes, statusBytes int
}

// Bytes is about how large the object is as a document: as large as what is stored
// of it.
func (e *Entry) Bytes() int { return e.specBytes + e.statusBytes }

// Revision is that of the object's last change, status included.
func (e *Entry) Revision() int64 { return max(e.SpecRevision, e.StatusRevision) }

// Snapshot is the picture of the whole store at one revision. It never changes.
type Snapshot struct {
	revision int64
	objects  *iradix.Tree[*Entry]
	// system holds the records of kinds that are not objects of the API.
	system *iradix.Tree[store.Record]
	counts map[api.Kind]int // replaced, never changed
	// damaged is nil or holds what cannot be read; replaced, never changed.
	damaged map[api.Key]*Damage
}

func emptySnapshot() *Snapshot {
	return &Snapshot{objects: iradix.New[*Entry](), system: iradix.New[store.Record](), counts: map[api.Kind]int{}}
}

// Revision is the store revision that the snapshot shows.
func (s *Snapshot) Revision() int64 { return s.revision }

// Get returns an object, nil when there is none of that key.
func (s *Snapshot) Get(key api.Key) *Entry {
	entry, _ := s.objects.Get(radixKey(key))
	return entry
}

// All yields the objects of a kind in one namespace, or ("") in all of them, in
// the order of api.Key.Compare.
func (s *Snapshot) All(kind api.Kind, namespace string) iter.Seq[*Entry] {
	prefix := string(kind) + "\x00"
	if namespace != "" {
		prefix += namespace + "\x00"
	}
	return func(yield func(*Entry) bool) {
		iterator := s.objects.Root().Iterator()
		iterator.SeekPrefix([]byte(prefix))
		for _, entry, ok := iterator.Next(); ok; _, entry, ok = iterator.Next() {
			if !yield(entry) {
				return
			}
		}
	}
}

// After yields like All, beginning with the first object whose key is greater
// than key.
func (s *Snapshot) After(key api.Key, namespace string) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		iterator := s.objects.Root().Iterator()
		iterator.SeekLowerBound(append(radixKey(key), 0))
		for _, entry, ok := iterator.Next(); ok; _, entry, ok = iterator.Next() {
			if entry.Object.ObjectKind() != key.Kind || namespace != "" && api.KeyOf(entry.Object).Namespace != namespace {
				return
			}
			if !yield(entry) {
				return
			}
		}
	}
}

// Len is the number of objects of a kind.
func (s *Snapshot) Len(kind api.Kind) int { return s.counts[kind] }

// System returns the record of a kind that is not an object of the API, such as
// a token.
func (s *Snapshot) System(key api.Key) (store.Record, bool) {
	return s.system.Get(radixKey(key))
}

// AllSystem yields the records of such a kind in the order of their keys.
func (s *Snapshot) AllSystem(kind api.Kind) iter.Seq[store.Record] {
	return func(yield func(store.Record) bool) {
		iterator := s.system.Root().Iterator()
		iterator.SeekPrefix([]byte(string(kind) + "\x00"))
		for _, record, ok := iterator.Next(); ok; _, record, ok = iterator.Next() {
			if !yield(record) {
				return
			}
		}
	}
}

// radixKey orders as api.Key.Compare does: the separator is below every
// character of a name.
func radixKey(key api.Key) []byte {
	b := make([]byte, 0, len(key.Kind)+len(key.Namespace)+len(key.Name)+3)
	b = append(b, key.Kind...)
	b = append(b, 0)
	b = append(b, key.Namespace...)
	b = append(b, 0)
	return append(b, key.Name...)
}
