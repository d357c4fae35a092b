package columns

import "math/bits"

// Bitmap is a set of rows, one bit each. All bitmaps of a fleet have the same length.
type Bitmap []uint64

// NewBitmap returns an empty set with space for a number of rows.
func NewBitmap(rows int) Bitmap { return make(Bitmap, (rows+63)/64) }

// Has reports whether the row is in the set.
func (b Bitmap) Has(row int) bool { return b[row>>6]&(1<<(row&63)) != 0 }

// Set adds the row.
func (b Bitmap) Set(row int) { b[row>>6] |= 1 << (row & 63) }

// Clear removes the row.
func (b Bitmap) Clear(row int) { b[row>>6] &^= 1 << (row & 63) }

// Assign sets or clears the row.
func (b Bitmap) Assign(row int, in bool) {
	if in {
		b.Set(row)
	} else {
		b.Clear(row)
	}
}

// Count returns the number of rows in the set.
func (b Bitmap) Count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// And keeps only the rows that are also in the other set.
func (b Bitmap) And(other Bitmap) {
	for i, w := range other[:len(b)] {
		b[i] &= w
	}
}

// AndNot removes the rows of the other set.
func (b Bitmap) AndNot(other Bitmap) {
	for i, w := range other[:len(b)] {
		b[i] &^= w
	}
}

// Or adds the rows of the other set.
func (b Bitmap) Or(other Bitmap) {
	for i, w := range other {
		b[i] |= w
	}
}

// Rows returns the rows in ascending order.
func (b Bitmap) Rows() []int {
	count := b.Count()
	if count == 0 {
		return nil
	}
	list := make([]int, 0, count)
	b.Each(func(row int) { list = append(list, row) })
	return list
}

// Each calls f for every row of the set, in ascending order.
func (b Bitmap) Each(f func(row int)) {
	for i, w := range b {
		for w != 0 {
			f(i<<6 + bits.TrailingZeros64(w))
			w &= w - 1
		}
	}
}

// Grown returns a copy with space for the given number of rows.
func (b Bitmap) Grown(rows int) Bitmap {
	out := NewBitmap(rows)
	copy(out, b)
	return out
}
