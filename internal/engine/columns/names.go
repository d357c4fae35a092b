package columns

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

// clusterChange is a cluster to be written or, with nil, to be taken out.
type clusterChange struct {
	name    string
	cluster *api.Cluster
}

// inNameOrder sorts changes by name. Names mostly begin alike ("cluster00017"),
// so the five bytes after what all have in common are sorted as numbers, with
// the place in the list below them; only those that are equal so far are
// compared as texts.
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
	if len(list) > placeMask {
		slices.SortFunc(list, byChangedName)
		return list
	}
	keys := make([]uint64, len(list))
	for i := range list {
		var head [8]byte
		copy(head[:5], list[i].name[len(common):])
		keys[i] = binary.BigEndian.Uint64(head[:]) | uint64(i)
	}
	slices.Sort(keys)
	ordered := make([]clusterChange, len(list))
	for i, key := range keys {
		ordered[i] = list[key&placeMask]
	}
	for i := 0; i < len(keys); {
		end := i + 1
		for end < len(keys) && keys[end]>>placeBits == keys[i]>>placeBits {
			end++
		}
		if end-i > 1 {
			slices.SortFunc(ordered[i:end], byChangedName)
		}
		i = end
	}
	return ordered
}

// A key of inNameOrder has the place in its lowest bits.
const (
	placeBits = 24
	placeMask = 1<<placeBits - 1
)

func byChangedName(x, y clusterChange) int { return strings.Compare(x.name, y.name) }
