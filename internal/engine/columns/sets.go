package columns

import (
	"maps"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// SetState is a cluster set with its members. Immutable.
type SetState struct {
	Set          *api.ClusterSet
	requirements []api.SelectorRequirement
	names        map[string]struct{} // the listed clusters; nil with a selector
	Rows         *RowSet
}

func newSetState(set *api.ClusterSet) *SetState {
	s := &SetState{Set: set}
	if set.Spec.Selector != nil {
		s.requirements = set.Spec.Selector.Requirements()
		return s
	}
	s.names = make(map[string]struct{}, len(set.Spec.Clusters))
	for _, name := range set.Spec.Clusters {
		s.names[name] = struct{}{}
	}
	return s
}

// has reports whether a cluster is a member of the set.
func (s *SetState) has(c *api.Cluster) bool {
	if s.names != nil {
		_, ok := s.names[c.Metadata.Name]
		return ok
	}
	for i := range s.requirements {
		value, present := c.Metadata.Labels[s.requirements[i].Key]
		if !s.requirements[i].Matches(value, present) {
			return false
		}
	}
	return true
}

// members returns the members of the set in a fleet, whose labels and names must be current.
func (s *SetState) members(f *Fleet) Bitmap {
	rows := NewBitmap(len(f.rows))
	if s.names == nil {
		copy(rows, f.live)
		f.Labels().SelectInto(s.requirements, rows, NewBitmap(len(f.rows)))
		return rows
	}
	for name := range s.names {
		if row, ok := f.index[name]; ok {
			rows.Set(row)
		}
	}
	return rows
}

// manyMembers is the number of changed clusters above which the members of a set are recomputed
// instead of being checked one by one.
const manyMembers = 64

// changeSets updates the cluster sets: changed sets, and changed clusters in the other sets.
// Clusters and labels must have been changed before.
func (b *edit) changeSets(changes map[string]*api.ClusterSet) {
	if len(changes) == 0 && (len(b.sets) == 0 || len(b.replaced) == 0) {
		return
	}
	sets := maps.Clone(b.sets)
	if sets == nil {
		sets = make(map[string]*SetState, len(changes))
	}
	for name, set := range changes {
		before := sets[name]
		switch {
		case set != nil:
			sets[name] = b.replaceSet(before, set)
		case before != nil:
			delete(sets, name)
			b.regroup(before.Rows)
		}
	}
	for name, before := range b.sets {
		if _, done := changes[name]; done {
			continue
		}
		after := b.followClusters(before)
		sets[name] = after
		if (before.Rows.Len() == 0) != (after.Rows.Len() == 0) {
			b.delta.Fleet |= Sets
		}
	}
	b.sets = sets
}

// regroup records that rows join or leave a set because the set changed.
func (b *edit) regroup(rows *RowSet) {
	b.changedRows(Membership, rows)
	b.delta.Fleet |= Sets
}

// replaceSet returns the state of a set that was written.
func (b *edit) replaceSet(before *SetState, set *api.ClusterSet) *SetState {
	after := newSetState(set)
	members := after.members(b.Fleet)
	after.Rows = rowSetOf(members)
	if before == nil {
		b.regroup(after.Rows)
		return after
	}
	moved := NewBitmap(len(b.rows))
	before.Rows.OrInto(moved)
	other := !sameNamespaces(before.Set, set)
	for i := range moved {
		if other {
			moved[i] |= members[i]
		} else {
			moved[i] ^= members[i]
		}
	}
	if other || moved.Count() > 0 {
		b.regroup(rowSetOf(moved))
	}
	return after
}

func sameNamespaces(a, b *api.ClusterSet) bool {
	x, y := slices.Sorted(slices.Values(a.Spec.Namespaces)), slices.Sorted(slices.Values(b.Spec.Namespaces))
	return slices.Equal(slices.Compact(x), slices.Compact(y))
}

// followClusters returns a set after clusters have changed.
func (b *edit) followClusters(before *SetState) *SetState {
	after := *before
	if len(b.replaced) > manyMembers {
		members := after.members(b.Fleet)
		moved := NewBitmap(len(b.rows))
		before.Rows.OrInto(moved)
		for i := range moved {
			moved[i] ^= members[i]
		}
		b.changedRows(Membership, rowSetOf(moved))
		after.Rows = rowSetOf(members)
		return &after
	}
	for _, at := range b.replaced {
		is := b.rows[at] != nil && after.has(b.rows[at].cluster)
		if before.Rows.Has(at) != is {
			b.changed(Membership, at)
		}
		after.Rows = b.writer.assigned(after.Rows, at, is)
	}
	if after.Rows == before.Rows {
		return before
	}
	return &after
}
