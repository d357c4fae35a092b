package division

import (
	"math/bits"
	"slices"
)

// place is a usable candidate, reduced to what the division needs.
type place struct {
	row, rank, tier int32
	present         bool
	holds           bool // has replicas, or a copy, and stays if it can
	stays           bool // is in every choice
	must            bool // gets at least one replica, because of a constraint
	state           state
	held            int64 // current replicas, to break ties
	kept            int64 // replicas that it keeps unless there is a surplus
	room            int64 // replicas that fit, including the current ones
	most            int64 // maximum number of replicas, at most those requested
	votes           int64 // its claim to further replicas
	least           int64 // minimum number of replicas if it is used
	replicas        int64
}

// state is the selection's decision on a place.
type state uint8

const (
	undecided state = iota
	chosen
	out // left out, gets nothing
)

// lower returns the minimum number of replicas if the place is used.
func (p *place) lower() int64 {
	if p.must {
		return max(p.least, 1)
	}
	return p.least
}

// room returns how many replicas fit on a candidate, including the current ones.
func (c *Candidate) room(r *Request) int64 {
	free := c.Free
	if free == Unknown {
		free = r.Replicas
	}
	return min(c.Assigned+min(free, maxVotes), maxVotes)
}

// most returns how many of the requested replicas a candidate can have at most.
func (c *Candidate) most(r *Request) int64 {
	most := min(r.Replicas, c.Max)
	if c.Free != Unknown && c.Assigned+c.Free >= 0 {
		most = min(most, c.Assigned+c.Free)
	}
	return most
}

// usable reports whether the candidate can get any replica.
func (c *Candidate) usable(r *Request, weighted bool) bool {
	return c.usableUpTo(c.most(r), r, weighted)
}

func (c *Candidate) usableUpTo(most int64, r *Request, weighted bool) bool {
	switch {
	case r.Mode == Duplicate:
		return most == r.Replicas && c.Min <= r.Replicas
	case weighted && c.Weight <= 0:
		return false
	}
	return most >= max(c.Min, 1)
}

// pool holds the usable places and their totals.
type pool struct {
	places   []place
	room     int64 // of all places
	holders  int   // number of places that hold replicas, or a copy
	kept     int64 // replicas that all places keep
	tiers    int32
	weighted bool // weights differ
	marked   bool // some places may be decided already
	// The largest lower bound of places without replicas and of those with replicas, and the maxima
	// of these bounds.
	largest, ceiling [2]int64

	entries []entry // scratch memory for orders
}

// gather creates places from the usable candidates. It sets the fields in place, because copying
// them would take most of the time.
func (pl *pool) gather(r *Request, candidates []Candidate) {
	places := slices.Grow(pl.places[:0], len(candidates))[:len(candidates)]
	pl.largest, pl.marked = [2]int64{}, false
	pl.weighted = anyWeight(r, candidates)
	counted, divided := r.counted(), r.divided()
	steady, copies := !r.Fresh && divided, !r.Fresh && !divided
	ties := r.Mode == Static || r.Mode == Aggregate
	n, holders, tiers, room, kept := 0, 0, int32(1), int64(0), int64(0)
	for i := range candidates {
		c := &candidates[i]
		most := int64(0)
		if counted {
			if most = c.most(r); !c.usableUpTo(most, r, pl.weighted) {
				continue
			}
		}
		if len(r.Constraints) > 0 && !grouped(r.Constraints, c.Row) {
			continue
		}
		p := &places[n]
		p.row, p.rank, p.tier = c.Row, c.Rank, c.Tier
		p.present, p.holds, p.stays, p.must, p.state = c.Present, copies && c.Present, false, false, undecided
		p.most, p.held, p.kept, p.room, p.votes, p.least, p.replicas = most, 0, 0, 0, 0, 0, 0
		if counted {
			p.room = c.room(r)
			p.votes = p.room
		}
		if ties {
			p.held = c.Assigned
		}
		if steady && c.Assigned > 0 {
			p.holds = true
			if !r.anew() {
				p.kept = min(c.Assigned, c.Max)
				p.votes -= c.Assigned
			}
		}
		if divided && c.Min > 0 && !pl.bound(p, c.Min) {
			continue
		}
		if r.Mode == Static {
			p.votes = 1
			if pl.weighted {
				p.votes = min(c.Weight, maxVotes)
			}
		}
		if p.holds {
			holders++
		}
		tiers = max(tiers, c.Tier+1)
		room += most
		kept += p.kept
		n++
	}
	pl.places, pl.holders, pl.tiers, pl.room, pl.kept = places[:n], holders, tiers, room, kept
}

// bound sets the lower bound of a place, unless it is too large.
func (pl *pool) bound(p *place, least int64) bool {
	kind := 0
	if p.holds {
		kind = 1
	}
	if least > pl.ceiling[kind] {
		return false
	}
	p.least = least
	pl.largest[kind] = max(pl.largest[kind], least)
	return true
}

// minima reports whether any place has a lower bound.
func (pl *pool) minima() bool { return pl.largest != [2]int64{} }

// counted reports whether there are replicas to count.
func (r *Request) counted() bool { return r.Replicated && r.Replicas > 0 }

// divided reports whether replicas are divided among clusters.
func (r *Request) divided() bool { return r.counted() && r.Mode != Duplicate }

// anew reports whether all replicas are divided, rather than only the difference to the current
// ones. With static weights they always are.
func (r *Request) anew() bool { return r.Fresh || r.Mode == Static }

// anyWeight reports whether weights matter: if no candidate has one, all count the same.
func anyWeight(r *Request, candidates []Candidate) bool {
	if r.Mode != Static {
		return false
	}
	for i := range candidates {
		if candidates[i].Weight > 0 {
			return true
		}
	}
	return false
}

// grouped reports whether the row belongs to a group of every constraint.
func grouped(constraints []Constraint, row int32) bool {
	for i := range constraints {
		if g := constraints[i].Groups; g != nil && g.Of[row] < 0 {
			return false
		}
	}
	return true
}

// of returns the groups of a row. one is scratch memory for a single group.
func (g *Groups) of(row int32, one *[1]int32) []int32 {
	if g.Several != nil {
		if several := g.Several[row]; len(several) > 0 {
			return several
		}
	}
	one[0] = g.Of[row]
	return one[:]
}

// bitset is a set of small numbers.
type bitset []uint64

func newBitset(size int) bitset { return make(bitset, (size+63)/64) }

func (s bitset) has(i int32) bool { return s[i>>6]&(1<<(i&63)) != 0 }

func (s bitset) add(i int32) { s[i>>6] |= 1 << (i & 63) }

func (s bitset) count() int64 {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return int64(n)
}

// keepChosen removes the places that are not chosen.
func (pl *pool) keepChosen() {
	n := 0
	for i := range pl.places {
		if pl.places[i].state == chosen {
			pl.places[n] = pl.places[i]
			pl.places[n].state = undecided
			n++
		}
	}
	pl.places = pl.places[:n]
}
