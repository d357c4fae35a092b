package supply

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Open is a placement or workload with what it demands.
type Open struct {
	Key    api.Key
	Demand *api.Demand      // nil if it lacks nothing
	auto   *api.AutoCluster // nil if nothing is declared for it
	// uses reports whether the decision has a cluster.
	uses func(cluster string) bool
}

// match is one cluster that an object demands, with the cluster that was made for it, or that is
// declared and would do as well; nil if there is none yet.
type match struct {
	api.DemandedCluster
	made *api.Cluster
}

// matching assigns clusters to demands.
type matching struct {
	open     []Open
	clusters []*api.Cluster
	taken    func(name string) bool
	covers   map[*api.Cluster]bool           // it is assigned to a demand
	left     map[*api.Cluster]api.Quantities // what is not assigned yet of one that is to be shared
	named    map[string]bool                 // names that were given
}

// newMatching prepares a matching. clusters are those with a demand; taken reports whether a cluster
// of any name exists. The result depends on nothing else, and not on the order.
//
// A cluster covers a demand of the object that it was made for, unless the object uses it already:
// also if it is offline, or does not fit after all. Otherwise more and more would be made in its
// place. Only one that is declared and not real yet has to suffice. Clusters that are not real yet also cover demands of other objects in their
// namespace, as far as what is demanded of them suffices.
func newMatching(open []Open, clusters []*api.Cluster, taken func(name string) bool) *matching {
	m := &matching{
		open: slices.Clone(open), clusters: slices.Clone(clusters), taken: taken,
		covers: map[*api.Cluster]bool{}, left: map[*api.Cluster]api.Quantities{}, named: map[string]bool{},
	}
	m.clusters = slices.DeleteFunc(m.clusters, func(c *api.Cluster) bool { return !MadeFor(c) })
	slices.SortFunc(m.open, func(a, b Open) int { return a.Key.Compare(b.Key) })
	slices.SortFunc(m.clusters, func(a, b *api.Cluster) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	return m
}

func (m *matching) assign() map[api.Key][]match {
	found := make(map[api.Key][]match, len(m.open))
	for i := range m.open {
		o := &m.open[i]
		var list []match
		for _, c := range o.Demand.Each(o.Key) {
			list = append(list, match{DemandedCluster: c})
		}
		found[o.Key] = list
		own := slices.DeleteFunc(slices.Clone(m.clusters), func(c *api.Cluster) bool {
			return c.Spec.Demand.Of() != o.Key || o.uses(c.Metadata.Name)
		})
		for _, exactly := range []bool{true, false} {
			for _, c := range own {
				if !exactly && c.Metadata.Declared && c.Spec.Awaited(&c.Status) {
					continue // it is replaced by one that suffices
				}
				at := slices.IndexFunc(list, func(x match) bool {
					return x.made == nil && (!exactly || suffices(c, &x.ClusterDemand, c.Spec.Demand.Resources))
				})
				if at >= 0 && !m.covers[c] {
					list[at].cover(c)
					m.covers[c] = true
					m.left[c] = minus(c.Spec.Demand.Resources, list[at].Resources)
				}
			}
		}
	}
	for i := range m.open {
		for at := range found[m.open[i].Key] {
			m.share(&found[m.open[i].Key][at])
		}
	}
	for i := range m.open {
		m.name(m.open[i].Key, found[m.open[i].Key])
	}
	return found
}

// share covers a demand with a cluster that is declared for another object.
func (m *matching) share(x *match) {
	if x.made != nil {
		return
	}
	for _, c := range m.clusters {
		if !c.Spec.Awaited(&c.Status) || c.Spec.Demand.Of() == x.Of() || !c.VisibleTo(x.Namespace) {
			continue
		}
		left, known := m.left[c]
		if !known {
			left = c.Spec.Demand.Resources
		}
		if x.Cluster != "" && x.Cluster != c.Metadata.Name || !suffices(c, &x.ClusterDemand, left) {
			continue
		}
		x.cover(c)
		m.covers[c], m.left[c] = true, minus(left, x.Resources)
		return
	}
}

// cover records the cluster that was made.
func (x *match) cover(c *api.Cluster) {
	x.made, x.Cluster, x.State = c, c.Metadata.Name, stateOf(c)
}

// stateOf returns the state of a cluster that was made for a demand.
func stateOf(c *api.Cluster) api.DemandState {
	if c.Spec.Awaited(&c.Status) {
		return api.DemandPending
	}
	return api.DemandMade
}

// suffices reports whether a cluster has what is demanded, of which it has some resources left.
func suffices(c *api.Cluster, d *api.ClusterDemand, left api.Quantities) bool {
	within := func(wanted, has map[string]string) bool {
		for key, value := range wanted {
			if is, ok := has[key]; !ok || is != value {
				return false
			}
		}
		return true
	}
	s := &c.Spec
	for name, amount := range d.Resources {
		wanted, err := amount.Milli()
		has, errHas := left[name].Milli()
		if err != nil || errHas != nil || has < wanted {
			return false
		}
	}
	all := func(wanted, has []string) bool {
		return !slices.ContainsFunc(wanted, func(name string) bool { return !slices.Contains(has, name) })
	}
	return within(d.Labels, c.Metadata.Labels) && within(d.Claims, s.Claims) &&
		(d.CloudProvider == "" || d.CloudProvider == s.CloudProvider) && (d.Region == "" || d.Region == s.Region) &&
		(d.Zone == "" || slices.Contains(s.Zones, d.Zone)) && all(d.CustomResources, s.CustomResources) &&
		(d.KubernetesVersion == "" || d.KubernetesVersion == s.Demand.KubernetesVersion) &&
		all(d.Requirements, s.Demand.Requirements)
}

// minus returns the rest of some amounts.
func minus(from, amounts api.Quantities) api.Quantities {
	left := maps.Clone(from)
	for name, amount := range amounts {
		has, err := left[name].Milli()
		less, errLess := amount.Milli()
		if err == nil && errLess == nil {
			left[name] = api.FormatMilli(name, max(has-less, 0))
		}
	}
	return left
}

// name gives those that are not made yet their names: the first ones that no cluster has.
func (m *matching) name(of api.Key, list []match) {
	n := 0
	for i := range list {
		x := &list[i]
		for x.made == nil && x.Cluster == "" {
			n++
			if name := nameFor(of, n); !m.taken(name) && !m.named[name] {
				x.Cluster = name
				m.named[name] = true
			}
		}
	}
}

// maxStem is how much of an object's name the name of a cluster contains.
const maxStem = 40

// nameFor returns the name of the nth cluster that is made for an object: "web-1f3a9c2e-1". It differs
// for objects of other namespaces and kinds.
func nameFor(of api.Key, n int) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(string(of.Kind) + "/" + of.Path())) // never fails
	return fmt.Sprintf("%s-%08x-%d", strings.TrimRight(of.Name[:min(len(of.Name), maxStem)], "-"), h.Sum32(), n)
}

// Plan returns the clusters to declare, and the names of the declared ones to remove: those that
// cover no demand, and that never became real.
func Plan(open []Open, clusters []*api.Cluster, taken func(name string) bool) (declare []*api.Cluster, remove []string) {
	m := newMatching(open, clusters, taken)
	found := m.assign()
	made := map[api.Key]int64{}
	for _, c := range m.clusters {
		made[c.Spec.Demand.Of()]++
	}
	var planned []*api.Cluster // those that others can share
	for i := range m.open {
		o := &m.open[i]
		if o.auto == nil {
			continue
		}
		for _, x := range found[o.Key] {
			if x.made != nil || m.planned(planned, &x) || made[o.Key] >= o.auto.Max || m.taken(x.Cluster) {
				continue
			}
			c := declared(&x.DemandedCluster, o.auto)
			made[o.Key]++
			planned, m.left[c] = append(planned, c), minus(c.Spec.Demand.Resources, x.Resources)
		}
	}
	for _, c := range m.clusters {
		if c.Metadata.Declared && c.Spec.Awaited(&c.Status) && !m.covers[c] {
			remove = append(remove, c.Metadata.Name)
		}
	}
	return planned, remove
}

// planned reports whether a cluster that is about to be declared covers a demand.
func (m *matching) planned(planned []*api.Cluster, x *match) bool {
	for _, c := range planned {
		if c.Spec.Demand.Of() != x.Of() && c.VisibleTo(x.Namespace) && suffices(c, &x.ClusterDemand, m.left[c]) {
			m.left[c] = minus(m.left[c], x.Resources)
			return true
		}
	}
	return false
}

// declared returns a cluster without access for a demand. It belongs to the namespace of the object
// that demands it.
func declared(x *api.DemandedCluster, auto *api.AutoCluster) *api.Cluster {
	t := auto.Template
	if t == nil {
		t = &api.ClusterTemplate{}
	}
	demand := x.ClusterDemand
	c := &api.Cluster{Metadata: api.Metadata{Name: x.Cluster, Labels: over(t.Labels, x.Labels), Declared: true}}
	s := &c.Spec
	s.Namespace, s.Description = x.Namespace, t.Description
	if s.Description == "" {
		s.Description = fmt.Sprintf("Declared for %s %s", x.Kind, demand.Of().Path())
	}
	s.CloudProvider, s.Region, s.Zones = t.CloudProvider, t.Region, t.Zones
	if x.CloudProvider != "" {
		s.CloudProvider = x.CloudProvider
	}
	if x.Region != "" {
		s.Region = x.Region
	}
	if x.Zone != "" && !slices.Contains(s.Zones, x.Zone) {
		s.Zones = []string{x.Zone}
	}
	s.Claims = over(t.Claims, x.Claims)
	s.CustomResources = slices.Compact(slices.Sorted(slices.Values(slices.Concat(t.CustomResources, x.CustomResources))))
	s.InheritLabels, s.InheritMetrics = t.InheritLabels, t.InheritMetrics
	s.CloudConstraints = &api.CloudConstraints{LabelConstraints: auto.LabelConstraints}
	s.Demand = &demand
	c.SetDefaults()
	return c
}

// over returns the union of two maps; the second wins.
func over(base, more map[string]string) map[string]string {
	if len(base)+len(more) == 0 {
		return nil
	}
	out := make(map[string]string, len(base)+len(more))
	maps.Copy(out, base)
	maps.Copy(out, more)
	return out
}

// List returns what is demanded, and what was made for it: for each object the clusters that it
// lacks, and those that were made for it and that it uses or that cover what it lacks. They are
// sorted by name.
func List(open []Open, clusters []*api.Cluster, taken func(name string) bool) (items []api.DemandedCluster, obstructed []api.Obstructed) {
	m := newMatching(open, clusters, taken)
	found := m.assign()
	listed := map[string]bool{}
	for i := range m.open {
		o := &m.open[i]
		if o.Demand != nil && len(o.Demand.Obstacles) > 0 {
			obstructed = append(obstructed, api.Obstructed{Kind: o.Key.Kind, Namespace: o.Key.Namespace, Name: o.Key.Name, Obstacles: o.Demand.Obstacles})
		}
		for _, c := range m.clusters {
			if c.Spec.Demand.Of() == o.Key && (o.uses(c.Metadata.Name) || m.covers[c]) {
				listed[c.Metadata.Name] = true
				items = append(items, api.DemandedCluster{Cluster: c.Metadata.Name, State: stateOf(c), ClusterDemand: *c.Spec.Demand})
			}
		}
	}
	for i := range m.open {
		for _, x := range found[m.open[i].Key] {
			if !listed[x.Cluster] {
				listed[x.Cluster] = true
				items = append(items, x.DemandedCluster)
			}
		}
	}
	slices.SortFunc(items, func(a, b api.DemandedCluster) int { return strings.Compare(a.Cluster, b.Cluster) })
	return items, obstructed
}
