package filter

import (
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// clusterSets confines a placement to the clusters of the sets it names: of
// those that exist and admit its namespace.
type clusterSets struct{}

func (clusterSets) Name() string { return "cluster_sets" }

func (clusterSets) Compile(s *Spec, made []Check) ([]Check, error) {
	if len(s.Placement.ClusterSets) == 0 {
		return made, nil
	}
	sets := slices.Compact(slices.Sorted(slices.Values(s.Placement.ClusterSets)))
	return append(made, &InSets{Sets: sets, namespace: s.Namespace}), nil
}

// InSets asks for the clusters of any of some sets.
type InSets struct {
	clusterSets
	Sets      []string // sorted
	namespace string
}

func (c *InSets) Key(k *Key) {
	k.Set("sets", c.Sets)
	k.Text("namespace", c.namespace)
}

func (c *InSets) Reads() columns.Aspects { return columns.Membership | columns.Sets }

func (c *InSets) On() string { return strings.Join(c.Sets, ", ") }

func (c *InSets) Blame(n int) string {
	return Plural(n, "is", "are") + " not in " + Plural(len(c.Sets), "cluster set ", "cluster sets ") + c.On()
}

func (c *InSets) Apply(l *Look, keep columns.Bitmap) {
	union := l.scratch
	clear(union)
	for _, name := range c.Sets {
		if s := l.Fleet.Sets()[name]; s != nil && s.Set.Admits(c.namespace) {
			s.Rows.OrInto(union)
		}
	}
	keep.And(union)
}

func (c *InSets) Admits(l *Look, row int, _ bool) bool {
	for _, name := range c.Sets {
		if s := l.Fleet.Sets()[name]; s != nil && s.Set.Admits(c.namespace) && s.Rows.Has(row) {
			return true
		}
	}
	return false
}

func (c *InSets) Reason(*Look, int) string {
	if len(c.Sets) == 1 {
		return "is not in cluster set " + c.On()
	}
	return "is in none of the cluster sets " + c.On()
}

// Usable are the sets that exist and admit the namespace, in the order of their
// names, and how many clusters they have together at most: none is what matters.
func (c *InSets) Usable(f *columns.Fleet) (names []string, members int) {
	for _, name := range c.Sets {
		if s := f.Sets()[name]; s != nil && s.Set.Admits(c.namespace) {
			names = append(names, name)
			members += s.Rows.Len()
		}
	}
	return names, members
}
