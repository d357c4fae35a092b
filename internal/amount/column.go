package amount

import "math"

// Column holds an amount for each row. It takes 8 bytes a row, as long as all amounts are small,
// and 16 otherwise; which of the two has no effect on any result. The nil Column is empty.
type Column struct {
	small []int64
	wide  []Milli // replaces small once an amount is not small
}

// smallBits limits small amounts, in thousandths: 2 PiB of memory. The sum of any three fits in an
// int64.
const smallBits = 61

// Small returns the amount in thousandths if it is below 2^61, or Unreported.
func (a Milli) Small() (milli int64, ok bool) {
	n := int64(a.low)
	return n, a.high == n>>63 && (-1<<smallBits < n && n < 1<<smallBits || n == math.MinInt64)
}

// Len returns the number of rows.
func (c *Column) Len() int {
	if c == nil {
		return 0
	}
	return max(len(c.small), len(c.wide))
}

// At returns the amount of a row, which must exist.
func (c *Column) At(row int) Milli {
	if c.wide == nil {
		return Of(c.small[row])
	}
	return c.wide[row]
}

// Set sets the amount of a row, which must exist.
func (c *Column) Set(row int, to Milli) {
	small, ok := to.Small()
	if ok && c.wide == nil {
		c.small[row] = small
		return
	}
	if c.wide == nil {
		c.wide = make([]Milli, len(c.small))
		for i, n := range c.small {
			c.wide[i] = Of(n)
		}
		c.small = nil
	}
	c.wide[row] = to
}

// Small returns the amounts in thousandths if all of them are small (see Milli.Small). Unreported is
// the lowest int64.
func (c *Column) Small() (amounts []int64, ok bool) {
	if c == nil {
		return nil, true
	}
	return c.small, c.wide == nil
}

// Copy returns a copy of at least the given number of rows. Further rows have the same small
// amount.
func (c *Column) Copy(rows int, further Milli) *Column {
	rows = max(rows, c.Len())
	if c != nil && c.wide != nil {
		return &Column{wide: filled(c.wide, rows, further)}
	}
	var small []int64
	if c != nil {
		small = c.small
	}
	return &Column{small: filled(small, rows, int64(further.low))}
}

func filled[T comparable](from []T, rows int, further T) []T {
	out := make([]T, rows)
	var zero T
	if n := copy(out, from); further != zero {
		for i := n; i < rows; i++ {
			out[i] = further
		}
	}
	return out
}
