package columns

import (
	"math/bits"
	"slices"
)

// RowSet is a set of rows, immutable once the version that made it is complete: a
// sorted list while it has few, a bitmap once that is smaller. A label that every
// cluster has with its own value (a host name) thus costs a few bytes per cluster
// instead of a bitmap each. The nil set is empty.
type RowSet struct {
	sparse []int32
	dense  Bitmap
	n      int
	made   uint64 // the version of the fleet that made it
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
	few := RowSet{dense: rows, n: n}
	return &RowSet{sparse: few.list(), n: n}
}

// list is a new list of the rows, with room for one more.
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
