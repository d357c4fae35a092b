package ocm

import (
	"fmt"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Change is a case of kind Enqueue: the existing objects, and the one that is written next. Expect.Enqueued lists the
// placements whose decisions change as a result.
type Change struct {
	Before []api.Object
	After  api.Object
}

// outsider and insider are two clusters of the set that a change is about. A case may have its own clusters instead of
// the insider.
const outsider, insider = "cluster0", "cluster1"

// Change translates a case of kind Enqueue. The case says which placements must be decided again. To make this visible,
// their decisions must change: of the two clusters of the set, a placement that may use it chooses the first, and after
// a change of its score the second.
func (c *Case) Change() (*Change, error) {
	if c.Expect.Enqueued == nil || len(c.ClusterSets) != 1 {
		return nil, fmt.Errorf("%s: it has no expectation, or not one cluster set", c.ID)
	}
	out := &Change{}
	set := c.sets()[0]
	members := []cluster{{Name: outsider, Labels: map[string]string{setLabel: set.Metadata.Name}}}
	members = append(members, c.Clusters...)
	if len(c.Clusters) == 0 {
		members = append(members, cluster{Name: insider, Labels: members[0].Labels})
	}
	for i := range members {
		out.Before = append(out.Before, members[i].object())
	}
	switch c.Event.Kind {
	case "binding":
		if c.Event.Name != set.Metadata.Name {
			return nil, fmt.Errorf("%s: the event is about set %q, and there is %q", c.ID, c.Event.Name, set.Metadata.Name)
		}
		unbound := *set
		unbound.Spec.Namespaces = slices.DeleteFunc(slices.Clone(set.Spec.Namespaces), func(ns string) bool { return ns == c.Event.Namespace })
		out.Before, out.After = append(out.Before, &unbound), set
	case "score":
		before := c.scoreOf(outsider, -1)
		out.Before = append(out.Before, set, before, c.scoreOf(c.Event.Cluster, api.MinScore))
		// More than the outsider's score and the weight of steady.
		out.After = c.scoreOf(c.Event.Cluster, api.MaxScore)
	default:
		return nil, fmt.Errorf("%s: event %q is not known", c.ID, c.Event.Kind)
	}
	for i := range c.Placements {
		p := c.Placements[i].object()
		p.Spec.ClusterSets = c.setsOf(&c.Placements[i])
		one := int64(1)
		p.Spec.NumberOfClusters = &one
		withoutBalance(p)
		out.Before = append(out.Before, p)
	}
	for _, o := range append(slices.Clone(out.Before), out.After) {
		o.SetDefaults()
	}
	return out, nil
}

// CompareDecided returns what is wrong with the list of placements (namespace/name) that were decided again.
func (c *Case) CompareDecided(decided []string) []string {
	if !slices.Equal(sorted(decided), sorted(*c.Expect.Enqueued)) {
		return []string{fmt.Sprintf("decided again: %q, want %q", sorted(decided), *c.Expect.Enqueued)}
	}
	return nil
}

// withoutBalance keeps only the prioritizers that a case names, or steady if it names none, so that only the change
// matters and not the decisions of others.
func withoutBalance(p *api.Placement) {
	if p.Spec.PrioritizerPolicy == nil {
		p.Spec.PrioritizerPolicy = &api.PrioritizerPolicy{}
	}
	policy := p.Spec.PrioritizerPolicy
	policy.Mode = api.ModeExact
	if len(policy.Configurations) == 0 {
		weight := int64(1)
		policy.Configurations = []api.PrioritizerConfig{{Type: api.PrioritizerBuiltin, Name: api.PrioritizerSteady, Weight: &weight}}
	}
}

// scoreOf gives every score that the placements use in the event's resource the same value.
func (c *Case) scoreOf(cluster string, value int64) *api.PlacementScore {
	o := &api.PlacementScore{Metadata: api.Metadata{Cluster: cluster, Name: c.Event.Name}}
	o.Spec.Scores = map[string]int64{}
	for _, p := range c.Placements {
		if p.PrioritizerPolicy == nil {
			continue
		}
		for _, config := range p.PrioritizerPolicy.Configurations {
			o.Spec.Scores[config.Score] = value
		}
	}
	return o
}
