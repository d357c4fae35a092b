package division

import (
	"cmp"
	"slices"
)

// Share is what one cluster gets.
type Share struct {
	Row, Rank int32
	Replicas  int64
}

// Result is a division.
type Result struct {
	Shares []Share // by Rank
	// Cramped says that a cluster would have more than its share if it had more room.
	// It is told of Static only: in the other modes what runs stays.
	Cramped bool

	// For the reasons.
	request   Request
	unchanged bool     // everything stays as it was
	weighted  bool     // weights made a difference
	anchored  bool     // some clusters got a replica only for a constraint
	kept      int64    // replicas that were held and could stay
	votes     int64    // what all claims to new replicas added up to
	used      int64    // clusters that count for constraints
	groups    []bitset // those that they are in, by constraint
	region    int32    // that has all replicas, where inRegion
	inRegion  bool
}

// emit writes the shares.
func (d *Divider) emit(r *Request, res *Result) {
	divided := r.divided()
	shares := d.shares[:0]
	if !divided || r.Empty {
		shares = make([]Share, 0, len(d.places))
	}
	sorted, last := true, int32(-1)
	for i := range d.places {
		p := &d.places[i]
		res.kept += p.kept
		res.votes += p.votes
		if divided && p.replicas == 0 && (!r.Empty || p.state == out) {
			continue
		}
		sorted = sorted && p.rank > last
		last = p.rank
		shares = append(shares, Share{Row: p.row, Rank: p.rank, Replicas: p.replicas})
	}
	if divided && !r.Empty {
		d.shares = shares
		shares = slices.Clone(shares)
	}
	res.Shares = shares
	if !sorted {
		slices.SortFunc(res.Shares, func(a, b Share) int { return cmp.Compare(a.Rank, b.Rank) })
	}
	res.occupy(r)
}

// occupy notes which groups the clusters are in.
func (res *Result) occupy(r *Request) {
	if len(r.Constraints) == 0 {
		return
	}
	res.groups = make([]bitset, len(r.Constraints))
	for i := range r.Constraints {
		if g := r.Constraints[i].Groups; g != nil {
			res.groups[i] = newBitset(len(g.Names))
		}
	}
	var one [1]int32
	for _, s := range res.Shares {
		if s.Replicas == 0 && r.divided() {
			continue
		}
		res.used++
		for i, set := range res.groups {
			if set == nil {
				continue
			}
			for _, id := range r.Constraints[i].Groups.of(s.Row, &one) {
				set.add(id)
			}
		}
	}
}
