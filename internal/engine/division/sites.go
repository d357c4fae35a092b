package division

import (
	"cmp"
	"math/bits"
	"slices"
)

// siteDivision divides replicas among sites, by order or by room.
type siteDivision struct {
	sites []site
	order []int32
}

// site is a usable site, reduced to what the division needs.
type site struct {
	c        *Candidate
	kept     int64 // replicas that it keeps unless there is a surplus
	free     int64 // further replicas that fit
	replicas int64
	rest     uint64 // fractional part of its quota
}

// before orders sites, best first; among equals, those with replicas first, then by name.
func (s *site) before(other *site) int {
	switch {
	case s.c.Weight != other.c.Weight:
		return cmp.Compare(other.c.Weight, s.c.Weight)
	case s.c.Present != other.c.Present && s.c.Present:
		return -1
	case s.c.Present != other.c.Present:
		return 1
	}
	return cmp.Compare(s.c.Rank, other.c.Rank)
}

// divide divides by the site strategies. It is all or nothing: if there is not enough room, no site
// gets anything. Running replicas stay.
func (sd *siteDivision) divide(r *Request, candidates []Candidate, res *Result) error {
	sd.gather(r, candidates)
	if err := sd.chooseRegion(r, res); err != nil {
		return err
	}
	room := int64(0)
	for i := range sd.sites {
		s := &sd.sites[i]
		s.replicas = s.kept
		res.kept += s.kept
		room += s.free
	}
	res.votes = room
	switch more := r.Replicas - res.kept; {
	case more > room:
		return &NoRoomError{Room: res.kept + room, Wanted: r.Replicas}
	case more == 0:
		res.unchanged = !r.Fresh
	case (r.Mode == Centralize || r.Replicas == 1) && more > 0:
		// A single replica cannot be divided: by room, the scores of sites would not count.
		sd.fill(more, func(s *site) int64 { return s.free })
	case r.Mode == Centralize:
		sd.empty()
		sd.fill(r.Replicas, func(s *site) int64 { return s.kept })
	case more > 0:
		sd.quota(more, func(s *site) int64 { return s.free })
	default:
		sd.empty()
		sd.quota(r.Replicas, func(s *site) int64 { return s.kept })
	}
	for i := range sd.sites {
		if s := &sd.sites[i]; s.replicas > 0 {
			res.Shares = append(res.Shares, Share{Row: s.c.Row, Rank: s.c.Rank, Replicas: s.replicas})
		}
	}
	slices.SortFunc(res.Shares, func(a, b Share) int { return cmp.Compare(a.Rank, b.Rank) })
	return nil
}

// gather lists the sites that have replicas or room for some.
func (sd *siteDivision) gather(r *Request, candidates []Candidate) {
	sd.sites = sd.sites[:0]
	for i := range candidates {
		c := &candidates[i]
		s := site{c: c, kept: c.Assigned, free: c.Free}
		if c.Free == Unknown {
			s.free = r.Replicas
		}
		s.free = min(s.free, maxVotes)
		if r.Fresh {
			s.kept, s.free = 0, min(s.free+c.Assigned, maxVotes)
		}
		if s.kept+s.free > 0 {
			sd.sites = append(sd.sites, s)
		}
	}
}

// inOrder yields the sites in order. Usually only the first few are needed, so it uses a heap.
func (sd *siteDivision) inOrder(compare func(a, b *site) int) func(yield func(*site) bool) {
	heap := sd.order[:0]
	for i := range sd.sites {
		heap = append(heap, int32(i))
	}
	sd.order = heap
	sink := func(i int) {
		for {
			first := i
			for child := 2*i + 1; child <= 2*i+2 && child < len(heap); child++ {
				if compare(&sd.sites[heap[child]], &sd.sites[heap[first]]) < 0 {
					first = child
				}
			}
			if first == i {
				return
			}
			heap[i], heap[first] = heap[first], heap[i]
			i = first
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink(i)
	}
	return func(yield func(*site) bool) {
		for len(heap) > 0 {
			if !yield(&sd.sites[heap[0]]) {
				return
			}
			last := len(heap) - 1
			heap[0] = heap[last]
			heap = heap[:last]
			sink(0)
		}
	}
}

// regionSum holds the totals of the sites in one region.
type regionSum struct {
	id         int32
	kept, room int64
	best       *site
}

// chooseRegion keeps only the sites of one region, if all replicas must be in the same one: the
// region that has them, otherwise the one with the most room.
func (sd *siteDivision) chooseRegion(r *Request, res *Result) error {
	if r.Regions == nil {
		return nil
	}
	regions := make([]regionSum, len(r.Regions.Names))
	for i := range sd.sites {
		s := &sd.sites[i]
		at := r.Regions.Of[s.c.Row]
		if at < 0 {
			continue
		}
		region := &regions[at]
		if region.room == 0 || s.before(region.best) < 0 {
			region.id, region.best = at, s
		}
		region.kept += s.kept
		region.room += s.kept + s.free
	}
	regions = slices.DeleteFunc(regions, func(region regionSum) bool { return region.room == 0 })
	slices.SortFunc(regions, func(a, b regionSum) int {
		return cmp.Or(cmp.Compare(b.kept, a.kept), cmp.Compare(b.room, a.room), a.best.before(b.best))
	})
	used := 0
	for i := range regions {
		if regions[i].kept > 0 {
			used++
		}
	}
	stays := ""
	if used == 1 {
		regions = regions[:1] // running replicas do not move
		stays = r.Regions.Names[regions[0].id]
	}
	roomiest := int64(0)
	for _, region := range regions {
		if region.room >= r.Replicas {
			res.region, res.inRegion = region.id, true
			sd.sites = slices.DeleteFunc(sd.sites, func(s site) bool { return r.Regions.Of[s.c.Row] != region.id })
			return nil
		}
		roomiest = max(roomiest, region.room)
	}
	return &NoRoomError{Room: roomiest, Wanted: r.Replicas, together: true, Region: stays}
}

func (sd *siteDivision) empty() {
	for i := range sd.sites {
		sd.sites[i].replicas = 0
	}
}

// fill assigns n replicas to the best sites.
func (sd *siteDivision) fill(n int64, most func(*site) int64) {
	for s := range sd.inOrder((*site).before) {
		got := min(n, most(s))
		s.replicas += got
		if n -= got; n == 0 {
			return
		}
	}
}

// quota divides n replicas by the largest remainder method: each site gets the integer part of its
// quota, n · votes / sum of votes, and the remaining replicas go to the largest fractional parts,
// among equals to the best sites. No site gets more than its votes, as long as there are no more
// replicas than votes.
func (sd *siteDivision) quota(n int64, votes func(*site) int64) {
	sum := uint64(0)
	for i := range sd.sites {
		sum += uint64(votes(&sd.sites[i]))
	}
	left := n
	for i := range sd.sites {
		s := &sd.sites[i]
		high, low := bits.Mul64(uint64(n), uint64(votes(s)))
		var whole uint64
		whole, s.rest = bits.Div64(high, low, sum)
		s.replicas += int64(whole)
		left -= int64(whole)
	}
	if left == 0 {
		return
	}
	byRest := func(a, b *site) int {
		if a.rest == b.rest {
			return a.before(b)
		}
		return cmp.Compare(b.rest, a.rest)
	}
	for s := range sd.inOrder(byRest) {
		s.replicas++
		if left--; left == 0 {
			return
		}
	}
}

// whyNoSite says what prevents a site from getting anything. It returns "" if its claim is just too
// small.
func (r *Result) whyNoSite(c *Candidate) string {
	q := &r.request
	switch {
	case r.inRegion && q.Regions.Of[c.Row] != r.region:
		return "all replicas are in region " + q.Regions.Names[r.region]
	case (q.Mode == Centralize || q.Replicas == 1) && (r.kept < q.Replicas || q.Fresh):
		return "better sites have room enough"
	}
	return ""
}
