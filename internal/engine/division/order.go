package division

import (
	"math"
	"slices"
)

// order is an order of places.
type order uint8

const (
	// byPreference: those that hold replicas, then by tier, those of the present
	// binding, from the largest weight, from the largest room, by rank.
	byPreference order = iota
	// byClaim: those that hold replicas, then from the largest claim, by rank.
	byClaim
	// byVotes: from the largest claim, by rank, or by rank descending.
	byVotes
	byVotesDescending
)

// entry is a place with what it is ordered by.
type entry struct {
	hi, lo uint64
	place  int32
}

func (e *entry) before(f *entry) bool { return e.hi < f.hi || e.hi == f.hi && e.lo < f.lo }

func compareEntries(e, f entry) int {
	switch {
	case e.before(&f):
		return -1
	case f.before(&e):
		return 1
	}
	return 0
}

// largestRoom is what room is cut to where it is ordered by.
const largestRoom = 1<<32 - 1

func (d *Divider) entry(o order, i int) entry {
	p := &d.places[i]
	e := entry{lo: uint64(p.rank), place: int32(i)}
	switch o {
	case byPreference:
		e.hi = uint64(p.tier) << 46
		if !p.present {
			e.hi |= 1 << 45
		}
		if d.weighted {
			e.hi |= maxVotes - uint64(p.votes)
		}
		e.lo |= uint64(largestRoom-min(p.room, largestRoom)) << 31
	case byClaim:
		e.hi = maxVotes - uint64(p.votes)
	case byVotes:
		e.hi = maxVotes - uint64(p.votes)
		return e
	case byVotesDescending:
		e.hi = maxVotes - uint64(p.votes)
		e.lo = math.MaxInt32 - e.lo
		return e
	}
	if !p.holds {
		e.hi |= 1 << 63
	}
	return e
}

// filter says which places take part.
type filter struct {
	tier   int32 // of this tier; -1 = of any
	open   bool  // that can get another replica
	groups *Groups
	group  int32 // of this group, where groups are given
}

var everywhere = filter{tier: -1}

func (f *filter) pass(p *place) bool {
	switch {
	case p.state != undecided, f.tier >= 0 && p.tier != f.tier, f.open && p.seats >= p.most:
		return false
	case f.groups == nil:
		return true
	}
	var one [1]int32
	return slices.Contains(f.groups.of(p.row, &one), f.group)
}

// first are the first k places in the order, of those that are neither out nor
// chosen. They are valid until the next call.
func (d *Divider) first(k int64, o order, f filter) []entry {
	d.entries = d.entries[:0]
	if k <= 0 {
		return nil
	}
	heap := d.entries
	full := false
	for i := range d.places {
		if !f.pass(&d.places[i]) {
			continue
		}
		e := d.entry(o, i)
		switch {
		case int64(len(heap)) < k:
			heap = append(heap, e)
		case !full:
			full = true
			for j := len(heap)/2 - 1; j >= 0; j-- {
				sinkEntry(heap, j)
			}
			fallthrough
		default:
			if e.before(&heap[0]) {
				heap[0] = e
				sinkEntry(heap, 0)
			}
		}
	}
	d.entries = heap
	slices.SortFunc(heap, compareEntries)
	return heap
}

// sinkEntry restores a heap with the last entry on top.
func sinkEntry(heap []entry, i int) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if right := child + 1; right < len(heap) && heap[child].before(&heap[right]) {
			child = right
		}
		if heap[child].before(&heap[i]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}
