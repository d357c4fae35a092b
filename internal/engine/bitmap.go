package engine

import "math/bits"

// Bitmap is a set of rows, one bit each. All bitmaps of a fleet have the same
// length.
type Bitmap []uint64

// newBitmap is an empty set that has space for a number of rows.
func newBitmap(rows int) Bitmap { return make(Bitmap, (rows+63)/64) }

// Has reports whether the row is in the set.
func (b Bitmap) Has(row int) bool { return b[row>>6]&(1<<(row&63)) != 0 }

// set puts a row into the set.
func (b Bitmap) set(row int) { b[row>>6] |= 1 << (row & 63) }

// clear takes a row out of the set.
func (b Bitmap) clear(row int) { b[row>>6] &^= 1 << (row & 63) }

// Assign sets or clears the row.
func (b Bitmap) Assign(row int, in bool) {
	if in {
		b.set(row)
	} else {
		b.clear(row)
	}
}

// Count is the number of rows in the set.
func (b Bitmap) Count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// and keeps the rows that are in the other set as well.
func (b Bitmap) and(other Bitmap) {
	for i, w := range other[:len(b)] {
		b[i] &= w
	}
}

// andNot takes the rows of the other set out.
func (b Bitmap) andNot(other Bitmap) {
	for i, w := range other[:len(b)] {
		b[i] &^= w
	}
}

// or adds the rows of the other set.
func (b Bitmap) or(other Bitmap) {
	for i, w := range other {
		b[i] |= w
	}
}

// rows lists the set, in ascending order.
func (b Bitmap) rows() []int {
	var list []int
	b.each(func(row int) { list = append(list, row) })
	return list
}

// each calls f for every row of the set, in ascending order.
func (b Bitmap) each(f func(row int)) {
	for i, w := range b {
		for w != 0 {
			f(i<<6 + bits.TrailingZeros64(w))
			w &= w - 1
		}
	}
}

// grown returns a copy that has room for the given number of rows.
func (b Bitmap) grown(rows int) Bitmap {
	out := newBitmap(rows)
	copy(out, b)
	return out
}
