package filter

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// clusterNames admits the clusters that a placement names, except those that it excludes by name.
// It works like the affinity of a policy.
type clusterNames struct{}

func (clusterNames) Name() string { return "cluster_names" }

func (clusterNames) Compile(s *Spec, made []Check) ([]Check, error) {
	if names := s.Placement.ClusterNames; len(names) > 0 {
		made = append(made, &isNamed{byName: byName{clusters: names}})
	}
	if names := s.Placement.ExcludeClusters; len(names) > 0 {
		made = append(made, &isNamed{byName: byName{excluded: names}})
	}
	return made, nil
}

// isNamed requires that a cluster has one of some names, or none of some.
type isNamed struct {
	clusterNames
	byName
}

func (c *isNamed) Key(k key.Writer) { c.key(k) }

func (c *isNamed) Reads() columns.Aspects { return 0 } // names never change

func (c *isNamed) On() string {
	if len(c.excluded) > 0 {
		return "exclude_clusters"
	}
	return "cluster_names"
}

func (c *isNamed) Rejection(n int) string {
	if len(c.excluded) > 0 {
		return Plural(n, "is", "are") + " excluded by name"
	}
	return Plural(n, "is", "are") + " not among cluster_names"
}

func (c *isNamed) Apply(l *Evaluation, keep columns.Bitmap) { c.selectInto(l.Fleet, keep, l.scratch) }

func (c *isNamed) Admits(l *Evaluation, row int, _ bool) bool { return c.Reason(l, row) == "" }

func (c *isNamed) Reason(l *Evaluation, row int) string {
	return c.mismatch(l.Fleet.Cluster(row).Metadata.Name)
}
