package placement

import (
	"fmt"
	"math"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// Spreads reports whether the query has spread constraints, so that any candidate may affect any
// seat.
func (q *Query) Spreads() bool { return len(q.spread) > 0 }

// seatSpread assigns the seats under spread constraints. A decision made for the current spec keeps
// its clusters as long as these break no hard rule, and a new choice would neither fill more seats nor
// raise the sum of own scores by more than min_improvement.
func (p *Pass) seatSpread(v *View, current []contender, wanted int, present Present, hold bool) seating {
	list := append(p.spreadOutsiders(v, current, wanted), current...)
	p.sort(list)
	rules := p.spreadRules(list)
	var score []float64
	weight := p.By.Traits.Evenness
	if weight != 0 {
		score = make([]float64, len(list))
		for i := range list {
			score[i] = list[i].merit.Score
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
	held = keepSpread(wanted, held, score, weight, rules)
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

// keepSpread returns the clusters of the current decision that can keep their seats under the hard
// rules. While these are broken, the last cluster of the fullest domain goes: clusters and their
// labels may have changed since the decision was made.
func keepSpread(wanted int, held []int, score []float64, weight float64, rules []spreadRule) []int {
	held = slices.DeleteFunc(held, func(c int) bool {
		return slices.ContainsFunc(rules, func(r spreadRule) bool { return r.hard && len(r.domains[c]) == 0 })
	})
	for len(held) > 0 {
		picks, _ := pickSpread(wanted, held, score, weight, rules)
		rule, domain := overfull(rules, picks)
		if rule == nil {
			break
		}
		at := len(held) - 1
		for at > 0 && !slices.Contains(rule.domains[held[at]], domain) {
			at--
		}
		held = slices.Delete(held, at, at+1)
	}
	return held
}

// overfull returns a hard rule that a choice breaks and its fullest domain, or nil.
func overfull(rules []spreadRule, picks []int) (*spreadRule, int32) {
	for i := range rules {
		r := &rules[i]
		if !r.hard || r.count == 0 {
			continue
		}
		counts := make([]int, r.count)
		for _, c := range picks {
			for _, d := range r.domains[c] {
				counts[d]++
			}
		}
		fullest := 0
		for d, n := range counts {
			if n > counts[fullest] {
				fullest = d
			}
		}
		if counts[fullest]-slices.Min(counts) > r.maxSkew {
			return r, int32(fullest)
		}
	}
	return nil, 0
}

// spreadOutsiders returns the admitted clusters outside the current decision that may get a seat,
// in any order. Among clusters with the same domains, only the best can: as many as there are
// seats, or fewer if a hard constraint limits the clusters per domain.
//
// Example: 48 seats, 24 regions and max_skew 1. When the last seat is assigned, the emptiest region
// has at most 1, so no region ever gets more than 2.
func (p *Pass) spreadOutsiders(v *View, current []contender, wanted int) []contender {
	if wanted == 0 {
		return nil
	}
	f, rows, most := p.Fleet, slices.Clone(v.Mask), wanted
	for i := range p.Query.spread {
		if c := &p.Query.spread[i]; c.WhenUnsatisfiable == api.DoNotSchedule {
			union := columns.NewBitmap(f.Slots())
			for _, set := range domainRows(f, c) {
				set.OrInto(union)
			}
			rows.And(union)
		}
	}
	cells := newSpreadCells(rows, f.Slots())
	for i := range p.Query.spread {
		c := &p.Query.spread[i]
		domains := cells.divide(domainRows(f, c))
		if c.WhenUnsatisfiable == api.DoNotSchedule && !severalDomains(c) && domains > 0 {
			most = min(most, (wanted-1)/domains+maxSkew(c))
		}
	}
	if most >= rows.Count()/len(cells.unseen) || len(cells.unseen) > math.MaxUint16 {
		return p.outsiders(v, current, v.Mask.Count()) // practically all of them
	}
	return p.bestOfCells(v, cells, most, p.among(current))
}

// fewOfCell is the initial capacity for the clusters of a cell.
const fewOfCell = 4

// bestOfCells returns at least the best most outside clusters of every cell.
func (p *Pass) bestOfCells(v *View, cells *spreadCells, most int, present among) []contender {
	best := make([]shortlist, len(cells.unseen))
	room := make([]contender, 2*min(most, fewOfCell)*len(best))
	for i := range best {
		n := 2 * min(most, fewOfCell)
		best[i] = shortlist{pass: p, n: most, list: room[i*n : i*n : (i+1)*n]}
	}
	beyond := p.MostOfOthers()
	// open counts the remaining rows of cells that are not full. weakest is the lowest merit in a
	// full cell; it is recomputed occasionally, and only grows.
	open, weakest, age := cells.rows.Count(), Merit{}, 0
	p.eachByOwn(v, func(row int, own Merit) bool {
		if !cells.rows.Has(row) {
			return true
		}
		cell := cells.of[row]
		b := &best[cell]
		was := b.full
		if !present.row(row) {
			b.add(contender{row: row, merit: p.total(row, false), tie: p.tie(row, v)})
		}
		cells.unseen[cell]--
		if !was {
			open--
			if b.full {
				open -= cells.unseen[cell]
			}
		}
		// What is left of resources is summed in another order, so no bound on it is exact to the
		// last bit.
		if age++; open > 0 || p.MeasuresLeft() {
			return true
		}
		if weakest == (Merit{}) || age > len(best) {
			age, weakest = 0, Merit{columns.Standing{Scored: true, Score: math.Inf(1)}}
			for i := range best {
				if b := &best[i]; b.full && b.worst.merit.Less(weakest) {
					weakest = b.worst.merit
				}
			}
		}
		// The following rows have at most this total.
		return !Merit{columns.Standing{Scored: own.Scored, Score: own.Score + beyond}}.Less(weakest)
	})
	list := make([]contender, 0, most*len(best))
	for i := range best {
		list = append(list, best[i].finish()...)
	}
	return list
}

// spreadCells divides rows into cells: rows with the same domains.
type spreadCells struct {
	rows   columns.Bitmap
	of     []uint16 // cell by row
	unseen []int    // by cell: rows not visited yet
}

func newSpreadCells(rows columns.Bitmap, slots int) *spreadCells {
	return &spreadCells{rows: rows, of: make([]uint16, slots), unseen: []int{rows.Count()}}
}

// divide divides the cells by the domains of one more constraint, of which each row may have
// several or none. It returns how many domains contain any of the rows.
func (s *spreadCells) divide(domains map[string]*columns.RowSet) (with int) {
	to := slices.Repeat([]int{0}, len(s.unseen)) // by cell: the new cell of rows in the domain
	for _, set := range domains {
		first := len(s.unseen)
		last, moved := uint16(0), 0 // most rows in sequence leave the same cell
		set.EachIn(s.rows, func(row int) {
			from := s.of[row]
			if to[from] < first {
				to[from] = len(s.unseen)
				s.unseen, to = append(s.unseen, 0), append(to, 0)
			}
			if from != last {
				s.move(int(last), to[last], moved)
				last, moved = from, 0
			}
			moved++
			s.of[row] = uint16(to[from])
		})
		s.move(int(last), to[last], moved)
		if first < len(s.unseen) {
			with++
		}
	}
	return with
}

// move counts rows that have moved between cells.
func (s *spreadCells) move(from, to, rows int) {
	s.unseen[from] -= rows
	s.unseen[to] += rows
}

// sumOwn sums the own scores of contenders in row order, so that the same clusters always have the
// same sum.
func (p *Pass) sumOwn(list []contender) float64 {
	rows := make([]contender, len(list))
	copy(rows, list)
	slices.SortFunc(rows, func(a, b contender) int { return a.row - b.row })
	sum := 0.0
	for _, c := range rows {
		sum += p.own(c.row, c.current).Score
	}
	return sum
}

// spreadRules numbers the domains of the candidates for every constraint.
func (p *Pass) spreadRules(list []contender) []spreadRule {
	rules := make([]spreadRule, len(p.Query.spread))
	var domains []string
	for i := range p.Query.spread {
		c := &p.Query.spread[i]
		rule := spreadRule{maxSkew: maxSkew(c), hard: c.WhenUnsatisfiable == api.DoNotSchedule, domains: make([][]int32, len(list))}
		// Clusters of one domain share the slice.
		numbers, all := map[string][]int32{}, make([]int32, 0, len(list))
		for k := range list {
			domains = domainsOf(domains[:0], p.Fleet.Cluster(list[k].row), c)
			for _, domain := range domains {
				number, ok := numbers[domain]
				if !ok {
					all = append(all, int32(len(all)))
					number = all[len(all)-1:]
					numbers[domain] = number
				}
				if len(domains) == 1 {
					rule.domains[k] = number
				} else if !slices.Contains(rule.domains[k], number[0]) {
					rule.domains[k] = append(rule.domains[k], number[0])
				}
			}
		}
		rule.count = len(numbers)
		rules[i] = rule
	}
	return rules
}

// maxSkew returns by how much the fullest domain may exceed the emptiest.
func maxSkew(c *api.SpreadConstraint) int {
	if c.MaxSkew == nil {
		return 1
	}
	return int(*c.MaxSkew)
}

// severalDomains reports whether a cluster may be in several domains of a constraint.
func severalDomains(c *api.SpreadConstraint) bool {
	return c.Type == api.SpreadField && c.TopologyKey == api.SpreadZone
}

// domainRows returns the rows in each domain of a constraint.
func domainRows(f *columns.Fleet, c *api.SpreadConstraint) map[string]*columns.RowSet {
	switch c.Type {
	case api.SpreadClaim:
		return f.Claims().Of(c.TopologyKey).Values
	case api.SpreadField:
		switch c.TopologyKey {
		case api.SpreadZone:
			return f.Places()[api.GroupByZone]
		case api.SpreadProvider:
			return f.Places()[api.GroupByProvider]
		default:
			return f.Places()[api.GroupByRegion]
		}
	default:
		return f.Labels().Of(c.TopologyKey).Values
	}
}

// domainsOf appends the domains of a constraint that a cluster belongs to. There are none if it
// does not have the label, claim or field.
func domainsOf(dst []string, cluster *api.Cluster, c *api.SpreadConstraint) []string {
	domain, ok := "", false
	switch c.Type {
	case api.SpreadClaim:
		domain, ok = cluster.Spec.Claims[c.TopologyKey]
	case api.SpreadField:
		switch c.TopologyKey {
		case api.SpreadZone:
			return append(dst, cluster.Spec.Zones...)
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
		return dst
	}
	return append(dst, domain)
}

// spreadReason says which hard spread constraint prevents a cluster that fits from being chosen as
// well, or returns "".
func (e *Explained) spreadReason(row int) string {
	p := e.pass
	for i := range p.Query.spread {
		c := &p.Query.spread[i]
		if c.WhenUnsatisfiable != api.DoNotSchedule {
			continue
		}
		own := domainsOf(nil, p.Fleet.Cluster(row), c)
		if len(own) == 0 {
			return fmt.Sprintf("has no %s, which spread_constraints divide the clusters by", c.TopologyKey)
		}
		counts := e.domains(c)
		least := counts[own[0]]
		for _, n := range counts {
			least = min(least, n)
		}
		skew := maxSkew(c)
		for _, domain := range own {
			if n := counts[domain]; n+1-least > skew {
				return fmt.Sprintf("%s %s has %d of the chosen clusters, the emptiest %d: one more would exceed max_skew %d", c.TopologyKey, domain, n, least, skew)
			}
		}
	}
	return ""
}

// domains counts the chosen clusters in every domain that contains a cluster that fits.
func (e *Explained) domains(c *api.SpreadConstraint) map[string]int {
	if e.counted == nil {
		e.counted = map[*api.SpreadConstraint]map[string]int{}
	}
	if counts, ok := e.counted[c]; ok {
		return counts
	}
	counts := map[string]int{}
	e.Admitted.Each(func(row int) {
		for _, domain := range domainsOf(nil, e.pass.Fleet.Cluster(row), c) {
			counts[domain] += 0
		}
	})
	for _, choice := range e.Choices {
		for _, domain := range domainsOf(nil, e.pass.Fleet.Cluster(choice.Row), c) {
			counts[domain]++
		}
	}
	e.counted[c] = counts
	return counts
}
