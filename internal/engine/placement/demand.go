package placement

import (
	"cmp"
	"slices"
	"sort"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// lacking returns how many clusters a decision with some clusters lacks. A placement that wants all
// that fit lacks one if there are none.
func (q *Query) lacking(chosen int) int64 {
	if q.Wanted == score.All {
		return int64(max(1-chosen, 0))
	}
	return int64(max(q.Wanted-chosen, 0))
}

// demand says which clusters would give a placement those that it lacks; nil if it lacks none. It
// is made of what the checks say that a cluster must have. Almost all queries get the same answer
// in every version of the fleet, so it is kept.
func demand(f *columns.Fleet, q *Query, v *View, others ledger.Others, present Present, chosen int) *api.Demand {
	missing := q.lacking(chosen)
	if missing == 0 || q.One != "" { // hosts are not made on demand
		return nil
	}
	if known := q.demanded.Load(); known != nil && known.Clusters == missing && !q.Spreads() {
		return known
	}
	profile := q.Checks.Profile(f)
	if q.Spreads() {
		return spreadDemand(f, q, v, others, present, profile, missing)
	}
	d := profile.Demand(missing, nil)
	if !profile.Varies() {
		q.demanded.Store(d)
	}
	return d
}

// spreadDemand is demand for a placement with spread constraints. It adds imaginary clusters, one
// after another, to the emptiest domains until the selection that decides fills all seats.
func spreadDemand(f *columns.Fleet, q *Query, v *View, others ledger.Others, present Present, profile *filter.Profile, missing int64) *api.Demand {
	rows := presentRows(f, present)
	pass := v.decision(f, q, others, rows)
	p := &pass
	current := p.present(rows, present, v)
	seats, wanted := q.Wanted, q.Wanted
	if q.Wanted == score.All {
		seats, wanted = f.Len()+1, 1
	}
	list := append(p.spreadOutsiders(v, current, seats), current...)
	p.sort(list)
	var held []int
	for i := range list {
		if list[i].current && len(held) < seats {
			held = append(held, i)
		}
	}
	rules := p.spreadRules(list)
	growing := make([]growingRule, 0, len(rules))
	for i := range rules {
		if rules[i].hard {
			growing = append(growing, p.growing(i, &rules[i], list, profile))
		}
	}
	barred := barredBy(rules, len(list))
	for i := range growing {
		growing[i].count(barred)
	}
	most := 0
	if missing <= api.MaxDemanded {
		most = int(missing) + maxMoreToSpread
	}
	for range most {
		for i := range rules {
			if !rules[i].hard {
				rules[i].domains = append(rules[i].domains, nil)
			}
		}
		for i := range growing {
			growing[i].add()
		}
	}
	if !present.settled() && p.keptAlways(len(current) > 0) == "" {
		held = nil // all seats are assigned anew
	}
	filled := func(added int) bool {
		grown := slices.Clone(rules)
		for i := range grown {
			grown[i].domains = grown[i].domains[:len(list)+added]
		}
		picks, _ := pickSpread(seats, held, nil, 0, grown)
		return len(picks) >= wanted
	}
	added := 1 + sort.Search(most, func(n int) bool { return filled(n + 1) })
	if added <= most && filled(added) {
		var spread []api.DemandSpread
		for i := range growing {
			spread = append(spread, growing[i].spread(len(list), added)...)
		}
		return profile.Demand(int64(added), spread)
	}
	d := profile.Demand(missing, nil)
	if len(d.Obstacles) == 0 {
		d.Obstacles = []string{"no number of clusters was found that would meet all spread_constraints together"}
	}
	return d
}

// maxMoreToSpread is by how many the clusters that a demand adds may exceed those that are missing:
// uneven domains may have to be filled up first.
const maxMoreToSpread = 64

// barredBy reports which candidates are in no domain of a hard rule.
func barredBy(rules []spreadRule, candidates int) []bool {
	barred := make([]bool, candidates)
	for _, r := range rules {
		for c := range barred {
			barred[c] = barred[c] || r.hard && len(r.domains[c]) == 0
		}
	}
	return barred
}

// growingRule is a hard spread constraint to whose domains imaginary clusters are added.
type growingRule struct {
	*spreadRule
	by      string   // as a demand has it
	names   []string // of the domains, by number; "" = a new one
	allowed []string // the domains that the checks admit, if limited
	limited bool
	refused []string // those that they reject
	sizes   []int    // candidates by domain
}

// growing returns the rule of the ith constraint, with the names of its domains.
func (p *Pass) growing(i int, rule *spreadRule, list []contender, profile *filter.Profile) growingRule {
	c := &p.Query.spread[i]
	g := growingRule{spreadRule: rule, by: demandPath(c), names: make([]string, rule.count), sizes: make([]int, rule.count)}
	g.allowed, g.limited = profile.Allowed(g.by)
	g.refused = profile.Excluded(g.by)
	var domains []string
	for k := range list {
		domains = domainsOf(domains[:0], p.Fleet.Cluster(list[k].row), c)
		domains = slices.Compact(domains)
		for n, number := range rule.domains[k] {
			if n < len(domains) {
				g.names[number] = domains[n]
			}
		}
	}
	return g
}

// demandPath returns what a constraint groups clusters by, as a demand has it.
func demandPath(c *api.SpreadConstraint) string {
	switch c.Type {
	case api.SpreadClaim:
		return api.DemandClaims + "." + c.TopologyKey
	case api.SpreadField:
		switch c.TopologyKey {
		case api.SpreadZone:
			return api.DemandZone
		case api.SpreadProvider:
			return api.DemandProvider
		default:
			return api.DemandRegion
		}
	default:
		return api.DemandLabels + "." + c.TopologyKey
	}
}

// count counts the candidates of each domain.
func (g *growingRule) count(barred []bool) {
	for c, domains := range g.domains {
		if barred[c] {
			continue
		}
		for _, d := range domains {
			g.sizes[d]++
		}
	}
}

// add adds a candidate to the emptiest domain that may have one, or to a new one if none may.
func (g *growingRule) add() {
	to := -1
	for d, name := range g.names {
		switch {
		case g.sizes[d] == 0, g.limited && !slices.Contains(g.allowed, name), slices.Contains(g.refused, name):
		case to < 0 || cmp.Or(cmp.Compare(g.sizes[d], g.sizes[to]), cmp.Compare(name, g.names[to])) < 0:
			to = d
		}
	}
	if to < 0 {
		name := ""
		if len(g.allowed) > 0 {
			name = g.allowed[0]
		}
		to = slices.Index(g.names, name)
		if to < 0 || name == "" {
			to = len(g.names)
			g.names, g.sizes = append(g.names, name), append(g.sizes, 0)
			g.spreadRule.count++
		}
	}
	g.sizes[to]++
	g.domains = append(g.domains, []int32{int32(to)})
}

// spread says where candidates are that follow some others.
func (g *growingRule) spread(after, n int) (out []api.DemandSpread) {
	last := int32(-1)
	for _, domains := range g.domains[after : after+n] {
		if domains[0] != last {
			out = append(out, api.DemandSpread{By: g.by, Value: g.names[domains[0]]})
			last = domains[0]
		}
		out[len(out)-1].Clusters++
	}
	return out
}
