package binding

import (
	"errors"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/division"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/movement"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// tried is the result of trying one affinity group.
type tried struct {
	group int
	err   error // nil: it has room for the workload
}

// Binding is the result for a Propagation.
type Binding struct {
	// group is the affinity group of the clusters, or -1 if none has been chosen yet.
	group  int
	Shares []division.Share
	// tried are the groups that were tried, in order. The workload is complete if the last of them
	// succeeded.
	tried    []tried
	Complete bool
	// lost are replicas of lost clusters for which no group has room.
	lost      int64
	evictions []api.Eviction
	earlier   []api.EarlierAffinity
	// evictionsSuspended says that the workload stays on clusters that are not online, because too
	// many are not.
	evictionsSuspended bool
	// NextAt is when the result may change through the passing of time alone; zero if never.
	NextAt time.Time
	// Lack is by how many replicas the room must grow before another result is possible, if the
	// workload is not complete, and BackLack the same for a return to an earlier group. They are 0
	// if it does not depend on room alone.
	Lack, BackLack int64
	// Cramped says that a cluster would get more of the workload if it had more room.
	Cramped bool
	// Demand says which clusters would take what a workload that is not complete lacks, once
	// Binder.Demand has been asked.
	Demand *api.Demand
	// Overflowed says that replicas are in overflow tiers. They return to earlier tiers when there
	// is room.
	Overflowed bool
	// Held is what holds a move that a binding made now would make; nil if nothing does.
	Held *movement.Held
	// Moved is how many moves count in budgets.
	Moved int64

	result  division.Result
	flavors map[int32]string // of an allocation, by chosen row
}

// lackOf returns by how many replicas the room that an error is about must grow.
func lackOf(err error) int64 {
	var full *division.NoRoomError
	if errors.As(err, &full) && full.Wanted > full.Room {
		return full.Wanted - full.Room
	}
	return 0
}

// Binder binds workloads. It reuses its memory, so it must not be used concurrently. The zero value
// is ready to use.
type Binder struct {
	divider    division.Divider
	candidates []division.Candidate
	positions  []int32     // index of the flavor by candidate, for an allocation
	sizes      []siteSized // by row
	columns    []ledger.RoomColumn
	mask       columns.Bitmap
	scratch    columns.Bitmap
	weights    []int64 // by row
	places     []memberRow
	grouped    *columns.Fleet // the fleet of the groups
	groups     map[string]*division.Groups

	// The current workload.
	fleet   *columns.Fleet
	p       *Propagation
	views   []*placement.View
	others  ledger.Others
	spare   ledger.Spare
	present Present
	now     time.Time
	out     Binding
	// refilling says that the division tries to move replicas back to earlier tiers.
	refilling bool
	// back is the group or tier that takes replicas back.
	back string
}

// Bind decides where a workload runs at the given time. views are those of the queries of its
// affinity groups, in order. spare may be nil.
//
// The rules (DESIGN 3.2.9 and 3.2.10): groups are tried in order, starting with the observed one,
// or with the first one for an explicit reschedule; the first group that has room for the whole
// workload gets it. If a group only lacks room for additional replicas, running ones stay and the
// workload does not move to the next group. If a cluster is lost and the rest of its group lacks
// room for its replicas, the next group is tried. An earlier group that could have held the
// workload for the whole stabilization window takes it back. Earlier tiers of a group do the same
// with replicas that overflowed.
func (b *Binder) Bind(f *columns.Fleet, p *Propagation, views []*placement.View, others ledger.Others, spare ledger.Spare, bound Present, now time.Time) Binding {
	b.fleet, b.p, b.views, b.others, b.spare, b.present, b.now = f, p, views, others, spare, bound, now
	b.out = Binding{group: -1}
	observed := p.Group(bound.affinity)
	start := max(observed, 0)
	if bound.fresh {
		start = 0
	}
	lost := b.judge(observed)
	b.askInOrder(start, !bound.fresh && observed >= 0 && lost == 0 && b.any(memberStays) && !b.any(memberUnwanted))
	asked := b.out
	b.takeBack(observed)
	moved := b.holdBack(&asked)
	if !b.out.Complete && bound.fresh && len(bound.clusters) > 0 {
		// A new division is impossible: keep the binding as if none had been requested.
		bound.fresh = false
		return b.Bind(f, p, views, others, spare, bound, now)
	}
	if held := b.holdFresh(); held != nil {
		bound.fresh = false
		b.Bind(f, p, views, others, spare, bound, now)
		b.out.Held = held
		b.soon(held.Again)
		return b.out
	}
	if b.out.Complete {
		b.out.Shares, b.out.Cramped = b.out.result.Shares, b.out.result.Cramped
	} else {
		b.out.Lack = leastLack(b.out.tried)
		b.remain(start, lost)
	}
	if b.out.Cramped || b.out.Overflowed {
		b.out.BackLack = 0 // any additional room may change the result
	}
	if !moved {
		b.holdShares()
	}
	b.p.strategy.complete(b)
	b.evict(observed)
	b.schedule()
	return b.out
}

// askInOrder tries the affinity groups from start on until one has room for the workload. If it
// stays on the clusters of the first, lack of room for more replicas is no reason to try others.
func (b *Binder) askInOrder(start int, stays bool) {
	for g := start; g < len(b.p.Groups); g++ {
		result, err := b.try(g, false)
		b.out.tried = append(b.out.tried, tried{g, err})
		if err == nil {
			b.out.group, b.out.result, b.out.Complete = g, result, true
			return
		}
		var full *division.NoRoomError
		if g == start && stays && errors.As(err, &full) {
			return
		}
	}
}

// leastLack returns the lack of the group that is closest to holding the workload.
func leastLack(asked []tried) (least int64) {
	for i, t := range asked {
		if lack := lackOf(t.err); i == 0 || lack < least {
			least = lack
		}
	}
	return least
}

// try tries to place the whole workload in one affinity group. For a fail-back, lost clusters that
// are back count as candidates.
func (b *Binder) try(g int, back bool) (division.Result, error) {
	if !b.p.strategy.asks(b.p.replicas) {
		return division.Result{}, nil
	}
	b.admit(g, back)
	return b.p.strategy.divide(b, &b.p.Groups[g])
}

// admit sets the mask to the clusters that an affinity group may use.
func (b *Binder) admit(g int, back bool) {
	group, view := &b.p.Groups[g], b.views[g]
	b.mask = append(b.mask[:0], view.Mask...)
	pass := placement.PassOf(b.fleet, group.Query, b.others.Reserved)
	for i := range b.places {
		m := &b.places[i]
		switch m.state {
		case memberStays, memberUnwanted:
			b.mask.Assign(m.row, pass.Admits(m.row, true))
		case memberSuspended:
			b.mask.Assign(m.row, filter.TierOf(group.tiers, b.fleet, m.row) >= 0 || len(group.tiers) == 0)
		case memberLost, memberFailed:
			b.mask.Clear(m.row)
		case memberLeaving:
			if !back || m.evicted != api.EvictedClusterLost {
				b.mask.Clear(m.row)
			}
		}
	}
}

// remain keeps the part of the present binding that fits, because no group can hold the workload.
func (b *Binder) remain(start int, lost int64) {
	kept := int64(0)
	for i := range b.places {
		m := &b.places[i]
		if m.state == memberStays || m.state == memberSuspended || m.state == memberUnwanted && b.fitsAny(m.row) {
			s := division.Share{Row: int32(m.row), Rank: b.fleet.NameRank()[m.row], Replicas: m.replicas}
			if b.p.replicated && b.p.replicas == 0 {
				s.Replicas = 0 // 0 replicas need no room
			}
			b.out.Shares = append(b.out.Shares, s)
			kept += s.Replicas
		}
	}
	slices.SortFunc(b.out.Shares, func(a, b division.Share) int { return int(a.Rank) - int(b.Rank) })
	if len(b.out.Shares) > 0 {
		b.out.group = b.p.Group(b.present.affinity) // -1: the group of the clusters no longer exists
	} else if b.p.Group(b.present.affinity) >= 0 {
		b.out.group = start
	}
	if b.p.divided() {
		b.out.lost = max(min(lost, b.p.replicas-kept), 0)
	}
}

// soon records a time at which the result may change through the passing of time alone.
func (b *Binder) soon(at time.Time) {
	if at.After(b.now) && (b.out.NextAt.IsZero() || at.Before(b.out.NextAt)) {
		b.out.NextAt = at
	}
}

// schedule records when a toleration that the binding depends on expires.
func (b *Binder) schedule() {
	query := b.p.Groups[max(b.out.group, 0)].Query // tolerations are those of the policy
	if !query.Reads().Any(columns.Clock) {
		return
	}
	pass := placement.PassOf(b.fleet, query, nil)
	for _, s := range b.out.Shares {
		if at := pass.Stays(int(s.Row)); !at.IsZero() {
			b.soon(at)
		}
	}
}
