package filter

import (
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// groups requires that a cluster belongs to a group of every spread constraint of a workload: that
// it has a region, zone, provider or label value.
type groups struct{}

func (groups) Name() string { return "spread_constraints" }

func (groups) Compile(s *Spec, made []Check) ([]Check, error) {
	if s.Policy == nil {
		return made, nil
	}
	for i := range s.Policy.SpreadConstraints {
		c := &s.Policy.SpreadConstraints[i]
		if c.SpreadByField != api.GroupByCluster { // every cluster is its own group
			made = append(made, &inGroup{by: c})
		}
	}
	return made, nil
}

// inGroup requires a group of one constraint.
type inGroup struct {
	groups
	by *api.GroupConstraint
}

func (c *inGroup) Key(k key.Writer) { k.Text("by", c.by.By()) }

func (c *inGroup) Reads() columns.Aspects {
	if c.by.SpreadByLabel != "" {
		return columns.Labels
	}
	return columns.Place
}

func (c *inGroup) On() string { return c.by.By() }

func (c *inGroup) Rejection(n int) string {
	return fmt.Sprintf("%s no %s", Plural(n, "has", "have"), c.by.By())
}

func (c *inGroup) Apply(l *Evaluation, keep columns.Bitmap) {
	if c.by.SpreadByLabel != "" {
		l.Fleet.Labels().Of(c.by.SpreadByLabel).Rows.AndInto(keep, l.scratch)
		return
	}
	union := columns.NewBitmap(l.Fleet.Slots())
	for _, rows := range l.Fleet.Places()[c.by.SpreadByField] {
		rows.OrInto(union)
	}
	keep.And(union)
}

func (c *inGroup) Admits(l *Evaluation, row int, _ bool) bool {
	return len(GroupsOf(l.Fleet.Cluster(row), c.by)) > 0
}

func (c *inGroup) Reason(*Evaluation, int) string {
	return fmt.Sprintf("has no %s, which spread_constraints ask for", c.by.By())
}

// GroupsOf returns the groups of a cluster: several if it spans zones.
func GroupsOf(cluster *api.Cluster, c *api.GroupConstraint) []string {
	if c.SpreadByLabel == "" {
		return placeValues(&cluster.Spec, c.SpreadByField)
	}
	if value, ok := cluster.Metadata.Labels[c.SpreadByLabel]; ok {
		return []string{value}
	}
	return nil
}
