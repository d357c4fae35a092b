package columns

import (
	"math/bits"
	"slices"
)

// RowSet is a set of rows: a sorted list if it is small, a bitmap once that takes less memory. A
// label with a different value on every cluster (such as a host name) therefore costs a few bytes
// per cluster instead of a bitmap each. A set is immutable once the version that made it is
// complete. The nil set is empty.
type RowSet struct {
	sparse []int32
	dense  Bitmap
	n      int
	made   uint64 // version of the fleet that made it
}

// denseAbove is the number of rows, 1 in 32, above which a list at four bytes per row is larger
// than a bitmap.
func denseAbove(rows int) int { return max(rows/32, 8) }

// rowSetOf returns the set of a bitmap's rows. It may keep the bitmap.
func rowSetOf(rows Bitmap) *RowSet {
	n := rows.Count()
	if n > denseAbove(64*len(rows))/2 {
		return &RowSet{dense: rows, n: n}
	}
	few := RowSet{dense: rows, n: n}
	return &RowSet{sparse: few.list(), n: n}
}

// list returns a new list of the rows, with space for one more.
func (s *RowSet) list() []int32 {
	list := make([]int32, 0, s.n+1)
	s.Each(func(row int) { list = append(list, int32(row)) })
	return list
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

// Len returns the number of rows.
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

// EachIn calls f for every row that is also in b, in ascending order.
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

// AndInto removes the rows that are not in the set from b. It overwrites scratch.
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

// Meets reports whether the sets intersect.
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
