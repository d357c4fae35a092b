package placement

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// divide divides the chosen clusters into the placement's decision groups: each cluster goes to the
// first named group that its labels match, the others to unnamed groups after those. A group above
// the maximum size is split into groups of the same name. The order of the ranking is kept.
//
// Example: with ranked clusters a, b, c, d, a group "canary" that matches c, and a maximum size of
// 2, the groups are canary [c], [a b] and [d].
func divide(f *columns.Fleet, strategy *api.DecisionStrategy, names []string) []api.ChosenGroup {
	if strategy == nil {
		return nil
	}
	size := strategy.ClustersPerDecisionGroup.Of(len(names))
	members := make([][]string, len(strategy.DecisionGroups)+1)
	for _, name := range names {
		group := len(strategy.DecisionGroups)
		if row, ok := f.Row(name); ok {
			for i := range strategy.DecisionGroups {
				if strategy.DecisionGroups[i].LabelSelector.Matches(f.Cluster(row).Metadata.Labels) {
					group = i
					break
				}
			}
		}
		members[group] = append(members[group], name)
	}
	out := []api.ChosenGroup{}
	add := func(name string, clusters []string) {
		out = append(out, api.ChosenGroup{Index: int64(len(out)), Name: name, Clusters: clusters, ClusterCount: int64(len(clusters))})
	}
	for i, clusters := range members {
		name := ""
		if i < len(strategy.DecisionGroups) {
			name = strategy.DecisionGroups[i].Name
		}
		for len(clusters) > 0 {
			n := min(size, len(clusters))
			add(name, clusters[:n:n])
			clusters = clusters[n:]
		}
	}
	if len(out) == 0 {
		add("", []string{})
	}
	return out
}

// withGroups returns the decisions with each cluster's group.
func withGroups(decisions []api.Decision, groups []api.ChosenGroup) []api.Decision {
	if groups == nil {
		return decisions
	}
	group := map[string]*api.ChosenGroup{}
	for i := range groups {
		for _, name := range groups[i].Clusters {
			group[name] = &groups[i]
		}
	}
	out := make([]api.Decision, len(decisions))
	for i, d := range decisions {
		d.Group, d.GroupIndex = "", nil
		if g := group[d.Cluster]; g != nil {
			index := g.Index
			d.Group, d.GroupIndex = g.Name, &index
		}
		out[i] = d
	}
	return out
}
