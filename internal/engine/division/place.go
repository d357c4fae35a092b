package division

import (
	"math/bits"
	"slices"
)

// place is a candidate that can be used, reduced to what the division asks of it.
type place struct {
	row, rank, tier int32
	present         bool
	holds           bool // stays if it can: it has replicas, or a copy
	must            bool // gets at least one replica, for a constraint
	state           state
	held            int64 // replicas it has now, where they decide between equals
	kept            int64 // replicas that it keeps unless there is a surplus
	room            int64 // replicas it has room for, those it has included
	most            int64 // replicas it can have at most, no more than there are
	votes           int64 // its claim to replicas that it does not have yet
	least           int64 // replicas it has at least where it is used
	replicas        int64
}

// state is what the selection has made of a place.
type state uint8

const (
	undecided state = iota
	chosen
	out // is left out, and gets nothing
)

// lower is what the place has at least where it is used.
func (p *place) lower() int64 {
	if p.must {
		return max(p.least, 1)
	}
	return p.least
}

// room is how many replicas a candidate has room for, those it has included.
func (c *Candidate) room(r *Request) int64 {
	free := c.Free
	if free == Unknown {
		free = r.Replicas
	}
	return min(c.Assigned+min(free, maxVotes), maxVotes)
}

// most is how many replicas of those wanted a candidate can have at most.
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

// pool are the places that can be used, and what they have together.
type pool struct {
	places   []place
	room     int64 // of all places
	holders  int   // places that hold replicas, or a copy
	kept     int64 // replicas that all of them keep
	tiers    int32
	weighted bool // weights make a difference
	marked   bool // some places may not be undecided
	// The largest lower bound of places that hold no replicas, and of those that
	// do, and the largest that places may have.
	largest, ceiling [2]int64

	entries []entry // memory for orders
}

// gather makes places of the candidates that can be used. It writes them field by
// field where they belong: copying them would take most of the time.
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
		p.present, p.holds, p.must, p.state = c.Present, copies && c.Present, false, undecided
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

// bound gives a place its lower bound, unless it is too large.
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

// divided reports whether clusters share the replicas.
func (r *Request) divided() bool { return r.counted() && r.Mode != Duplicate }

// anew reports whether all replicas are divided, and not only the difference to what
// is held. Static weights are shares: they always are.
func (r *Request) anew() bool { return r.Fresh || r.Mode == Static }

// anyWeight reports whether weights make a difference at all: where no candidate
// has any, all count alike.
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

// of are the groups that a row is in. one is memory for a single one.
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

// keepChosen drops the places that are not chosen.
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
