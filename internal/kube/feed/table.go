package feed

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

// maxObjects is how many objects of one sort a cluster may have: more than three
// times as many as Kubernetes is made for.
const maxObjects = 500_000

// UID stands for the UID of an object, at half of its size.
type UID [16]byte

// Change is what became of one object: Old is the zero value of one that is new, New
// of one that is gone.
type Change[V any] struct{ Old, New V }

// Table is what counts of the objects of one sort, without the objects.
type Table[V any] struct {
	same func(a, b V) bool

	mu      sync.Mutex
	reduce  func(runtime.Object) (V, bool)
	told    func(iter.Seq[Change[V]]) // of every change; nil = nobody
	fresh   bool                      // who is told knows nothing yet
	rows    map[UID]V
	version uint64 // goes up when a row changes; 0 = never listed
	err     error  // why the rows are not current
	watched bool
}

// NewTable makes a table of what reduce leaves of an object, of nothing where it says
// false. same compares two of them, of which the zero value stands for none; a change
// between equal ones does not count.
func NewTable[V any](reduce func(runtime.Object) (V, bool), same func(a, b V) bool) *Table[V] {
	return &Table[V]{reduce: reduce, same: same}
}

// Tell has f told of the objects from now on, and first of all there are, in one call.
// It is called under the lock of the table: it must be quick and not ask back.
func (t *Table[V]) Tell(f func(iter.Seq[Change[V]])) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told, t.fresh = f, true
}

// forget has nothing known of the objects.
func (t *Table[V]) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows, t.version, t.err = nil, 0, nil
}

// become has the table keep something else of objects.
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
		// Every API server gives one; should one not, names tell objects apart.
		id = accessor.GetNamespace() + "/" + accessor.GetName()
	}
	sum := sha256.Sum256([]byte(id))
	return UID(sum[:16]), nil
}

// read takes a page of a list into rows that are not the table's yet.
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

// replace makes the rows of a whole list the table's.
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

// changes are those from some rows to others.
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

// tell tells of changes. The caller holds the lock.
func (t *Table[V]) tell(changes iter.Seq[Change[V]]) {
	if t.fresh = false; t.told != nil {
		t.told(changes)
	}
}

// one is one change.
func one[V any](old, v V) iter.Seq[Change[V]] {
	return func(yield func(Change[V]) bool) { yield(Change[V]{old, v}) }
}

// Put takes in an object that is new or different, and reports whether that
// changed anything that counts.
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

// Remove takes out an object, and reports whether it was there.
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

// fail notes why the rows are not current; nil = they are again. It reports
// whether that is news.
func (t *Table[V]) fail(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	news := (t.err == nil) != (err == nil) || err != nil && t.err.Error() != err.Error()
	t.err = err
	return news
}

// watch notes whether changes are heard of.
func (t *Table[V]) watch(watched bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watched = watched
}

// Failure says why changes are not heard of, nil where they are or will be in a moment.
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

// State is how current the rows are.
func (t *Table[V]) State() (version uint64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.version, t.err
}

// View calls f with the rows, which it must not keep.
func (t *Table[V]) View(f func(rows map[UID]V)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(t.rows)
}

// Len is how many objects there are of which something is kept.
func (t *Table[V]) Len() (n int) {
	t.View(func(rows map[UID]V) { n = len(rows) })
	return n
}
