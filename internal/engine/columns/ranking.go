package columns

import (
	"math"
	"slices"
)

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
	if len(delta.Rows) <= FewRows {
		left := make([]int32, 0, FewRows)
		for _, at := range delta.Rows {
			if b.old.Cluster(at) != nil {
				left = append(left, int32(at))
			}
		}
		list := make([]int32, len(b.ranking), len(b.ranking)+len(moved))
		copy(list, b.ranking)
		b.ranking = PutRows(TakeRows(list, left, b.old.compareRank), moved, b.compareRank)
		return
	}
	moved = SortByHead(moved, b.rankHead, b.compareRank)
	b.ranking = MergeRows(make([]int32, 0, len(b.index)), b.ranking, moved, b.dirty, b.compareRank)
}

// FewRows is the number of rows up to which it costs less to move each by itself than
// to merge them all.
const FewRows = 16

// TakeRows takes some rows out of a list that is in order; they may be missing.
func TakeRows(list, rows []int32, compare func(x, y int32) int) []int32 {
	for _, row := range rows {
		if at, ok := slices.BinarySearchFunc(list, row, compare); ok && list[at] == row {
			list = slices.Delete(list, at, at+1)
		}
	}
	return list
}

// PutRows puts some rows into a list that is in order.
func PutRows(list, rows []int32, compare func(x, y int32) int) []int32 {
	for _, row := range rows {
		at, _ := slices.BinarySearchFunc(list, row, compare)
		list = slices.Insert(list, at, row)
	}
	return list
}

// MergeRows appends to dst two lists of rows that are each in order, the first
// without the rows in out.
func MergeRows(dst, rows, moved []int32, out Bitmap, compare func(x, y int32) int) []int32 {
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

// CompareRank orders rows: scored before unscored, then by score, best first.
// Rows of equal score stand in row order, which means nothing: each placement
// orders them by its own tie hash.
func (f *Fleet) compareRank(x, y int32) int {
	a, c := f.Standing(int(x)), f.Standing(int(y))
	switch {
	case c.Less(a):
		return -1
	case a.Less(c):
		return 1
	}
	return int(x - y)
}

// rankHead is a head of a row for compareRank.
func (f *Fleet) rankHead(row int32) uint64 {
	if !f.scored.Has(int(row)) {
		return math.MaxUint64
	}
	return HeadOfScore(f.score[row])
}

// Standing is the merit of a row without regard to any placement: clusters with
// metrics stand above those without.
type Standing struct {
	Scored bool
	Score  float64
}

// Less reports whether a cluster ranks after another.
func (s Standing) Less(t Standing) bool {
	if s.Scored != t.Scored {
		return t.Scored
	}
	return s.Score < t.Score
}

// Standing is that of a row, without stickiness.
func (f *Fleet) Standing(row int) Standing {
	return Standing{f.scored.Has(row), f.score[row]}
}
