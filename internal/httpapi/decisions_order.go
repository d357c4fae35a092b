package httpapi

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// merged merges decisions of two kinds, each by namespace and name.
func merged(a, b []*fleet.Entry) []*fleet.Entry {
	if len(a) == 0 {
		return b
	}
	all := make([]*fleet.Entry, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		x, y := a[0].Key(), b[0].Key()
		if cmp.Or(strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name), strings.Compare(string(x.Kind), string(y.Kind))) < 0 {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return append(append(all, a...), b...)
}

// sortedPart returns entries[from:to] as they are in an order; equal ones are by name, as all are given.
func sortedPart(entries []*fleet.Entry, order string, from, to int) []*fleet.Entry {
	by, reversed := strings.CutPrefix(order, "-")
	value := map[string]func(api.Object) int64{"scheduled_at": scheduledAt, "clusters": clusterCount, "satisfied": satisfaction}[by]
	if value == nil { // by name
		if !reversed {
			return entries[from:to]
		}
		slices.Reverse(entries)
		return entries[from:to]
	}
	type row struct{ value, at int64 }
	rows := make([]row, len(entries))
	for i, entry := range entries {
		if rows[i] = (row{value(entry.Object), int64(i)}); reversed {
			rows[i].value = -rows[i].value
		}
	}
	sortPart(rows, from, to, func(a, b row) int {
		if a.value != b.value {
			return cmp.Compare(a.value, b.value)
		}
		return cmp.Compare(a.at, b.at)
	})
	part := make([]*fleet.Entry, to-from)
	for i, row := range rows[from:to] {
		part[i] = entries[row.at]
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
