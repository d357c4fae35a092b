package division

import (
	"cmp"
	"slices"
)

// Share is the part of one cluster.
type Share struct {
	Row, Rank int32
	Replicas  int64
}

// Result is the result of a division.
type Result struct {
	Shares []Share // by Rank
	// Cramped says that a cluster would get more if it had more room. It is set for Static only: in
	// the other modes, running replicas stay.
	Cramped bool

	// Data for Reason.
	request   Request
	unchanged bool     // nothing has changed
	weighted  bool     // weights mattered
	anchored  bool     // some clusters got a replica only because of a constraint
	kept      int64    // current replicas that could stay
	votes     int64    // sum of all claims to new replicas
	used      int64    // clusters that count for constraints
	groups    []bitset // their groups, by constraint
	region    int32    // the region with all replicas, if inRegion
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

// occupy records the groups of the used clusters.
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

// Complies reports whether shares, however they came about, comply with the constraints of a request,
// and are in one region if they must be.
func (r *Request) Complies(shares []Share) bool {
	in := int32(-1) // the region
	for _, s := range shares {
		if s.Replicas == 0 && r.divided() {
			continue
		}
		if !grouped(r.Constraints, s.Row) {
			return false
		}
		if r.Regions == nil {
			continue
		}
		region := r.Regions.Of[s.Row]
		if region < 0 || in >= 0 && in != region {
			return false
		}
		in = region
	}
	res := Result{Shares: shares}
	res.occupy(r)
	for i := range r.Constraints {
		c, n := &r.Constraints[i], res.used
		if res.groups[i] != nil {
			n = res.groups[i].count()
		}
		if n < c.Min || n > c.Max {
			return false
		}
	}
	return true
}
