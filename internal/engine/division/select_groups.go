package division

import "slices"

// attempt is one way to choose clusters under group constraints. With a single constraint, the
// first attempts are exhaustive; for several at once, no fast and complete method is known.
type attempt struct {
	tier  int32 // the last tier to choose from
	pick  preference
	order []int // of the constraints
}

// preference is which groups an attempt picks.
type preference uint8

const (
	bestGroups     preference = iota // with the best clusters
	roomiestGroups                   // as few as have enough room
	mostGroups                       // as many as are allowed
)

// maxOrders limits how many orders of the constraints are tried, maxOrdered the number of places
// for which more than one is tried. The search after all attempts finds what other orders might.
const (
	maxOrders  = 24
	maxOrdered = 10_000
)

// groupSelection selects groups for one constraint after another, and places in them.
type groupSelection struct {
	selection

	path     pathSearch
	groups   []group
	presents []int64
	picked   []int32
	firsts   []entry
}

// chooseGroups chooses clusters under group constraints, from the best groups if possible.
func (sel *choice) chooseGroups(r *Request, tier int32) error {
	orders := permutations(len(sel.limits.tallies), min(maxOrders, max(1, maxOrdered/len(sel.places))))
	for _, pick := range []preference{bestGroups, roomiestGroups, mostGroups} {
		for _, order := range orders {
			if sel.try(r, attempt{tier, pick, order}) {
				return nil
			}
		}
		if sel.hopeless(r) {
			break
		}
	}
	if sel.search(r, tier) {
		return nil
	}
	if sel.roomiest > 0 {
		return &NoRoomError{Room: sel.roomiest, Wanted: r.Replicas, by: sel.limits.narrowest()}
	}
	return &spreadError{}
}

// permutations returns the first permutations of n elements.
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

// restricts reports whether an attempt picks groups for a constraint. The first attempts do not where
// all groups may be chosen.
func (a *attempt) restricts(t *tally) bool { return t.limits || a.pick != bestGroups }

// try runs an attempt.
func (sel *groupSelection) try(r *Request, a attempt) bool {
	sel.restart(a.tier)
	for _, c := range a.order {
		if t := &sel.limits.tallies[c]; a.restricts(t) && !sel.restrict(r, t, a) {
			return false
		}
	}
	return sel.complete(r, a)
}

// complete chooses among the remaining places: one in each group, and then the first ones.
func (sel *groupSelection) complete(r *Request, a attempt) bool {
	sel.cover(a)
	if int64(len(sel.chosen)) > sel.limits.most {
		return false
	}
	for _, e := range sel.first(sel.limits.most-int64(len(sel.chosen)), byPreference, everywhere) {
		sel.pick(e.place)
	}
	if int64(len(sel.chosen)) < sel.limits.least {
		return false
	}
	for i := range sel.limits.tallies {
		if !sel.limits.tallies[i].holds() {
			return false
		}
	}
	return !sel.lacksRoom(r) || sel.replace(r)
}

// restrict picks groups for one constraint, and leaves out the places in other groups.
func (sel *groupSelection) restrict(r *Request, t *tally, a attempt) bool {
	c := t.constraint
	groups := sel.rate(r, t, a)
	least, limit, target := max(c.Min, 1)-t.groups, c.Max, sel.limits.least
	if limit != Unlimited {
		limit -= t.groups
	}
	if limit < 0 {
		return false
	}
	sel.picked = sel.picked[:0]
	others := groups[:0]
	for _, g := range groups {
		if g.must {
			target -= g.value
			sel.picked = append(sel.picked, g.id)
		} else {
			others = append(others, g)
		}
	}
	target = max(target, 0)
	if r.Mode == Static {
		// Every group has a share: as many as are allowed.
		least = max(least, min(limit, int64(len(others)), sel.limits.most-int64(len(sel.picked))))
	}
	switch {
	case a.pick == roomiestGroups:
		if !sel.pickRoomiest(r, t, others, least, limit) {
			return false
		}
	case a.pick == mostGroups:
		sel.pickMost(t, others, limit)
	case least > 0 || target > 0:
		if !sel.path.choose(others, c.Groups.Names, least, limit, target) {
			return false
		}
	default:
		others = nil
	}
	for i := range others {
		if others[i].picked {
			sel.picked = append(sel.picked, others[i].id)
		}
	}
	sel.allow(c.Groups)
	return true
}

// allow leaves out the places in groups that are not picked.
func (sel *groupSelection) allow(g *Groups) {
	allowed := newBitset(len(g.Names))
	for _, id := range sel.picked {
		allowed.add(id)
	}
	var one [1]int32
	for i := range sel.places {
		p := &sel.places[i]
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

// weightUnit is the value of a replica, or of a cluster with room for all of them, in the weight of
// a group. presentScore is the value of a cluster of the present binding.
const (
	weightUnit   = 1000
	presentScore = 100
)

// rate creates groups from the places that are not left out.
func (sel *groupSelection) rate(r *Request, t *tally, a attempt) []group {
	names := len(t.constraint.Groups.Names)
	sel.groups = slices.Grow(sel.groups[:0], names)[:names]
	sel.presents = slices.Grow(sel.presents[:0], names)[:names]
	for i := range sel.groups {
		sel.groups[i] = group{id: int32(i), must: t.count[i] > 0}
		sel.presents[i] = 0
	}
	var one [1]int32
	for i := range sel.places {
		p := &sel.places[i]
		if p.state == out {
			continue
		}
		for _, id := range t.constraint.Groups.of(p.row, &one) {
			g := &sel.groups[id]
			g.value++
			g.room += p.most
			g.votes += p.votes
			if p.present {
				sel.presents[id]++
			}
		}
	}
	n := 0
	for i := range sel.groups {
		g := sel.groups[i]
		if g.value == 0 {
			continue
		}
		if !g.must && a.pick == bestGroups {
			g.weight = sel.weight(r, t.constraint, &g)
		}
		sel.groups[n] = g
		n++
	}
	return sel.groups[:n]
}

// weight returns the weight of a group. If every cluster takes all replicas, it is the number of
// its clusters; with static weights, their sum; otherwise how much of its part of the replicas fits.
// The scores of its clusters break ties.
func (sel *groupSelection) weight(r *Request, c *Constraint, g *group) int64 {
	present := sel.presents[g.id]
	if !r.divided() {
		return g.value*weightUnit + present*presentScore/g.value
	}
	if r.Mode == Static {
		return g.votes
	}
	groups := max(c.Min, 1)
	need := (r.Replicas + groups - 1) / groups
	switch {
	case g.room < need:
		return g.room*weightUnit + present*presentScore/g.value
	case present == 0:
		return need * weightUnit
	}
	// The score is that of its best clusters, as many as its part needs.
	clusters := max(groups, sel.limits.least)
	var room, score int64
	entries := sel.entriesOf(filter{tier: -1, groups: c.Groups, group: g.id})
	slices.SortFunc(entries, compareEntries)
	for i, e := range entries {
		p := &sel.places[e.place]
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

// cover chooses one place in each of the picked groups.
func (sel *groupSelection) cover(a attempt) {
	if a.pick == mostGroups {
		sel.coverRequired()
		return
	}
	for _, c := range a.order {
		t := &sel.limits.tallies[c]
		if !a.restricts(t) {
			continue
		}
		sel.firsts = sel.firsts[:0]
		for range t.count {
			sel.firsts = append(sel.firsts, entry{place: -1})
		}
		var one [1]int32
		for i := range sel.places {
			p := &sel.places[i]
			if p.state != undecided {
				continue
			}
			hi, lo := byPreference.key(p, sel.weighted)
			for _, id := range t.constraint.Groups.of(p.row, &one) {
				if f := &sel.firsts[id]; f.place < 0 || hi < f.hi || hi == f.hi && lo < f.lo {
					*f = entry{hi: hi, lo: lo, place: int32(i)}
				}
			}
		}
		for id := range sel.firsts {
			if i := sel.firsts[id].place; i >= 0 && t.count[id] == 0 && sel.places[i].state != chosen {
				sel.pick(i)
			}
		}
	}
	sel.coverRequired()
}

// coverRequired chooses places in as many groups as are required.
func (sel *groupSelection) coverRequired() {
	if !slices.ContainsFunc(sel.limits.tallies, func(t tally) bool { return t.groups < t.constraint.Min }) {
		return
	}
	order := sel.entriesOf(everywhere)
	slices.SortFunc(order, compareEntries)
	sel.coverMissing(order, func(e entry) { sel.pick(e.place) })
}

// coverMissing takes places until no constraint lacks a group, each time the one that opens the
// most missing groups.
func (sel *selection) coverMissing(order []entry, take func(e entry)) {
	for {
		first, most := -1, int64(0)
		for k, e := range order {
			p := &sel.places[e.place]
			opens := int64(0)
			for i := range sel.limits.tallies {
				t := &sel.limits.tallies[i]
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
