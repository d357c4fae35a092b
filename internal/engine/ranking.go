package engine

import "slices"

// rank brings the ranking up to date. A few moved rows are taken out and put back
// in where they belong; more are merged.
func (b *edit) rank(delta Delta) {
	if len(delta.Rows) == 0 {
		return
	}
	moved := make([]int32, 0, len(delta.Rows))
	for _, at := range delta.Rows {
		if b.live.Has(at) {
			moved = append(moved, int32(at))
		}
	}
	if len(delta.Rows) <= fewRows {
		left := make([]int32, 0, fewRows)
		for _, at := range delta.Rows {
			if b.old.Cluster(at) != nil {
				left = append(left, int32(at))
			}
		}
		list := make([]int32, len(b.ranking), len(b.ranking)+len(moved))
		copy(list, b.ranking)
		b.ranking = putRows(takeRows(list, left, b.old.compareRank), moved, b.compareRank)
		return
	}
	slices.SortFunc(moved, b.compareRank)
	b.ranking = mergeRows(make([]int32, 0, len(b.index)), b.ranking, moved, b.dirty, b.compareRank)
}

// fewRows is the number of rows up to which it costs less to move each by itself than
// to merge them all.
const fewRows = 16

// takeRows takes some rows out of a list that is in order; they may be missing.
func takeRows(list, rows []int32, compare func(x, y int32) int) []int32 {
	for _, row := range rows {
		if at, ok := slices.BinarySearchFunc(list, row, compare); ok && list[at] == row {
			list = slices.Delete(list, at, at+1)
		}
	}
	return list
}

// putRows puts some rows into a list that is in order.
func putRows(list, rows []int32, compare func(x, y int32) int) []int32 {
	for _, row := range rows {
		at, _ := slices.BinarySearchFunc(list, row, compare)
		list = slices.Insert(list, at, row)
	}
	return list
}

// mergeRows appends to dst two lists of rows that are each in order, the first
// without the rows in out.
func mergeRows(dst, rows, moved []int32, out Bitmap, compare func(x, y int32) int) []int32 {
	next := 0
	for _, at := range rows {
		if out.Has(int(at)) {
			continue
		}
		for next < len(moved) && compare(moved[next], at) < 0 {
			dst = append(dst, moved[next])
			next++
		}
		dst = append(dst, at)
	}
	return append(dst, moved[next:]...)
}

// compareRank orders rows: scored before unscored, then by score, best first.
// Rows of equal score stand in row order, which means nothing: each placement
// orders them by its own tie hash.
func (f *Fleet) compareRank(x, y int32) int {
	a, c := f.standing(int(x)), f.standing(int(y))
	switch {
	case c.less(a):
		return -1
	case a.less(c):
		return 1
	}
	return int(x - y)
}

// standing is the merit of a row without regard to any placement: clusters with
// metrics stand above those without.
type standing struct {
	scored bool
	score  float64
}

// less reports whether a cluster ranks after another.
func (s standing) less(t standing) bool {
	if s.scored != t.scored {
		return t.scored
	}
	return s.score < t.score
}

// standing is that of a row, without stickiness.
func (f *Fleet) standing(row int) standing {
	return standing{f.scored.Has(row), f.score[row]}
}
