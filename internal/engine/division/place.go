package division

import "math/bits"

// place is a candidate that can be used, reduced to what the division asks of it.
type place struct {
	row, rank, tier int32
	present         bool
	must            bool  // gets at least one replica, for a constraint
	holds           bool  // stays if it can: it has replicas, or a copy
	chosen          bool  // by the selection
	out             bool  // cannot be chosen, or gets none
	kept            int64 // replicas that it keeps unless there is a surplus
	room            int64 // replicas it has room for, those it has included
	most            int64 // replicas it can have at most
	votes           int64 // its claim to replicas that it does not have yet
	least           int64 // replicas it has at least where it is used
	seats           int64
}

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
	return min(c.Held+min(free, maxVotes), maxVotes)
}

// most is how many replicas of those wanted a candidate can have at most.
func (c *Candidate) most(r *Request) int64 {
	most := min(r.Replicas, c.Max)
	if c.Free != Unknown && c.Held+c.Free >= 0 {
		most = min(most, c.Held+c.Free)
	}
	return most
}

// usable reports whether the candidate can get any replica.
func (c *Candidate) usable(r *Request, weighted bool) bool {
	most := c.most(r)
	switch {
	case r.Mode == Duplicate:
		return most == r.Replicas && c.Min <= r.Replicas
	case weighted && c.Weight <= 0:
		return false
	}
	return most >= max(c.Min, 1)
}

// gather makes places of the candidates that can be used.
func (d *Divider) gather(r *Request, candidates []Candidate) {
	d.places, d.largest = d.places[:0], [2]int64{}
	d.chosen, d.chosenRoom = d.chosen[:0], 0
	d.weighted = anyWeight(r, candidates)
	steady := !r.Fresh && r.divided()
	for i := range candidates {
		c := &candidates[i]
		if !grouped(r.Constraints, c.Row) {
			continue
		}
		p := place{row: c.Row, rank: c.Rank, tier: c.Tier, present: c.Present}
		switch {
		case !r.counted():
			// All that is asked is where.
		case !c.usable(r, d.weighted):
			continue
		default:
			p.room, p.most = c.room(r), c.most(r)
			if r.divided() {
				p.least = c.Min
			}
			p.votes = p.room
			if steady {
				p.kept = min(c.Held, c.Max)
				p.votes -= c.Held
			}
			if r.Mode == Static {
				p.votes = 1
				if d.weighted {
					p.votes = min(c.Weight, maxVotes)
				}
			}
		}
		if p.least > 0 {
			bound := 0
			if p.kept > 0 {
				bound = 1
			}
			if p.least > d.ceiling[bound] {
				continue
			}
			d.largest[bound] = max(d.largest[bound], p.least)
		}
		p.holds = p.kept > 0 || c.Present && !r.Fresh && !r.divided()
		d.places = append(d.places, p)
	}
}

// minima reports whether any place has a lower bound.
func (d *Divider) minima() bool { return d.largest != [2]int64{} }

// counted reports whether there are replicas to count.
func (r *Request) counted() bool { return r.Replicated && r.Replicas > 0 }

// divided reports whether clusters share the replicas.
func (r *Request) divided() bool { return r.counted() && r.Mode != Duplicate }

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

// add reports whether i is new in the set.
func (s bitset) add(i int32) bool {
	bit := uint64(1) << (i & 63)
	fresh := s[i>>6]&bit == 0
	s[i>>6] |= bit
	return fresh
}

func (s bitset) count() int64 {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return int64(n)
}
