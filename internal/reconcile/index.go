package reconcile

import "github.com/google/btree"

// thaw returns an independent tree that starts from a frozen one. It may be called concurrently.
func thaw[T any](frozen *btree.BTreeG[T]) *btree.BTreeG[T] {
	shared := *frozen // Clone writes to its receiver
	return shared.Clone()
}

// add adds a value to one set of an index.
func add[K, V comparable, S ~map[V]struct{}](index map[K]S, at K, v V) {
	if index[at] == nil {
		index[at] = S{}
	}
	index[at][v] = struct{}{}
}

// drop removes a value from one set of an index.
func drop[K, V comparable, S ~map[V]struct{}](index map[K]S, at K, v V) {
	delete(index[at], v)
	if len(index[at]) == 0 {
		delete(index, at)
	}
}
