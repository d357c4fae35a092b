package decisiontable

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
)

// sorted returns the rows [from:to] in an order.
func (s *Selection) sorted(order string, from, to int) []int32 {
	t := s.table
	by, reversed := strings.CutPrefix(order, "-")
	value := map[string]func(*row) int64{
		"scheduled_at": func(r *row) int64 { return r.scheduledAt },
		"clusters":     func(r *row) int64 { return int64(len(t.clusters[r.clusters].chosen)) },
		"satisfied":    func(r *row) int64 { return int64(r.satisfied) },
	}[by]
	if value == nil { // by name
		if !reversed {
			return s.rows[from:to]
		}
		part := slices.Clone(s.rows[len(s.rows)-to : len(s.rows)-from])
		slices.Reverse(part)
		return part
	}
	type sortable struct {
		value int64
		at    int32
	}
	all := make([]sortable, len(s.rows))
	for i, at := range s.rows {
		if all[i] = (sortable{value(&t.rows[at]), at}); reversed {
			all[i].value = -all[i].value
		}
	}
	sortPart(all, from, to, func(a, b sortable) int {
		if a.value != b.value {
			return cmp.Compare(a.value, b.value)
		}
		return cmp.Compare(a.at, b.at)
	})
	part := make([]int32, 0, to-from)
	for _, row := range all[from:to] {
		part = append(part, row.at)
	}
	return part
}

// sortPart sorts rows[from:to] as they are when all rows are sorted; the others are in any order. With n rows it takes
// about n comparisons instead of n log n: one page of a hundred thousand rows is a tenth of the work.
func sortPart[T any](rows []T, from, to int, compare func(a, b T) int) {
	for rounds := 2 * bits.Len(uint(len(rows))); from < to; rounds-- {
		if len(rows) <= 2*(to-from)+32 || rounds == 0 {
			slices.SortFunc(rows, compare)
			return
		}
		less, more := partition(rows, compare)
		switch {
		case to <= less:
			rows = rows[:less]
		case from >= more:
			rows, from, to = rows[more:], from-more, to-more
		case from >= less && to <= more:
			return // all of it equals the pivot
		default:
			// The part lies on both sides of the pivot.
			sortPart(rows[:less], min(from, less), less, compare)
			sortPart(rows[more:], 0, max(to, more)-more, compare)
			return
		}
	}
}

// partition moves what is less than a pivot before rows[less:more], which equal it, and the rest behind.
func partition[T any](rows []T, compare func(a, b T) int) (less, more int) {
	pivot := medianOf(rows[0], rows[len(rows)/2], rows[len(rows)-1], compare)
	more = len(rows)
	for i := 0; i < more; {
		switch c := compare(rows[i], pivot); {
		case c < 0:
			rows[less], rows[i] = rows[i], rows[less]
			less++
			i++
		case c > 0:
			more--
			rows[more], rows[i] = rows[i], rows[more]
		default:
			i++
		}
	}
	return less, more
}

func medianOf[T any](a, b, c T, compare func(a, b T) int) T {
	if compare(a, b) > 0 {
		a, b = b, a
	}
	switch {
	case compare(b, c) <= 0:
		return b
	case compare(a, c) <= 0:
		return c
	}
	return a
}
