package columns

import (
	"maps"
	"slices"
)

// writer creates the sets of one version of a fleet. A set that an earlier version made is shared
// and therefore copied before it is modified; a set that this version made is modified in place.
type writer struct {
	version uint64
	slots   int // rows that the version will have
	// sets and lists allocate new ones.
	sets  slab[RowSet]
	lists slab[int32]
}

// writable returns a set that may be modified: the set itself, or a copy.
func (w *writer) writable(s *RowSet) *RowSet {
	if s != nil && s.made == w.version {
		return s
	}
	own := &w.sets.take(1)[0]
	own.made = w.version
	switch {
	case s == nil:
	case s.dense != nil && s.n > denseAbove(w.slots)/2:
		own.dense, own.n = s.dense.Grown(w.slots), s.n
	default:
		own.sparse, own.n = s.list(), s.n
	}
	return own
}

// put adds a row to a writable set.
func (w *writer) put(s *RowSet, row int) {
	if s.dense != nil {
		if !s.dense.Has(row) {
			s.dense.Set(row)
			s.n++
		}
		return
	}
	at := len(s.sparse)
	if at > 0 && s.sparse[at-1] >= int32(row) {
		known := false
		if at, known = slices.BinarySearch(s.sparse, int32(row)); known {
			return
		}
	}
	s.n++
	switch {
	case s.n > denseAbove(w.slots):
		s.dense = NewBitmap(w.slots)
		for _, other := range s.sparse {
			s.dense.Set(int(other))
		}
		s.dense.Set(row)
		s.sparse = nil
	case s.sparse == nil:
		s.sparse = w.lists.take(1)
		s.sparse[0] = int32(row)
	case at == len(s.sparse):
		s.sparse = append(s.sparse, int32(row))
	default:
		s.sparse = slices.Insert(s.sparse, at, int32(row))
	}
}

// take removes a row from a writable set.
func (w *writer) take(s *RowSet, row int) {
	if !s.Has(row) {
		return
	}
	s.n--
	if s.dense != nil {
		s.dense.Clear(row)
		if s.n <= denseAbove(w.slots)/2 {
			s.sparse, s.dense = s.list(), nil
		}
		return
	}
	at, _ := slices.BinarySearch(s.sparse, int32(row))
	s.sparse = slices.Delete(s.sparse, at, at+1)
}

// assigned returns a set with a row added or removed.
func (w *writer) assigned(s *RowSet, row int, in bool) *RowSet {
	if s.Has(row) == in {
		return s
	}
	s = w.writable(s)
	if in {
		w.put(s, row)
	} else {
		w.take(s, row)
	}
	return s
}

// setTable is a table of sets that is being modified. It contains no empty sets.
type setTable[K comparable] struct {
	sets map[K]*RowSet
	own  bool // sets has been copied
}

func (t *setTable[K]) put(w *writer, key K, row int) {
	before := t.sets[key]
	s := w.writable(before)
	w.put(s, row)
	if s != before {
		t.write(key, s)
	}
}

func (t *setTable[K]) take(w *writer, key K, row int) {
	before := t.sets[key]
	if !before.Has(row) {
		return
	}
	s := w.writable(before)
	w.take(s, row)
	if s != before || s.n == 0 {
		t.write(key, s)
	}
}

// write sets the set of a key.
func (t *setTable[K]) write(key K, s *RowSet) {
	if !t.own {
		t.own = true
		if t.sets = maps.Clone(t.sets); t.sets == nil {
			t.sets = map[K]*RowSet{}
		}
	}
	if s.n == 0 {
		delete(t.sets, key)
	} else {
		t.sets[key] = s
	}
}

// slab allocates many small values, chunk at a time. If chunk is 0, each is allocated separately.
type slab[T any] struct {
	chunk int
	free  []T
}

// take allocates n values.
func (s *slab[T]) take(n int) []T {
	if n > len(s.free) {
		if n >= s.chunk {
			return make([]T, n)
		}
		s.free = make([]T, s.chunk)
	}
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}
