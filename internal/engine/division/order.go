package division

import (
	"math"
	"slices"
)

// order is a sort order of places.
type order uint8

const (
	// byPreference: places that hold replicas first, then by tier, places of the present binding
	// first, by descending weight or, without weights, by descending replicas, by descending room,
	// by rank.
	byPreference order = iota
	// byClaim: places that hold replicas first, by descending replicas, then by descending claim,
	// by rank.
	byClaim
	// byVotes: by descending claim, running ones first, by rank or by descending rank.
	byVotes
	byVotesDescending
	// byRoom: by descending maximum of replicas, by rank.
	byRoom
)

// entry is a place with its sort key.
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

// largestRoom is the cap on room in sort keys.
const largestRoom = 1<<32 - 1

// entry returns the entry of a place.
func (pl *pool) entry(o order, i int) entry {
	hi, lo := o.key(&pl.places[i], pl.weighted)
	return entry{hi: hi, lo: lo, place: int32(i)}
}

// key returns the sort key of a place; lower comes first.
func (o order) key(p *place, weighted bool) (hi, lo uint64) {
	lo = uint64(p.rank)
	switch o {
	case byPreference:
		lo |= uint64(largestRoom-min(p.room, largestRoom)) << 31
		hi = uint64(p.tier)<<46 | maxVotes
		if !p.present {
			hi |= 1 << 45
		}
		if weighted {
			hi -= uint64(p.votes)
		} else {
			hi -= uint64(min(p.held, maxVotes))
		}
		if !p.holds {
			hi |= 1 << 63
		}
	case byClaim:
		if p.holds {
			lo |= uint64(largestRoom-min(p.votes, largestRoom)) << 31
			hi = maxVotes - uint64(min(p.held, maxVotes))
		} else {
			hi = 1<<63 | (maxVotes - uint64(p.votes))
		}
	case byVotesDescending:
		lo = math.MaxInt32 - lo
		fallthrough
	case byVotes:
		hi = (maxVotes - uint64(p.votes)) << 1
		if p.held == 0 {
			hi |= 1
		}
	case byRoom:
		hi = uint64(math.MaxInt64 - p.most)
	}
	return hi, lo
}

// filter selects places.
type filter struct {
	tier      int32 // only this tier; -1 = any
	unstarted bool  // only places that start without replicas and can have some
	groups    *Groups
	group     int32 // only this group, if groups are given
}

var everywhere = filter{tier: -1}

func (f *filter) pass(p *place) bool {
	switch {
	case p.state != undecided, f.tier >= 0 && p.tier != f.tier, f.unstarted && (p.replicas >= p.most || p.started()):
		return false
	case f.groups == nil:
		return true
	}
	var one [1]int32
	return slices.Contains(f.groups.of(p.row, &one), f.group)
}

// first returns the first k places in the order that pass the filter. The result is valid until the
// next call.
func (pl *pool) first(k int64, o order, f filter) []entry {
	heap := pl.entries[:0]
	if k <= 0 {
		return nil
	}
	i := 0
	for ; i < len(pl.places) && int64(len(heap)) < k; i++ {
		if f.pass(&pl.places[i]) {
			heap = append(heap, pl.entry(o, i))
		}
	}
	if i < len(pl.places) {
		for j := len(heap)/2 - 1; j >= 0; j-- {
			sinkEntry(heap, j)
		}
	}
	// Most of the rest rank below the last of these and need no entry.
	for ; i < len(pl.places); i++ {
		p := &pl.places[i]
		hi, lo := o.key(p, pl.weighted)
		if last := &heap[0]; hi > last.hi || hi == last.hi && lo > last.lo || !f.pass(p) {
			continue
		}
		heap[0] = entry{hi: hi, lo: lo, place: int32(i)}
		sinkEntry(heap, 0)
	}
	pl.entries = heap
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

// entriesOf returns the places that pass a filter, unordered.
func (pl *pool) entriesOf(f filter) []entry {
	pl.entries = pl.entries[:0]
	for i := range pl.places {
		if f.pass(&pl.places[i]) {
			pl.entries = append(pl.entries, pl.entry(byPreference, i))
		}
	}
	return pl.entries
}
