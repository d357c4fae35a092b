package columns

import (
	"math/bits"
	"slices"
)

// RowSet is an immutable set of rows: a sorted list while it has few, a bitmap
// once that is smaller. A label that every cluster has with its own value (a
// host name) thus costs a few bytes per cluster instead of a bitmap each.
// The nil set is empty.
type RowSet struct {
	sparse []int32
	dense  Bitmap
	n      int
}

// denseAbove is the share of rows, 1 in 32, at which four bytes per listed row
// outgrow one bit per row of the fleet.
func denseAbove(rows int) int { return max(rows/32, 8) }

// rowSetOf is the set of a bitmap's rows; it may keep the bitmap.
func rowSetOf(rows Bitmap) *RowSet {
	n := rows.Count()
	if n > denseAbove(64*len(rows))/2 {
		return &RowSet{dense: rows, n: n}
	}
	out := &RowSet{sparse: make([]int32, 0, n), n: n}
	rows.Each(func(row int) { out.sparse = append(out.sparse, int32(row)) })
	return out
}

// Has reports whether a row is in the set.
func (s *RowSet) Has(row int) bool {
	if s == nil {
		return false
	}
	if s.dense != nil {
		return row>>6 < len(s.dense) && s.dense.Has(row)
	}
	_, ok := slices.BinarySearch(s.sparse, int32(row))
	return ok
}

// Len is the number of rows.
func (s *RowSet) Len() int {
	if s == nil {
		return 0
	}
	return s.n
}

// Each calls f for every row, in ascending order.
func (s *RowSet) Each(f func(row int)) {
	if s == nil {
		return
	}
	if s.dense != nil {
		s.dense.Each(f)
		return
	}
	for _, row := range s.sparse {
		f(int(row))
	}
}

// EachIn calls f for every row that is in b, too, in ascending order.
func (s *RowSet) EachIn(b Bitmap, f func(row int)) {
	if s == nil {
		return
	}
	for i, w := range s.dense[:min(len(s.dense), len(b))] {
		for w &= b[i]; w != 0; w &= w - 1 {
			f(i<<6 + bits.TrailingZeros64(w))
		}
	}
	for _, row := range s.sparse {
		if b.Has(int(row)) {
			f(int(row))
		}
	}
}

// OrInto adds the rows to b.
func (s *RowSet) OrInto(b Bitmap) {
	if s == nil {
		return
	}
	if s.dense != nil {
		for i, w := range s.dense {
			b[i] |= w
		}
		return
	}
	for _, row := range s.sparse {
		b.Set(int(row))
	}
}

// AndInto keeps in b only the rows of the set; scratch is overwritten.
func (s *RowSet) AndInto(b, scratch Bitmap) {
	if s != nil && s.dense != nil && len(s.dense) >= len(b) {
		b.And(s.dense)
		return
	}
	clear(scratch)
	s.OrInto(scratch)
	b.And(scratch)
}

// AndNotInto removes the rows of the set from b.
func (s *RowSet) AndNotInto(b Bitmap) {
	if s == nil {
		return
	}
	if s.dense != nil {
		for i, w := range s.dense {
			b[i] &^= w
		}
		return
	}
	for _, row := range s.sparse {
		b.Clear(int(row))
	}
}

// rowSetEdit collects changes to one set and applies them in one copy.
type rowSetEdit struct {
	add, remove []int32
}

func (e *rowSetEdit) put(row int)  { e.add = append(e.add, int32(row)) }
func (e *rowSetEdit) take(row int) { e.remove = append(e.remove, int32(row)) }

// apply returns the changed set for a fleet of the given number of rows.
func (e *rowSetEdit) apply(s *RowSet, rows int) *RowSet {
	if s == nil {
		s = &RowSet{}
	}
	if s.n == 0 && len(e.remove) == 0 && len(e.add) <= denseAbove(rows) {
		// A new set takes the edit's own list.
		slices.Sort(e.add)
		list := slices.Compact(e.add)
		return &RowSet{sparse: list, n: len(list)}
	}
	changed := s.n + len(e.add)
	if s.dense != nil || changed > denseAbove(rows) {
		dense := NewBitmap(rows)
		s.OrInto(dense)
		for _, row := range e.remove {
			dense.Clear(int(row))
		}
		for _, row := range e.add {
			dense.Set(int(row))
		}
		return rowSetOf(dense)
	}
	list := make([]int32, 0, changed)
	for _, row := range s.sparse {
		if !slices.Contains(e.remove, row) {
			list = append(list, row)
		}
	}
	list = append(list, e.add...)
	slices.Sort(list)
	list = slices.Compact(list)
	return &RowSet{sparse: list, n: len(list)}
}

// Meets reports whether the sets have a row in common.
func (s *RowSet) Meets(b Bitmap) bool {
	if s == nil {
		return false
	}
	if s.dense != nil {
		for i, w := range s.dense[:min(len(s.dense), len(b))] {
			if w&b[i] != 0 {
				return true
			}
		}
		return false
	}
	for _, row := range s.sparse {
		if int(row)>>6 < len(b) && b.Has(int(row)) {
			return true
		}
	}
	return false
}
