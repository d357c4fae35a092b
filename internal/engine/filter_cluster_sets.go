package engine

import (
	"slices"
	"strings"
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
	return append(made, &inSets{sets: sets, namespace: s.Namespace}), nil
}

// inSets asks for the clusters of any of some sets.
type inSets struct {
	clusterSets
	sets      []string // sorted
	namespace string
}

func (c *inSets) Key(k *Key) {
	k.Set("sets", c.sets)
	k.Text("namespace", c.namespace)
}

func (c *inSets) Reads() Aspects { return Membership | Sets }

func (c *inSets) On() string { return strings.Join(c.sets, ", ") }

func (c *inSets) Blame(n int) string {
	return plural(n, "is", "are") + " not in " + plural(len(c.sets), "cluster set ", "cluster sets ") + c.On()
}

func (c *inSets) Apply(l *Look, keep Bitmap) {
	union := l.scratch
	clear(union)
	for _, name := range c.sets {
		if s := l.fleet.sets[name]; s != nil && s.set.Admits(c.namespace) {
			s.rows.orInto(union)
		}
	}
	keep.and(union)
}

func (c *inSets) Admits(l *Look, row int, _ bool) bool {
	for _, name := range c.sets {
		if s := l.fleet.sets[name]; s != nil && s.set.Admits(c.namespace) && s.rows.has(row) {
			return true
		}
	}
	return false
}

func (c *inSets) Reason(*Look, int) string {
	if len(c.sets) == 1 {
		return "is not in cluster set " + c.On()
	}
	return "is in none of the cluster sets " + c.On()
}

// usable are the sets that exist and admit the namespace, in the order of their
// names, and how many clusters they have together at most: none is what matters.
func (c *inSets) usable(f *Fleet) (names []string, members int) {
	for _, name := range c.sets {
		if s := f.sets[name]; s != nil && s.set.Admits(c.namespace) {
			names = append(names, name)
			members += s.rows.len()
		}
	}
	return names, members
}
