package binding

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/division"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
)

// Demand says which clusters would take what the last workload that was bound lacks; nil if it is
// complete. They are those of the group that was tried first.
func (b *Binder) Demand() *api.Demand {
	if b.out.Complete || len(b.out.tried) == 0 {
		return nil
	}
	first := b.out.tried[0]
	group := &b.p.Groups[first.group]
	b.admit(first.group, false)
	return b.p.strategy.demand(b, group, group.Query.Checks.Profile(b.fleet), first.err)
}

// demanding finds out which imaginary clusters would take what a workload lacks: it adds them to
// the candidates of the division that failed.
type demanding struct {
	b          *Binder
	profile    *filter.Profile
	request    division.Request
	candidates []division.Candidate
	paths      []string // what groups clusters, by constraint with groups
	constraint []int    // these constraints
	weight     int64    // of the new clusters
	min, max   int64    // limits of each
}

func (selection) demand(b *Binder, group *AffinityGroup, profile *filter.Profile, err error) *api.Demand {
	b.gather(group)
	d := demanding{b: b, profile: profile, request: b.request(), candidates: slices.Clone(b.candidates)}
	d.judge(profile.Demand(1, nil))
	for i := range b.p.constraints {
		if d.request.Constraints[i].Groups != nil {
			d.constraint = append(d.constraint, i)
			d.paths = append(d.paths, filter.GroupPath(&b.p.constraints[i]))
		}
	}
	var best *supply
	for _, s := range d.supplies() {
		if s.clusters = d.fewest(s); s.clusters == 0 || best != nil && s.clusters > best.clusters {
			continue
		}
		s.replicas = d.leastRoom(s, lackOf(err))
		if best == nil || s.clusters < best.clusters || s.replicas < best.replicas {
			best = &s
		}
	}
	if best == nil {
		none := profile.Demand(1, nil)
		if len(none.Obstacles) == 0 {
			none.Obstacles = []string{"no number of clusters was found that would do: " + err.Error()}
		}
		return none
	}
	demand := profile.Demand(int64(best.clusters), d.spread(best))
	demand.Replicas, demand.Resources = best.replicas, d.b.p.amounts(best.replicas)
	return demand
}

// judge determines the weight and the limits that a new cluster would have.
func (d *demanding) judge(like *api.Demand) {
	cluster := &api.Cluster{Metadata: api.Metadata{Labels: like.Labels}, Spec: api.ClusterSpec{CloudProvider: like.CloudProvider, Region: like.Region}}
	if like.Zone != "" {
		cluster.Spec.Zones = []string{like.Zone}
	}
	if len(like.Names) > 0 {
		cluster.Metadata.Name = like.Names[0]
	}
	d.weight, d.max = 1, division.Unlimited
	if len(d.b.p.weights) > 0 {
		d.weight = 0
	}
	for i := range d.b.p.weights {
		if w := &d.b.p.weights[i]; w.affinity.Matches(cluster) {
			d.weight = max(d.weight, w.weight)
		}
	}
	for i := range d.b.p.limits {
		if l := &d.b.p.limits[i]; l.affinity.Matches(cluster) {
			d.min, d.max = max(d.min, l.min), min(d.max, l.max)
		}
	}
}

// supply is a number of new clusters, with the room of each, and in which groups they are.
type supply struct {
	clusters int
	replicas int64
	// apart says that each is in a group of its own. Otherwise all are in one: by constraint, the
	// group, or "" for a new one.
	apart  bool
	groups []string
}

// mostGroupsTried limits for how many groups of a constraint it is tried whether new clusters in
// them would do.
const mostGroupsTried = 4

// supplies returns the ways to group new clusters, in order of preference: none if nothing is
// grouped, otherwise each in its own group, all in a new one, and all in one that exists.
func (d *demanding) supplies() []supply {
	if len(d.constraint) == 0 {
		return []supply{{}}
	}
	list := []supply{{apart: true}, {groups: make([]string, len(d.constraint))}}
	for n := range mostGroupsTried {
		s := supply{groups: make([]string, len(d.constraint))}
		found := false
		for i := range d.constraint {
			if names := d.existing(i); len(names) > 0 {
				s.groups[i], found = names[min(n, len(names)-1)], found || n < len(names)
			}
		}
		if found {
			list = append(list, s)
		}
	}
	return list
}

// existing returns the groups of a constraint that have candidates and may have new clusters: those
// with running replicas first, then by name.
func (d *demanding) existing(i int) []string {
	groups := d.request.Constraints[d.constraint[i]].Groups
	runs, has := map[string]bool{}, map[string]bool{}
	for _, c := range d.candidates {
		if at := groups.Of[c.Row]; at >= 0 {
			has[groups.Names[at]] = true
			runs[groups.Names[at]] = runs[groups.Names[at]] || c.Assigned > 0
		}
	}
	names := make([]string, 0, len(has))
	for name := range has {
		if d.admits(i, name) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(-compareBool(runs[a], runs[b]), cmp.Compare(a, b))
	})
	return names
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// admits reports whether a new cluster may be in a group.
func (d *demanding) admits(i int, name string) bool {
	allowed, limited := d.profile.Allowed(d.paths[i])
	return (!limited || slices.Contains(allowed, name)) && !slices.Contains(d.profile.Excluded(d.paths[i]), name)
}

// groupOf returns the group of a new cluster under a constraint: "" for a new one. ok is false if
// there is none that it may be in.
func (d *demanding) groupOf(s supply, i, cluster int) (name string, ok bool) {
	allowed, limited := d.profile.Allowed(d.paths[i])
	switch {
	case limited && s.apart:
		if cluster >= len(allowed) {
			return "", false
		}
		return allowed[cluster], true
	case s.apart:
		return "", true
	case s.groups[i] != "":
		return s.groups[i], true
	case limited && len(allowed) > 0:
		return allowed[0], true
	}
	return "", !limited
}

// fits reports whether the workload is complete with new clusters.
func (d *demanding) fits(s supply) bool {
	slots := len(d.b.fleet.Rows())
	candidates := slices.Clone(d.candidates)
	free := s.replicas
	if !d.b.p.replicated {
		free = division.Unknown
	}
	for n := range s.clusters {
		at := int32(slots + n)
		candidates = append(candidates, division.Candidate{Row: at, Rank: at, Free: free, Weight: d.weight, Min: d.min, Max: d.max})
	}
	request := d.request
	request.Constraints = slices.Clone(d.request.Constraints)
	for i, at := range d.constraint {
		was := request.Constraints[at].Groups
		grown := &division.Groups{Names: slices.Clone(was.Names), Of: append(slices.Clone(was.Of), slices.Repeat([]int32{-1}, max(slots-len(was.Of), 0))...), Several: was.Several}
		for n := range s.clusters {
			name, ok := d.groupOf(s, i, n)
			if !ok {
				return false
			}
			group := slices.Index(was.Names, name)
			if name == "" || group < 0 {
				fresh := cmp.Or(name, "\x00") // no value has it
				if group = slices.Index(grown.Names, fresh); group < 0 || s.apart {
					group = len(grown.Names)
					grown.Names = append(grown.Names, fresh)
				}
			}
			grown.Of = append(grown.Of, int32(group))
		}
		request.Constraints[at].Groups = grown
	}
	_, err := d.b.divider.Divide(&request, candidates)
	return err == nil
}

// fewest returns the smallest number of clusters that would do, if each had room for everything; 0
// if none was found.
func (d *demanding) fewest(s supply) int {
	s.replicas = d.b.p.replicas
	most := int64(1)
	for i := range d.request.Constraints {
		most = max(most, d.request.Constraints[i].Min)
	}
	if each := d.max; each > 0 && each != division.Unlimited {
		most = max(most, (d.b.p.replicas-1)/each+1)
	}
	most = min(most, api.MaxDemanded)
	enough := func(n int) bool { s.clusters = n; return d.fits(s) }
	if enough(1) {
		return 1
	}
	n := 2 + sort.Search(int(most)-1, func(n int) bool { return enough(n + 2) })
	if int64(n) > most || !enough(n) {
		return 0
	}
	return n
}

// leastRoom returns for how many replicas each cluster must have room. lack is by how many the room
// of all clusters together is too small, 0 if that is not the reason.
func (d *demanding) leastRoom(s supply, lack int64) int64 {
	p := d.b.p
	if !p.replicated || !p.divided() {
		return p.replicas
	}
	enough := func(n int64) bool { s.replicas = n; return d.fits(s) }
	if s.clusters == 1 && lack > 0 && lack <= p.replicas && enough(lack) && (lack == 1 || !enough(lack-1)) {
		return lack
	}
	low, high := int64(0), p.replicas // high is enough
	for high-low > 1 {
		if middle := low + (high-low)/2; enough(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// spread says in which groups the new clusters must be.
func (d *demanding) spread(s *supply) []api.DemandSpread {
	var out []api.DemandSpread
	for i := range d.constraint {
		first := len(out)
		for n := range s.clusters {
			name, _ := d.groupOf(*s, i, n)
			if last := len(out) - 1; last >= first && !s.apart && out[last].Value == name {
				out[last].Clusters++
				continue
			}
			out = append(out, api.DemandSpread{By: d.paths[i], Value: name, Clusters: 1})
		}
	}
	return out
}

// amounts returns what a number of replicas need.
func (p *Propagation) amounts(replicas int64) api.Quantities {
	if replicas == 0 || len(p.needs) == 0 {
		return nil
	}
	out := make(api.Quantities, len(p.needs))
	for _, amount := range p.needs.Of(replicas) {
		if amount.Resource != columns.ResourcePods {
			out[amount.Resource] = api.FormatMilli(amount.Resource, amount.Milli)
		}
	}
	return out
}

// demand asks for one site that has room for what is missing, or for everything if all replicas
// must be in one region.
func (a *allocation) demand(b *Binder, _ *AffinityGroup, profile *filter.Profile, err error) *api.Demand {
	d := profile.Demand(1, nil)
	if d.Replicas = lackOf(err); d.Replicas == 0 || a.alone {
		d.Replicas = b.p.replicas
	}
	d.Resources = b.p.amounts(d.Replicas)
	if len(a.flavors) > 0 {
		d.Requirements = append(d.Requirements, fmt.Sprintf("room for %d machines of flavor %s", d.Replicas, strings.Join(a.flavors, " or ")))
	}
	for _, m := range a.further {
		d.Requirements = append(d.Requirements, fmt.Sprintf("room for %d machines of flavor %s", m.count*d.Replicas, m.flavor))
	}
	return d
}
