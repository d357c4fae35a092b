package binding

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/division"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// siteRoom computes how many replicas fit on sites, which may have different flavors.
type siteRoom struct {
	p        *Propagation
	fleet    *columns.Fleet
	reserved *ledger.Reservations
	rooms    map[ledger.Machine]*machineRoom
	// By index of the flavor + 1. Most sites have the same machines.
	last  []*machineRoom
	hints []int
}

// machineRoom measures one kind of machine.
type machineRoom struct {
	ledger.Machine
	room  ledger.Room
	needs ledger.Needs
	// taken are the machines with a declared number that a replica needs.
	taken []takenCount
}

// takenCount is how many machines of a declared number a replica needs.
type takenCount struct {
	ledger.Machine
	each, count int64
}

// siteRoom returns a new siteRoom.
func (b *Binder) siteRoom() siteRoom {
	return siteRoom{
		p: b.p, fleet: b.fleet, reserved: b.others.Reserved,
		rooms: map[ledger.Machine]*machineRoom{}, last: make([]*machineRoom, len(b.p.allocation.flavors)+1), hints: make([]int, len(b.p.allocation.flavors)+1),
	}
}

// measuring returns the machineRoom for a site's machines of a flavor, or nil if it has none, and
// their number if it is declared.
func (s *siteRoom) measuring(row int, position int32) (*machineRoom, int64) {
	m, count, ok := ledger.Machine{}, int64(0), true
	if position >= 0 {
		m, count, ok = ledger.MachineOn(s.fleet, row, s.p.allocation.flavors[position], &s.hints[position+1])
	}
	if !ok {
		return nil, 0
	}
	if len(s.p.allocation.further) > 0 {
		return s.measuringGroup(row, m, count, position >= 0), count
	}
	if last := s.last[position+1]; last != nil && last.Machine == m {
		return last, count
	}
	r := s.rooms[m]
	if r == nil {
		r = &machineRoom{Machine: m, needs: s.p.needs}
		amounts := s.p.needs
		if position >= 0 {
			r.needs = m.Needs(s.p.needs)
		}
		if !m.Counted {
			amounts = r.needs
		}
		r.room = ledger.MeasureNeeds(s.fleet, amounts, s.reserved, nil, nil)
		s.rooms[m] = r
	}
	s.last[position+1] = r
	return r, count
}

// measuringGroup returns the machineRoom of a site for replicas of several machines, the first of
// which is m if first is set. It is nil if the site lacks one of them.
func (s *siteRoom) measuringGroup(row int, m ledger.Machine, count int64, first bool) *machineRoom {
	r := &machineRoom{Machine: m, needs: s.p.needs}
	amounts := s.p.needs
	take := func(m ledger.Machine, count, each int64) {
		r.needs = m.Plus(r.needs, each)
		if !m.Counted {
			amounts = m.Plus(amounts, each)
			return
		}
		for i := range r.taken {
			if r.taken[i].Machine == m {
				r.taken[i].each += each
				return
			}
		}
		r.taken = append(r.taken, takenCount{m, each, count})
	}
	if first {
		take(m, count, 1)
	}
	for _, more := range s.p.allocation.further {
		m, count, ok := ledger.MachineOn(s.fleet, row, more.flavor, new(int))
		if !ok {
			return nil
		}
		take(m, count, more.count)
	}
	r.Counted = false // its number is among those in taken
	r.room = ledger.MeasureNeeds(s.fleet, amounts, s.reserved, nil, nil)
	return r
}

// limit limits room to what the declared numbers allow, with those that own replicas hold counted
// as free.
func (s *siteRoom) limit(m *machineRoom, row int, room int64, own *ledger.Hold) int64 {
	for i := range m.taken {
		t := &m.taken[i]
		count := t.count
		if own != nil {
			count += own.Of(ledger.CountedPrefix + t.Flavor).Fits(amount.Unit)
		}
		room = fewer(room, t.Left(s.reserved, row, count)/t.each)
	}
	return room
}

// free returns how many more replicas fit on a site. ok is false if it has no such machines.
func (s *siteRoom) free(row int, position int32) (free int64, ok bool) {
	m, count := s.measuring(row, position)
	if m == nil {
		return 0, false
	}
	free = m.room.Free(row)
	if m.Counted {
		free = fewer(free, m.Left(s.reserved, row, count))
	}
	return s.limit(m, row, free, nil), true
}

// total returns how many replicas fit on a site if its own count as free.
func (s *siteRoom) total(row int, position int32, own *ledger.Hold) (total int64, ok bool) {
	m, count := s.measuring(row, position)
	if m == nil {
		return 0, false
	}
	total = m.room.Total(row, own)
	if m.Counted {
		total = fewer(total, m.Left(s.reserved, row, count+own.Of(ledger.CountedPrefix+m.Flavor).Fits(amount.Unit)))
	}
	return s.limit(m, row, total, own), true
}

// fewer returns the smaller of two rooms. The first may be unknown.
func fewer(a, b int64) int64 {
	if a == division.Unknown {
		return b
	}
	return min(a, b)
}

// positions yields the indexes of the flavors, or only -1 if none are requested.
func (a *allocation) positions(yield func(int32) bool) {
	if len(a.flavors) == 0 {
		yield(-1)
		return
	}
	for i := range a.flavors {
		if !yield(int32(i)) {
			return
		}
	}
}

// position returns the index of the flavor of running replicas. ok is false if they must change to
// another one.
func (a *allocation) position(flavor string) (position int32, ok bool) {
	position = int32(slices.Index(a.flavors, flavor))
	return position, position >= 0 || flavor == "" && len(a.flavors) == 0
}

// choose chooses the flavor of a site, given how many replicas fit with each one: the first with
// room for enough of them, or else the first of those with the most room; -1 if none has any.
func (a *allocation) choose(enough int64, fit func(position int32) (room int64, ok bool)) (position int32, room int64) {
	position = -1
	for i := range a.positions {
		switch n, ok := fit(i); {
		case !ok || n == 0:
		case n == division.Unknown || n >= enough:
			return i, n
		case n > room:
			position, room = i, n
		}
	}
	return position, room
}

// trySites tries to place the whole workload on the sites of the mask: with the first flavor that
// each has any room for, and if it does not fit so, with the first that has room for all replicas,
// or for most. So whether it fits does not depend on the order of the flavors, and less room never
// makes it fit.
func (b *Binder) trySites() (division.Result, error) {
	result, err := b.divideSites(1)
	var full *division.NoRoomError
	if errors.As(err, &full) && len(b.p.allocation.flavors) > 1 {
		result, err = b.divideSites(b.p.replicas)
	}
	if errors.As(err, &full) {
		err = b.roomBySite(full)
	}
	return result, err
}

// divideSites divides the workload among the sites of the mask. See choose for enough.
func (b *Binder) divideSites(enough int64) (division.Result, error) {
	b.gatherSites(enough)
	request := b.request()
	return b.divider.Divide(&request, b.candidates)
}

// gatherSites lists the candidates of the mask in name order, each with its flavor and its rating.
func (b *Binder) gatherSites(enough int64) {
	rooms := b.siteRoom()
	b.candidates, b.positions = b.candidates[:0], b.positions[:0]
	for rank, row := range b.fleet.ByName() {
		if !b.mask.Has(int(row)) {
			continue
		}
		c := division.Candidate{Row: row, Rank: int32(rank), Max: division.Unlimited}
		var chosen int32
		chosen, c.Free = b.p.allocation.choose(enough, func(position int32) (int64, bool) { return rooms.free(int(row), position) })
		b.candidates, b.positions = append(b.candidates, c), append(b.positions, chosen)
	}
	for i := range b.places {
		if m := &b.places[i]; b.mask.Has(m.row) {
			b.markPresentSite(&rooms, m, enough)
		}
	}
	rating := b.siteRating()
	for i := range b.candidates {
		b.candidates[i].Weight = rating.score(&b.candidates[i], b.positions[i])
	}
}

// candidateAt returns the index of the candidate of a row, or -1.
func (b *Binder) candidateAt(row int) int {
	at, ok := slices.BinarySearchFunc(b.candidates, b.fleet.NameRank()[row], func(c division.Candidate, rank int32) int {
		return int(c.Rank) - int(rank)
	})
	if !ok {
		return -1
	}
	return at
}

// markPresentSite sets what a site of the present binding holds. It keeps its flavor, unless that
// is no longer requested or a new binding is.
func (b *Binder) markPresentSite(rooms *siteRoom, m *memberRow, enough int64) {
	at := b.candidateAt(m.row)
	if at < 0 {
		return
	}
	c := &b.candidates[at]
	c.Present, c.Assigned = true, m.replicas
	own, ok := b.others.Reserved.Held(b.p.key, m.cluster)
	if !ok {
		own = &ledger.Hold{}
	}
	if position, keeps := b.p.allocation.position(b.flavorOn(m.cluster)); keeps && !b.present.fresh {
		b.positions[at] = position
		measure, _ := rooms.measuring(m.row, position)
		if c.Free, _ = rooms.free(m.row, position); measure == nil {
			return // it no longer has such machines: running replicas stay
		}
		b.remeasureSite(rooms, c, m, own, position)
	} else {
		chosen, room := b.p.allocation.choose(enough, func(position int32) (int64, bool) { return rooms.total(m.row, position, own) })
		if chosen >= 0 {
			b.positions[at] = chosen
		}
		if c.Free = room; room != division.Unknown {
			c.Assigned = min(c.Assigned, room)
			c.Free = room - c.Assigned
		}
	}
	if m.state == memberSuspended || b.fleet.Paused().Has(m.row) {
		c.Free = 0 // running replicas stay, no new ones are added
	}
}

// remeasureSite is remeasure for a site.
func (b *Binder) remeasureSite(rooms *siteRoom, c *division.Candidate, m *memberRow, own *ledger.Hold, position int32) {
	if b.present.observed && !b.present.pending || c.Free == division.Unknown || len(own.Requests) == 0 {
		return
	}
	if total, _ := rooms.total(m.row, position, own); total != division.Unknown {
		c.Assigned = min(c.Assigned, total)
		c.Free = total - c.Assigned
	}
}

// flavorOn returns the flavor of the replicas on a cluster of the present binding.
func (b *Binder) flavorOn(cluster string) string {
	for i := range b.present.clusters {
		if b.present.clusters[i].Name == cluster {
			return b.present.clusters[i].Flavor
		}
	}
	return ""
}

// candidateFlavor returns the flavor that replicas have, or would have, on a candidate.
func (b *Binder) candidateFlavor(at int) string {
	if position := b.positions[at]; position >= 0 {
		return b.p.allocation.flavors[position]
	}
	return ""
}

// siteRoomError adds the room of single sites to an error about the room of all.
type siteRoomError struct {
	full  *division.NoRoomError
	sites string
}

func (e *siteRoomError) Error() string { return e.full.Error() + e.sites }
func (e *siteRoomError) Unwrap() error { return e.full }

// roomBySite adds the roomiest sites to an error about lack of room.
func (b *Binder) roomBySite(full *division.NoRoomError) error {
	type has struct {
		rank, row int32
		room      int64
	}
	var sites []has
	for i := range b.candidates {
		c := &b.candidates[i]
		if full.Region != "" && b.fleet.Cluster(int(c.Row)).Spec.Region != full.Region {
			continue // it would have to fit entirely
		}
		if c.Assigned+c.Free > 0 {
			sites = append(sites, has{c.Rank, c.Row, c.Assigned + c.Free})
		}
	}
	slices.SortFunc(sites, func(x, y has) int {
		if x.room != y.room {
			return int(min(max(y.room-x.room, -1), 1))
		}
		return int(x.rank - y.rank)
	})
	names := make([]string, 0, maxNamedClusters+1)
	for _, s := range sites[:min(len(sites), maxNamedClusters)] {
		names = append(names, fmt.Sprintf("%s %d", b.fleet.Name(int(s.row)), s.room))
	}
	if more := len(sites) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if len(names) == 0 {
		return full
	}
	return &siteRoomError{full, ": " + strings.Join(names, ", ")}
}

// sharesRegion groups the sites by region if all replicas must be in one.
func (b *Binder) sharesRegion() *division.Groups {
	if !b.p.strategy.inOneRegion() {
		return nil
	}
	return b.groupsBy(&api.GroupConstraint{SpreadByField: api.GroupByRegion})
}
