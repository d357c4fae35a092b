package engine

import (
	"fmt"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Spreads reports that the query divides its clusters over domains, so that any
// candidate may matter to any seat.
func (q *Query) Spreads() bool { return len(q.spread) > 0 }

// seatSpread gives out the seats under spread constraints. A decision that
// answers its spec keeps its clusters as long as choosing anew would neither
// fill more seats nor raise the sum of what the placement's own inputs say by
// more than min_improvement: a new region moves nothing by itself.
func (p *Pass) seatSpread(v *View, current []contender, wanted int, present Present, hold bool) seating {
	list := append(slices.Clone(current), p.outsiders(v, current, v.Mask.Count())...)
	p.sort(list)
	rules := p.spreadRules(list)
	var score []float64
	weight := p.by.traits.Evenness
	if weight != 0 {
		score = make([]float64, len(list))
		for i := range list {
			score[i] = list[i].merit.score
		}
	}
	var held []int
	for i := range list {
		if list[i].current && len(held) < wanted {
			held = append(held, i)
		}
	}
	pick := func(held []int) []contender {
		picks, _ := pickSpread(wanted, held, score, weight, rules)
		seats := make([]contender, len(picks))
		for i, at := range picks {
			seats[i] = list[at]
		}
		return seats
	}
	if hold {
		return seating{seats: pick(held)}
	}
	free := pick(nil)
	if len(held) == 0 || !present.Answered || present.Fresh {
		return seating{seats: free}
	}
	kept := pick(held)
	if len(free) > len(kept) || len(free) == len(kept) && p.sumOwn(free) > p.sumOwn(kept) {
		return seating{seats: free}
	}
	return seating{seats: kept}
}

// sumOwn adds up the own scores of contenders, in the order of their rows, so
// that the same clusters always have the same sum.
func (p *Pass) sumOwn(list []contender) float64 {
	rows := make([]contender, len(list))
	copy(rows, list)
	slices.SortFunc(rows, func(a, b contender) int { return a.row - b.row })
	sum := 0.0
	for _, c := range rows {
		sum += p.own(c.row, c.current).score
	}
	return sum
}

// spreadRules numbers the domains of the candidates for every constraint.
func (p *Pass) spreadRules(list []contender) []spreadRule {
	rules := make([]spreadRule, len(p.query.spread))
	for i := range p.query.spread {
		c := &p.query.spread[i]
		rule := spreadRule{maxSkew: 1, hard: c.WhenUnsatisfiable == api.DoNotSchedule, domains: make([][]int32, len(list))}
		if c.MaxSkew != nil {
			rule.maxSkew = int(*c.MaxSkew)
		}
		numbers := map[string]int32{}
		for k := range list {
			for _, domain := range domainsOf(p.fleet.Cluster(list[k].row), c) {
				number, ok := numbers[domain]
				if !ok {
					number = int32(len(numbers))
					numbers[domain] = number
				}
				if !slices.Contains(rule.domains[k], number) {
					rule.domains[k] = append(rule.domains[k], number)
				}
			}
		}
		rule.count = len(numbers)
		rules[i] = rule
	}
	return rules
}

// domainsOf are the domains of a constraint that a cluster belongs to; none
// where it does not have the label, claim or field.
func domainsOf(cluster *api.Cluster, c *api.SpreadConstraint) []string {
	domain, ok := "", false
	switch c.Type {
	case api.SpreadClaim:
		domain, ok = cluster.Spec.Claims[c.TopologyKey]
	case api.SpreadField:
		switch c.TopologyKey {
		case api.SpreadZone:
			return cluster.Spec.Zones
		case api.SpreadProvider:
			domain = cluster.Spec.CloudProvider
		default:
			domain = cluster.Spec.Region
		}
		ok = domain != ""
	default:
		domain, ok = cluster.Metadata.Labels[c.TopologyKey]
	}
	if !ok {
		return nil
	}
	return []string{domain}
}

// spreadReason says which hard spread constraint keeps a cluster that fits from
// being chosen in addition to the chosen ones; "" where none does.
func (e *Explained) spreadReason(row int) string {
	p := e.pass
	for i := range p.query.spread {
		c := &p.query.spread[i]
		if c.WhenUnsatisfiable != api.DoNotSchedule {
			continue
		}
		own := domainsOf(p.fleet.Cluster(row), c)
		if len(own) == 0 {
			return fmt.Sprintf("has no %s, which spread_constraints divide the clusters by", c.TopologyKey)
		}
		counts := e.domains(c)
		least := counts[own[0]]
		for _, n := range counts {
			least = min(least, n)
		}
		skew := int64(1)
		if c.MaxSkew != nil {
			skew = *c.MaxSkew
		}
		for _, domain := range own {
			if n := counts[domain]; int64(n+1-least) > skew {
				return fmt.Sprintf("%s %s has %d of the chosen clusters, the emptiest %d: one more would exceed max_skew %d", c.TopologyKey, domain, n, least, skew)
			}
		}
	}
	return ""
}

// domains counts the chosen clusters in every domain of a constraint that has a
// cluster which fits.
func (e *Explained) domains(c *api.SpreadConstraint) map[string]int {
	if e.counted == nil {
		e.counted = map[*api.SpreadConstraint]map[string]int{}
	}
	if counts, ok := e.counted[c]; ok {
		return counts
	}
	counts := map[string]int{}
	e.Admitted.each(func(row int) {
		for _, domain := range domainsOf(e.pass.fleet.Cluster(row), c) {
			counts[domain] += 0
		}
	})
	for _, choice := range e.Choices {
		for _, domain := range domainsOf(e.pass.fleet.Cluster(choice.Row), c) {
			counts[domain]++
		}
	}
	e.counted[c] = counts
	return counts
}
