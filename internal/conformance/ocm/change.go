package ocm

import (
	"fmt"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Change is a case of kind Enqueue: what there is, and the object that is written
// next. Expect.Enqueued are the placements whose decision follows from that.
type Change struct {
	Before []api.Object
	After  api.Object
}

// outsider and insider are two clusters of the set that a change is about; a case
// may have clusters in the place of the insider.
const outsider, insider = "cluster0", "cluster1"

// Change translates a case of kind Enqueue. The case tells who has to be decided
// again; so that this shows, the objects are such that the decision then is
// another: two clusters of the set, of which a placement that may use it takes
// the first, or after a change of its score the second.
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
		// Above what the outsider has and the weight of staying together.
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

// CompareDecided returns what is wrong with the placements that were decided again, as
// namespace/name.
func (c *Case) CompareDecided(decided []string) []string {
	if !slices.Equal(sorted(decided), sorted(*c.Expect.Enqueued)) {
		return []string{fmt.Sprintf("decided again: %q, want %q", sorted(decided), *c.Expect.Enqueued)}
	}
	return nil
}

// withoutBalance leaves to a placement the prioritizers that a case names, and
// that of staying where there are none: what others have chosen is not to answer
// in the place of what has changed.
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

// scoreOf gives every score that the placements name in the event's resource the
// same value.
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
