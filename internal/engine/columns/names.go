package columns

import (
	"encoding/binary"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// orderNames updates the name order after clusters were added or removed.
func (b *edit) orderNames() {
	byName := make([]int32, 0, len(b.index))
	next := 0
	for _, at := range b.byName {
		name := b.old.Name(int(at))
		if b.rows[at] == nil || b.Name(int(at)) != name {
			continue
		}
		for next < len(b.added) && b.Name(int(b.added[next])) < name {
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

// clusterChange is a cluster to be written or, if nil, removed.
type clusterChange struct {
	name    string
	cluster *api.Cluster
}

// inNameOrder sorts changes by name. Names often share a prefix ("cluster00017"), so the sort head
// starts after the common prefix.
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
	head := func(x clusterChange) uint64 {
		var head [8]byte
		copy(head[:], x.name[len(common):])
		return binary.BigEndian.Uint64(head[:])
	}
	return SortByHead(list, head, byChangedName)
}

func byChangedName(x, y clusterChange) int { return strings.Compare(x.name, y.name) }
