package division

import "slices"

// attempt is one way to choose clusters under constraints on groups. Where there
// is only one such constraint the first attempts find what there is to find;
// for several at once no fast way is known that always does.
type attempt struct {
	tier  int32 // the last one to choose from
	keep  bool  // what holds replicas is chosen in any case
	pick  preference
	order []int // of the constraints
}

// preference says which groups an attempt picks.
type preference uint8

const (
	bestGroups     preference = iota // those with the best clusters
	roomiestGroups                   // the fewest that have room enough
	mostGroups                       // as many as are allowed
)

// maxOrders bounds how many orders of the constraints are tried, and maxOrdered the
// places that are looked at for it: what another order may find, the search after
// all attempts does, too.
const (
	maxOrders  = 24
	maxOrdered = 10_000
)

// chooseGroups chooses clusters under constraints on groups: from the best groups
// if it can be.
func (d *Divider) chooseGroups(r *Request, keep bool, tier int32) error {
	orders := permutations(len(d.limits.tallies), min(maxOrders, max(1, maxOrdered/len(d.places))))
	for _, pick := range []preference{bestGroups, roomiestGroups, mostGroups} {
		for _, order := range orders {
			if d.try(r, attempt{tier, keep, pick, order}) {
				return nil
			}
		}
		if d.hopeless(r) {
			break
		}
	}
	if d.search(r, keep, tier) {
		return nil
	}
	if d.roomiest > 0 {
		return &NoRoomError{Room: d.roomiest, Wanted: r.Replicas, by: d.limits.narrowest()}
	}
	return &spreadError{}
}

// permutations are the first orders of n things.
func permutations(n, most int) [][]int {
	var all [][]int
	var extend func(order []int)
	extend = func(order []int) {
		if len(all) == most {
			return
		}
		if len(order) == n {
			all = append(all, slices.Clone(order))
			return
		}
		for i := range n {
			if !slices.Contains(order, i) {
				extend(append(order, i))
			}
		}
	}
	extend(nil)
	return all
}

// try makes an attempt.
func (d *Divider) try(r *Request, a attempt) bool {
	d.restart(a.keep, a.tier)
	for _, c := range a.order {
		if !d.restrict(r, &d.limits.tallies[c], a) {
			return false
		}
	}
	return d.complete(r, a)
}

// complete chooses among the places that are left: one in each group, and then
// the first.
func (d *Divider) complete(r *Request, a attempt) bool {
	d.cover(a)
	if int64(len(d.chosen)) > d.limits.most {
		return false
	}
	for _, e := range d.first(d.limits.most-int64(len(d.chosen)), byPreference, everywhere) {
		d.pick(e.place)
	}
	if int64(len(d.chosen)) < d.limits.least {
		return false
	}
	for i := range d.limits.tallies {
		if !d.limits.tallies[i].holds() {
			return false
		}
	}
	return !d.lacksRoom(r) || d.replace(r, a.keep)
}

// restrict chooses groups of one constraint, and leaves out the places that are
// in any other.
func (d *Divider) restrict(r *Request, t *tally, a attempt) bool {
	c := t.constraint
	groups := d.rate(r, t, a)
	least, limit, target := max(c.Min, 1)-t.groups, c.Max, d.limits.least
	if limit != Unlimited {
		limit -= t.groups
	}
	if limit < 0 {
		return false
	}
	d.picked = d.picked[:0]
	others := groups[:0]
	for _, g := range groups {
		if g.must {
			target -= g.value
			d.picked = append(d.picked, g.id)
		} else {
			others = append(others, g)
		}
	}
	target = max(target, 0)
	switch {
	case a.pick == roomiestGroups:
		if !d.pickRoomiest(r, t, others, least, limit) {
			return false
		}
	case a.pick == mostGroups:
		d.pickMost(t, others, limit)
	case least > 0 || target > 0:
		if !d.path.choose(others, c.Groups.Names, least, limit, target) {
			return false
		}
	default:
		others = nil
	}
	for i := range others {
		if others[i].picked {
			d.picked = append(d.picked, others[i].id)
		}
	}
	d.allow(c.Groups)
	return true
}

// allow leaves out the places that are in any group that is not picked.
func (d *Divider) allow(g *Groups) {
	allowed := newBitset(len(g.Names))
	for _, id := range d.picked {
		allowed.add(id)
	}
	var one [1]int32
	for i := range d.places {
		p := &d.places[i]
		if p.state != undecided {
			continue
		}
		for _, id := range g.of(p.row, &one) {
			if !allowed.has(id) {
				p.state = out
			}
		}
	}
}

// weightUnit is what a replica, or a cluster with room for all of them, counts in
// the weight of a group, and presentScore what a cluster of the present binding
// counts.
const (
	weightUnit   = 1000
	presentScore = 100
)

// rate makes groups of the places that are not out.
func (d *Divider) rate(r *Request, t *tally, a attempt) []group {
	names := len(t.constraint.Groups.Names)
	d.groups = slices.Grow(d.groups[:0], names)[:names]
	d.presents = slices.Grow(d.presents[:0], names)[:names]
	for i := range d.groups {
		d.groups[i] = group{id: int32(i), must: t.count[i] > 0}
		d.presents[i] = 0
	}
	var one [1]int32
	for i := range d.places {
		p := &d.places[i]
		if p.state == out {
			continue
		}
		for _, id := range t.constraint.Groups.of(p.row, &one) {
			g := &d.groups[id]
			g.value++
			g.room += p.most
			if p.present {
				d.presents[id]++
			}
		}
	}
	n := 0
	for i := range d.groups {
		g := d.groups[i]
		if g.value == 0 {
			continue
		}
		if !g.must && a.pick == bestGroups {
			g.weight = d.weight(r, t.constraint, &g)
		}
		d.groups[n] = g
		n++
	}
	return d.groups[:n]
}

// weight rates a group. Where every cluster takes all replicas it is how many
// clusters it has; where they share them, how much of its part of the replicas it
// has room for. What its clusters score breaks ties.
func (d *Divider) weight(r *Request, c *Constraint, g *group) int64 {
	present := d.presents[g.id]
	if !r.divided() {
		return g.value*weightUnit + present*presentScore/g.value
	}
	groups := max(c.Min, 1)
	need := (r.Replicas + groups - 1) / groups
	switch {
	case g.room < need:
		return g.room*weightUnit + present*presentScore/g.value
	case present == 0:
		return need * weightUnit
	}
	// The score is that of as many of its best clusters as its part takes.
	clusters := max(groups, d.limits.least)
	var room, score int64
	entries := d.entriesOf(filter{tier: -1, groups: c.Groups, group: g.id})
	slices.SortFunc(entries, compareEntries)
	for i, e := range entries {
		p := &d.places[e.place]
		room += p.most
		if p.present {
			score += presentScore
		}
		if n := int64(i + 1); n >= clusters && room >= need || n == g.value {
			return need*weightUnit + score/n
		}
	}
	return need * weightUnit
}

// entriesOf are the places that pass a filter, in no order.
func (d *Divider) entriesOf(f filter) []entry {
	d.entries = d.entries[:0]
	for i := range d.places {
		if f.pass(&d.places[i]) {
			d.entries = append(d.entries, d.entry(byPreference, i))
		}
	}
	return d.entries
}

// cover chooses one place in each of the groups that were picked.
func (d *Divider) cover(a attempt) {
	if a.pick == mostGroups {
		// Not in all of them: in as many as there must be.
		order := d.entriesOf(everywhere)
		slices.SortFunc(order, compareEntries)
		d.coverMissing(order, func(e entry) {
			d.pick(e.place)
		})
		return
	}
	for _, c := range a.order {
		t := &d.limits.tallies[c]
		d.firsts = d.firsts[:0]
		for range t.count {
			d.firsts = append(d.firsts, entry{place: -1})
		}
		var one [1]int32
		for i := range d.places {
			p := &d.places[i]
			if p.state != undecided {
				continue
			}
			hi, lo := byPreference.key(p, d.weighted)
			for _, id := range t.constraint.Groups.of(p.row, &one) {
				if f := &d.firsts[id]; f.place < 0 || hi < f.hi || hi == f.hi && lo < f.lo {
					*f = entry{hi: hi, lo: lo, place: int32(i)}
				}
			}
		}
		for id := range d.firsts {
			if i := d.firsts[id].place; i >= 0 && t.count[id] == 0 && d.places[i].state != chosen {
				d.pick(i)
			}
		}
	}
}

// coverMissing takes places until no constraint lacks a group, each time the one
// that opens the most of the missing ones.
func (d *Divider) coverMissing(order []entry, take func(e entry)) {
	for {
		first, most := -1, int64(0)
		for k, e := range order {
			p := &d.places[e.place]
			opens := int64(0)
			for i := range d.limits.tallies {
				t := &d.limits.tallies[i]
				opens += min(t.opens(p.row), max(t.constraint.Min-t.groups, 0))
			}
			if opens > most {
				first, most = k, opens
			}
		}
		if first < 0 {
			return
		}
		take(order[first])
	}
}
