package engine

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

// orderNames brings the order of the rows by name up to date; only clusters that
// come or go change it.
func (b *edit) orderNames() {
	if len(b.gone) == 0 && len(b.index) == len(b.old.index) {
		return
	}
	var added []int32
	for at := range b.rows {
		old := ""
		if at < len(b.old.rows) && b.old.rows[at] != nil {
			old = b.old.name(at)
		}
		if b.rows[at] != nil && b.name(at) != old {
			added = append(added, int32(at))
		}
	}
	b.sortByName(added)
	byName := make([]int32, 0, len(b.index))
	next := 0
	for _, at := range b.byName {
		if b.rows[at] == nil || b.name(int(at)) != b.old.name(int(at)) {
			continue
		}
		for next < len(added) && b.name(int(added[next])) < b.name(int(at)) {
			byName = append(byName, added[next])
			next++
		}
		byName = append(byName, at)
	}
	b.byName = append(byName, added[next:]...)
	b.nameRank = make([]int32, len(b.rows))
	for rank, at := range b.byName {
		b.nameRank[at] = int32(rank)
	}
}

// sortByName sorts rows by name. Names mostly begin alike ("cluster00017"), so
// the eight bytes after what all have in common are compared first, as one
// number.
func (b *edit) sortByName(rows []int32) {
	if len(rows) < 2 {
		return
	}
	common := b.name(int(rows[0]))
	for _, at := range rows[1:] {
		name := b.name(int(at))
		n := 0
		for n < len(common) && n < len(name) && common[n] == name[n] {
			n++
		}
		common = common[:n]
	}
	type keyed struct {
		head uint64
		row  int32
	}
	list := make([]keyed, len(rows))
	for i, at := range rows {
		var head [8]byte
		copy(head[:], b.name(int(at))[len(common):])
		list[i] = keyed{binary.BigEndian.Uint64(head[:]), at}
	}
	slices.SortFunc(list, func(x, y keyed) int {
		return cmp.Or(cmp.Compare(x.head, y.head), strings.Compare(b.name(int(x.row)), b.name(int(y.row))))
	})
	for i, k := range list {
		rows[i] = k.row
	}
}
