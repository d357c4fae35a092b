package columns

import (
	"math"
	"slices"
)

// rank updates the ranking. A few rows are moved one by one; many are merged.
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

// FewRows is the number of rows up to which moving each one is cheaper than merging all.
const FewRows = 16

// TakeRows removes rows from a sorted list. The rows need not be in it.
func TakeRows(list, rows []int32, compare func(x, y int32) int) []int32 {
	for _, row := range rows {
		if at, ok := slices.BinarySearchFunc(list, row, compare); ok && list[at] == row {
			list = slices.Delete(list, at, at+1)
		}
	}
	return list
}

// PutRows inserts rows into a sorted list.
func PutRows(list, rows []int32, compare func(x, y int32) int) []int32 {
	for _, row := range rows {
		at, _ := slices.BinarySearchFunc(list, row, compare)
		list = slices.Insert(list, at, row)
	}
	return list
}

// MergeRows appends the merge of two sorted lists to dst, leaving the rows in out out of the first.
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

// compareRank orders rows: scored before unscored, then by score, best first. The order of rows
// with equal scores has no meaning: each placement orders them by its own tie hash.
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

// rankHead returns the head of a row for compareRank.
func (f *Fleet) rankHead(row int32) uint64 {
	if !f.scored.Has(int(row)) {
		return math.MaxUint64
	}
	return HeadOfScore(f.score[row])
}

// Standing is the part of a row's merit that is the same for all placements: clusters with usable
// metrics rank above those without.
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

// Standing returns the standing of a row, without stickiness.
func (f *Fleet) Standing(row int) Standing {
	return Standing{f.scored.Has(row), f.score[row]}
}
