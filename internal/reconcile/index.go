package reconcile

import "github.com/google/btree"

// thaw returns a tree that begins with what a tree that nobody changes holds. It may
// be called from many goroutines.
func thaw[T any](frozen *btree.BTreeG[T]) *btree.BTreeG[T] {
	shared := *frozen // Clone writes to what it clones
	return shared.Clone()
}

// add puts something into one set of an index.
func add[K, V comparable, S ~map[V]struct{}](index map[K]S, at K, v V) {
	if index[at] == nil {
		index[at] = S{}
	}
	index[at][v] = struct{}{}
}

// drop takes something out of one set of an index.
func drop[K, V comparable, S ~map[V]struct{}](index map[K]S, at K, v V) {
	delete(index[at], v)
	if len(index[at]) == 0 {
		delete(index, at)
	}
}
