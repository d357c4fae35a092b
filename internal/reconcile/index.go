package reconcile

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
