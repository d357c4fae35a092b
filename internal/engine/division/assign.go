package division

import (
	"cmp"
	"slices"
)

// assignment divides the replicas among the chosen places.
type assignment struct {
	choice

	anchored bool    // some places got a replica only because of a constraint
	parties  []party // scratch memory for apportioning
}

// assign divides the replicas and makes sure that the constraints hold for the places that got any.
func (as *assignment) assign(r *Request) error {
	as.anchored = false
	if as.share(r) > 0 {
		return &limitsError{replicas: r.Replicas}
	}
	if as.spread() {
		return nil
	}
	as.anchored = true
	if !as.anchor(r, true) && !as.anchor(r, false) {
		return as.tooFewReplicas(r)
	}
	if as.share(r) > 0 {
		return &limitsError{replicas: r.Replicas}
	}
	if !as.spread() {
		return &spreadError{replicas: r.Replicas}
	}
	return nil
}

// spread reports whether the constraints hold for the places with replicas.
func (as *assignment) spread() bool {
	if as.limits.least <= 1 && len(as.limits.tallies) == 0 {
		return true
	}
	as.limits.clear()
	clusters := int64(0)
	for i := range as.places {
		if p := &as.places[i]; p.replicas > 0 {
			clusters++
			as.limits.count(p)
		}
	}
	if clusters < as.limits.least {
		return false
	}
	for i := range as.limits.tallies {
		if !as.limits.tallies[i].holds() {
			return false
		}
	}
	return true
}

// tooFewReplicas returns an error naming the constraint that requires the most groups, if that is
// too many on its own. If groups overlap, one replica can be in several.
func (as *assignment) tooFewReplicas(r *Request) error {
	err := &tooFewReplicasError{replicas: r.Replicas}
	if l := &as.limits; l.leastBy != "" {
		err.needed, err.by = l.least, l.leastBy
	}
	for i := range as.limits.tallies {
		if c := as.limits.tallies[i].constraint; c.Min > err.needed && c.Groups.Several == nil {
			err.needed, err.by = c.Min, c.By
		}
	}
	if err.needed <= r.Replicas {
		return &spreadError{replicas: r.Replicas}
	}
	return err
}

// anchor marks the places that must get a replica so that there are enough clusters and groups.
// With keep, what the places that keep their replicas cover is already covered. It reports whether
// there are enough replicas.
func (as *assignment) anchor(r *Request, keep bool) bool {
	order := as.runningFirst()
	as.limits.clear()
	must := make([]bool, len(as.places))
	var clusters, needed int64
	mark := func(i int32) {
		p := &as.places[i]
		must[i] = true
		clusters++
		least := max(p.least, 1)
		if keep {
			least = max(least, p.kept)
		}
		needed += least
		as.limits.count(p)
	}
	for i := range as.places {
		if p := &as.places[i]; p.must || keep && p.kept > 0 {
			mark(int32(i))
		}
	}
	as.coverMissing(order, func(e entry) { mark(e.place) })
	for _, e := range order {
		if clusters < as.limits.least && !must[e.place] {
			mark(e.place)
		}
	}
	if needed > r.Replicas {
		return false
	}
	for i := range as.places {
		as.places[i].must = must[i]
	}
	return true
}

// runningFirst returns the places with replicas, followed by as many of the others, in order, as
// may get some. It leaves no place undecided.
func (as *assignment) runningFirst() []entry {
	var running []entry
	for i := range as.places {
		if p := &as.places[i]; p.replicas > 0 {
			running = append(running, as.entry(byPreference, i))
			p.state = chosen
		}
	}
	slices.SortFunc(running, compareEntries)
	others := as.limits.least
	if len(as.limits.tallies) > 0 {
		others = int64(len(as.places))
	}
	return append(running, as.first(others, byPreference, everywhere)...)
}

// share divides the replicas among the places and returns how many are left.
func (as *assignment) share(r *Request) int64 {
	var sum int64
	for i := range as.places {
		p := &as.places[i]
		p.state = undecided
		p.replicas = p.kept
		if p.kept > 0 || p.must {
			p.replicas = max(p.kept, p.lower())
		}
		sum += p.replicas
	}
	if sum > r.Replicas {
		sum = as.fitMinima(r, sum)
	}
	switch {
	case sum > r.Replicas:
		as.contract(r)
		return 0
	case sum < r.Replicas:
		return as.expand(r, r.Replicas-sum)
	}
	return 0
}

// fitMinima leaves out places, starting with the last, while the minima of the places that hold
// replicas exceed the replicas.
func (as *assignment) fitMinima(r *Request, sum int64) int64 {
	var lower int64
	for i := range as.places {
		if p := &as.places[i]; p.replicas > 0 {
			lower += p.lower()
		}
	}
	if lower <= r.Replicas {
		return sum
	}
	order := as.entriesOf(everywhere)
	slices.SortFunc(order, compareEntries)
	for k := len(order) - 1; k >= 0 && lower > r.Replicas; k-- {
		p := &as.places[order[k].place]
		if p.replicas > 0 && !p.must && p.least > 0 {
			lower -= p.lower()
			sum -= p.replicas
			p.replicas, p.state = 0, out
		}
	}
	return sum
}

// contract removes the surplus, starting with the last tier; within a tier in proportion to what is
// held, or from those that hold the least.
func (as *assignment) contract(r *Request) {
	n := r.Replicas
	for i := range as.places {
		n -= as.places[i].reserve()
	}
	for tier := range as.tiers {
		n = as.contractTier(r, tier, n)
	}
}

// reserve returns what a place always keeps.
func (p *place) reserve() int64 {
	if p.state == out || p.replicas == 0 {
		return 0
	}
	return p.lower()
}

// contractTier divides n replicas, in addition to those that the places of the tier always keep,
// among them. It returns how many are left for the other tiers.
func (as *assignment) contractTier(r *Request, tier int32, n int64) int64 {
	as.parties = as.parties[:0]
	for i := range as.places {
		p := &as.places[i]
		if p.tier != tier || p.state == out || p.replicas == 0 {
			continue
		}
		as.parties = append(as.parties, party{votes: p.kept, replicas: p.reserve(), upper: p.replicas, rank: p.rank, place: int32(i)})
	}
	if r.Mode == Aggregate {
		slices.SortFunc(as.parties, func(a, b party) int {
			return cmp.Or(cmp.Compare(b.votes, a.votes), cmp.Compare(a.rank, b.rank))
		})
		var room int64
		k := 0
		for ; k < len(as.parties) && room < n; k++ {
			room += as.parties[k].upper - as.parties[k].replicas
		}
		for _, c := range as.parties[k:] {
			as.settle(c)
		}
		as.parties = as.parties[:k]
	}
	n = apportion(as.parties, n, r.Descending)
	for _, c := range as.parties {
		as.settle(c)
	}
	return n
}

// settle assigns a party's replicas to its place.
func (as *assignment) settle(c party) { as.places[c.place].replicas = c.replicas }

// expand assigns n more replicas, tier by tier, and returns how many are left.
func (as *assignment) expand(r *Request, n int64) int64 {
	for tier := range as.tiers {
		if n == 0 {
			break
		}
		if r.Mode == Aggregate {
			n = as.fill(r, tier, n)
		} else {
			n = as.spreadOver(r, tier, n)
		}
	}
	return n
}

// spreadOver divides n replicas among all places of a tier.
func (as *assignment) spreadOver(r *Request, tier int32, n int64) int64 {
	if as.minima() {
		n = as.seed(tier, n)
	}
	few := n < int64(len(as.places))/4
	as.parties = as.parties[:0]
	for i := range as.places {
		p := &as.places[i]
		if p.tier == tier && p.state != out && (!few || p.started()) {
			as.parties = append(as.parties, p.party(r, int32(i)))
		}
	}
	if few {
		// Among places without replicas, only the first n can get any.
		order := byVotes
		if r.Descending {
			order = byVotesDescending
		}
		for _, e := range as.first(n, order, filter{tier: tier, unstarted: true}) {
			as.parties = append(as.parties, as.places[e.place].party(r, e.place))
		}
	}
	n = apportion(as.parties, n, r.Descending)
	as.settleClaims()
	return n
}

// started reports whether a place starts with replicas.
func (p *place) started() bool { return p.replicas > p.kept }

// party returns a place as a party to an apportionment. By room, only new replicas count. By
// weight, where all replicas are divided anew, current replicas break ties.
func (p *place) party(r *Request, i int32) party {
	c := party{votes: p.votes, replicas: p.replicas, upper: p.most, rank: p.rank, place: i}
	if r.Mode == Static {
		c.held = p.held
	}
	c.replicas -= p.kept
	c.upper -= p.kept
	return c
}

func (as *assignment) settleClaims() {
	for _, c := range as.parties {
		p := &as.places[c.place]
		p.replicas = c.replicas + p.kept
	}
}

// seed assigns the minimum to places without replicas, in order, and leaves out those for which
// there are not enough. It returns how many replicas are left.
func (as *assignment) seed(tier int32, n int64) int64 {
	left := n
	for few := n; ; few *= 8 {
		order := as.first(few, byPreference, filter{tier: tier, unstarted: true})
		for _, e := range order {
			if p := &as.places[e.place]; p.replicas == 0 && p.least <= left {
				p.replicas = p.least
				left -= p.least
			}
		}
		if left == 0 || int64(len(order)) < few {
			break
		}
		// Later places may have lower minima: start over to find more.
		for _, e := range order {
			p := &as.places[e.place]
			p.replicas = min(p.replicas, p.kept)
		}
		left = n
	}
	for i := range as.places {
		if p := &as.places[i]; p.tier == tier && p.replicas == 0 && p.least > 0 {
			p.state = out
		}
	}
	return left
}

// fill assigns n replicas to as few places of a tier as have room for them: first those that hold
// replicas, then by descending room.
func (as *assignment) fill(r *Request, tier int32, n int64) int64 {
	var room, seeds int64
	few := int64(16) // usually enough
	for {
		as.parties, room, seeds = as.parties[:0], 0, 0
		order := as.first(few, byClaim, filter{tier: tier})
		for _, e := range order {
			p := &as.places[e.place]
			seed := int64(0)
			if p.replicas == 0 {
				seed = p.least
			}
			if seed > n-seeds {
				continue
			}
			c := p.party(r, e.place)
			c.replicas += seed
			as.parties = append(as.parties, c)
			seeds += seed
			if room += p.most - p.replicas; room >= n {
				break
			}
		}
		if room >= n || int64(len(order)) < few {
			break
		}
		few *= 8
	}
	as.preferPresent(r, tier, room, n)
	n = apportion(as.parties, n-seeds, r.Descending)
	as.settleClaims()
	return n
}
