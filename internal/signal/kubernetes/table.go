package kubernetes

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// maxObjects is how many objects of one sort a cluster may have: more than three
// times as many as Kubernetes is made for.
const maxObjects = 500_000

// uid stands for the UID of an object, at half of its size.
type uid [16]byte

// table is what counts of the objects of one sort, without the objects.
type table[V comparable] struct {
	reduce func(runtime.Object) (V, bool)

	mu      sync.Mutex
	rows    map[uid]V
	version uint64 // goes up when a row changes; 0 = never listed
	err     error  // why the rows are not current
}

func keyOf(object runtime.Object) (uid, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return uid{}, err
	}
	id := string(accessor.GetUID())
	if id == "" {
		// Every API server gives one; should one not, names tell objects apart.
		id = accessor.GetNamespace() + "/" + accessor.GetName()
	}
	sum := sha256.Sum256([]byte(id))
	return uid(sum[:16]), nil
}

// read takes a page of a list into rows that are not the table's yet.
func (t *table[V]) read(page runtime.Object, rows map[uid]V) error {
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
func (t *table[V]) replace(rows map[uid]V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.version == 0 || !maps.Equal(t.rows, rows) {
		t.version++
	}
	t.rows, t.err = rows, nil
}

// put takes in an object that is new or different, and reports whether that
// changed anything that counts.
func (t *table[V]) put(object runtime.Object) (bool, error) {
	key, err := keyOf(object)
	if err != nil {
		return false, err
	}
	v, ok := t.reduce(object)
	if !ok {
		return t.remove(object)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	old, known := t.rows[key]
	if known && old == v {
		return false, nil
	}
	if !known && len(t.rows) >= maxObjects {
		return false, fmt.Errorf("there are more than %d of them", maxObjects)
	}
	t.rows[key] = v
	t.version++
	return true, nil
}

// remove takes out an object, and reports whether it was there.
func (t *table[V]) remove(object runtime.Object) (bool, error) {
	key, err := keyOf(object)
	if err != nil {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.rows[key]; !known {
		return false, nil
	}
	delete(t.rows, key)
	t.version++
	return true, nil
}

// fail notes why the rows are not current; nil = they are again. It reports
// whether that is news.
func (t *table[V]) fail(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	news := (t.err == nil) != (err == nil) || err != nil && t.err.Error() != err.Error()
	t.err = err
	return news
}

// state is how current the rows are.
func (t *table[V]) state() (version uint64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.version, t.err
}

// view calls f with the rows, which it must not keep.
func (t *table[V]) view(f func(rows map[uid]V)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(t.rows)
}
