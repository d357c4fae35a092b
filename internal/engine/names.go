package engine

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// orderNames brings the order of the rows by name up to date when clusters came
// or went.
func (b *edit) orderNames() {
	byName := make([]int32, 0, len(b.index))
	next := 0
	for _, at := range b.byName {
		name := b.old.name(int(at))
		if b.rows[at] == nil || b.name(int(at)) != name {
			continue
		}
		for next < len(b.added) && b.name(int(b.added[next])) < name {
			byName = append(byName, b.added[next])
			next++
		}
		byName = append(byName, at)
	}
	b.byName = append(byName, b.added[next:]...)
	b.nameRank = make([]int32, len(b.rows))
	for rank, at := range b.byName {
		b.nameRank[at] = int32(rank)
	}
}

// clusterChange is a cluster to be written or, with nil, to be taken out.
type clusterChange struct {
	name    string
	cluster *api.Cluster
}

// inNameOrder sorts changes by name. Names mostly begin alike ("cluster00017"),
// so the eight bytes after what all have in common are compared first, as one
// number.
func inNameOrder(changes map[string]*api.Cluster) []clusterChange {
	list := make([]clusterChange, 0, len(changes))
	common := ""
	for name, cluster := range changes {
		if len(list) == 0 {
			common = name
		}
		if !strings.HasPrefix(name, common) {
			n := 0
			for n < len(common) && n < len(name) && common[n] == name[n] {
				n++
			}
			common = common[:n]
		}
		list = append(list, clusterChange{name, cluster})
	}
	type keyed struct {
		head uint64
		at   int32
	}
	keys := make([]keyed, len(list))
	for i := range list {
		var head [8]byte
		copy(head[:], list[i].name[len(common):])
		keys[i] = keyed{binary.BigEndian.Uint64(head[:]), int32(i)}
	}
	slices.SortFunc(keys, func(x, y keyed) int {
		switch {
		case x.head < y.head:
			return -1
		case x.head > y.head:
			return 1
		}
		return strings.Compare(list[x.at].name, list[y.at].name)
	})
	ordered := make([]clusterChange, len(list))
	for i, key := range keys {
		ordered[i] = list[key.at]
	}
	return ordered
}
