package filter

import (
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// clusterSets restricts a placement to the clusters of the sets that it names, provided that they
// exist and admit its namespace.
type clusterSets struct{}

func (clusterSets) Name() string { return "cluster_sets" }

func (clusterSets) Compile(s *Spec, made []Check) ([]Check, error) {
	if len(s.Placement.ClusterSets) == 0 {
		return made, nil
	}
	sets := slices.Compact(slices.Sorted(slices.Values(s.Placement.ClusterSets)))
	return append(made, &inSets{sets: sets, namespace: s.Namespace}), nil
}

// inSets requires that a cluster is in at least one of some sets.
type inSets struct {
	clusterSets
	sets      []string // sorted
	namespace string
}

func (c *inSets) Key(k key.Writer) {
	k.Set("sets", c.sets)
	k.Text("namespace", c.namespace)
}

func (c *inSets) Reads() columns.Aspects { return columns.Membership | columns.Sets }

func (c *inSets) On() string { return strings.Join(c.sets, ", ") }

func (c *inSets) Rejection(n int) string {
	return Plural(n, "is", "are") + " not in " + Plural(len(c.sets), "cluster set ", "cluster sets ") + c.On()
}

func (c *inSets) Apply(l *Evaluation, keep columns.Bitmap) {
	union := l.scratch
	clear(union)
	for _, name := range c.sets {
		if s := l.Fleet.Sets()[name]; s != nil && s.Set.Admits(c.namespace) {
			s.Rows.OrInto(union)
		}
	}
	keep.And(union)
}

func (c *inSets) Admits(l *Evaluation, row int, _ bool) bool {
	for _, name := range c.sets {
		if s := l.Fleet.Sets()[name]; s != nil && s.Set.Admits(c.namespace) && s.Rows.Has(row) {
			return true
		}
	}
	return false
}

func (c *inSets) Reason(*Evaluation, int) string {
	if len(c.sets) == 1 {
		return "is not in cluster set " + c.On()
	}
	return "is in none of the cluster sets " + c.On()
}

// Sets implements Confining.
func (c *inSets) Sets() []string { return c.sets }

// Usable implements Confining.
func (c *inSets) Usable(f *columns.Fleet) (names []string, members int) {
	for _, name := range c.sets {
		if s := f.Sets()[name]; s != nil && s.Set.Admits(c.namespace) {
			names = append(names, name)
			members += s.Rows.Len()
		}
	}
	return names, members
}
