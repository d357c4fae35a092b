package informer

import (
	"crypto/sha256"
	"fmt"
	"iter"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/scheduler/terraform-provider-scheduler/internal/kube"
)

// maxObjects is the maximum number of objects of one type: more than three times what Kubernetes
// supports.
const maxObjects = 500_000

// UID is the UID of an object in binary form, which needs half the space.
type UID [16]byte

// Change is the change of one object: Old is the zero value if it was created, New if it was
// deleted.
type Change[V any] struct{ Old, New V }

// Table holds what is kept of the objects of one type.
type Table[V any] struct {
	same func(a, b V) bool

	mu      sync.Mutex
	reduce  func(runtime.Object) (V, bool)
	told    func(iter.Seq[Change[V]]) // called with every change; may be nil
	fresh   bool                      // told has not been called yet
	rows    map[UID]V
	version uint64 // grows when a row changes; 0 = never listed
	err     error  // why the rows are not current
	watched bool
}

// NewTable returns a table of the results of reduce; objects for which it returns false are left
// out. same compares two results, where the zero value stands for none; changes between equal
// results are ignored.
func NewTable[V any](reduce func(runtime.Object) (V, bool), same func(a, b V) bool) *Table[V] {
	return &Table[V]{reduce: reduce, same: same}
}

// Tell calls f with all objects at once, and then with each change. It is called with the lock of
// the table held: it must be quick and must not call back.
func (t *Table[V]) Tell(f func(iter.Seq[Change[V]])) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told, t.fresh = f, true
}

// forget removes all rows.
func (t *Table[V]) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows, t.version, t.err = nil, 0, nil
}

// become changes what the table keeps of objects.
func (t *Table[V]) become(reduce func(runtime.Object) (V, bool)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reduce = reduce
}

func keyOf(object runtime.Object) (UID, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return UID{}, err
	}
	id := string(accessor.GetUID())
	if id == "" {
		// Every API server sets one; if not, names identify objects.
		id = accessor.GetNamespace() + "/" + accessor.GetName()
	}
	sum := sha256.Sum256([]byte(id))
	return UID(sum[:16]), nil
}

// read adds a page of a list to rows that do not belong to the table yet.
func (t *Table[V]) read(page runtime.Object, rows map[UID]V) error {
	err := meta.EachListItem(page, func(object runtime.Object) error {
		key, err := keyOf(object)
		if err != nil {
			return err
		}
		if v, ok := t.reduce(object); ok {
			rows[key] = v
		}
		return nil
	})
	if err == nil && len(rows) > maxObjects {
		err = fmt.Errorf("there are more than %d of them", maxObjects)
	}
	return err
}

// replace replaces the table's rows by those of a complete list.
func (t *Table[V]) replace(rows map[UID]V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.rows
	t.rows, t.err = rows, nil
	counts := t.version == 0
	for change := range changes(before, rows) {
		if !t.same(change.Old, change.New) {
			counts = true
			break
		}
	}
	if counts {
		t.version++
	}
	if t.fresh {
		before = nil
	}
	t.tell(changes(before, rows))
}

// changes yields the differences between two sets of rows.
func changes[V any](before, now map[UID]V) iter.Seq[Change[V]] {
	return func(yield func(Change[V]) bool) {
		for key, v := range now {
			if !yield(Change[V]{before[key], v}) {
				return
			}
		}
		for key, old := range before {
			if _, kept := now[key]; !kept && !yield(Change[V]{Old: old}) {
				return
			}
		}
	}
}

// tell reports changes. The caller holds the lock.
func (t *Table[V]) tell(changes iter.Seq[Change[V]]) {
	if t.fresh = false; t.told != nil {
		t.told(changes)
	}
}

// one yields one change.
func one[V any](old, v V) iter.Seq[Change[V]] {
	return func(yield func(Change[V]) bool) { yield(Change[V]{old, v}) }
}

// Put adds or updates an object, and reports whether that changed anything.
func (t *Table[V]) Put(object runtime.Object) (bool, error) {
	key, err := keyOf(object)
	if err != nil {
		return false, err
	}
	v, ok := t.reduce(object)
	if !ok {
		return t.Remove(object)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	old, known := t.rows[key]
	if !known && len(t.rows) >= maxObjects {
		return false, fmt.Errorf("there are more than %d of them", maxObjects)
	}
	if t.rows == nil {
		t.rows = map[UID]V{}
	}
	t.rows[key] = v
	t.tell(one(old, v))
	if t.same(old, v) {
		return false, nil
	}
	t.version++
	return true, nil
}

// Remove removes an object, and reports whether it was there.
func (t *Table[V]) Remove(object runtime.Object) (bool, error) {
	key, err := keyOf(object)
	if err != nil {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	old, known := t.rows[key]
	if !known {
		return false, nil
	}
	delete(t.rows, key)
	t.tell(one(old, *new(V)))
	if t.same(old, *new(V)) {
		return false, nil
	}
	t.version++
	return true, nil
}

// fail records why the rows are not current; nil = they are again. It reports whether that is a
// change.
func (t *Table[V]) fail(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	news := (t.err == nil) != (err == nil) || err != nil && t.err.Error() != err.Error()
	t.err = err
	return news
}

// watch records whether changes are being received.
func (t *Table[V]) watch(watched bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watched = watched
}

// Failure returns why changes are not being received, or nil if they are or will be in a moment.
func (t *Table[V]) Failure(g *Gate) error {
	t.mu.Lock()
	err, watched := t.err, t.watched
	t.mu.Unlock()
	switch {
	case watched:
		return nil
	case err == nil, apierrors.HasStatusCause(err, kube.TornWatch):
		return g.reason()
	}
	return err
}

// State returns the version of the rows, and why they are not current.
func (t *Table[V]) State() (version uint64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.version, t.err
}

// View calls f with the rows, which it must not retain.
func (t *Table[V]) View(f func(rows map[UID]V)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(t.rows)
}

// Len returns the number of objects in the table.
func (t *Table[V]) Len() (n int) {
	t.View(func(rows map[UID]V) { n = len(rows) })
	return n
}
