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
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// Present is the binding a workload has now.
type Present struct {
	clusters  []api.WorkloadCluster
	affinity  string
	evictions []api.Eviction
	health    []api.ClusterHealth
	earlier   []api.EarlierAffinity
	lost      int64
	// answered says that the binding answers the present spec and policy.
	answered bool
	// Pending says that the present binding is not all that is wanted.
	Pending bool
	// fresh is an explicit wish for a new binding: the first group is tried first,
	// and replicas are divided anew.
	fresh bool
}

// NewPresent is the binding that a workload's status tells. policy is the one that
// it follows, nil where it is placed by itself.
func NewPresent(w *api.Workload, policy *api.PropagationPolicy) Present {
	s := &w.Status
	scheduled := api.FindCondition(s.Conditions, api.ConditionScheduled)
	return Present{
		Pending:  scheduled != nil && scheduled.Status == api.ConditionFalse,
		clusters: s.Clusters, affinity: s.ObservedAffinity, evictions: s.Evictions, health: s.Health,
		earlier: s.EarlierAffinities, lost: s.LostReplicas,
		answered: s.ObservedGeneration == w.Metadata.Generation && answersPolicy(s, policy),
		fresh:    s.ObservedRescheduleRequests != w.Metadata.RescheduleRequests,
	}
}

func answersPolicy(s *api.WorkloadStatus, policy *api.PropagationPolicy) bool {
	path, uid, generation := policyOf(policy)
	return s.Policy == path && s.PolicyUID == uid && s.PolicyGeneration == generation
}

// policyOf is what a status tells of the policy that the workload follows; nil is
// none.
func policyOf(policy *api.PropagationPolicy) (path, uid string, generation int64) {
	if policy == nil {
		return "", "", 0
	}
	return policy.Path(), policy.Metadata.UID, policy.Metadata.Generation
}

// tried is what became of one affinity group.
type tried struct {
	group int
	err   error // nil: it took the workload
}

// Binding is the answer to a Propagation.
type Binding struct {
	// group is the affinity group that the clusters are from, -1 where none has
	// taken the workload yet.
	group  int
	Shares []division.Share
	// tried are the groups that were asked, in order. The workload is complete
	// where the last of them took it.
	tried    []tried
	Complete bool
	// lost are replicas of lost clusters that no group has room for.
	lost      int64
	evictions []api.Eviction
	earlier   []api.EarlierAffinity
	// evictionsSuspended says that the workload stays on clusters that are not online, because
	// too many are not.
	evictionsSuspended bool
	// NextAt is when time alone may change the answer; zero if it cannot.
	NextAt time.Time
	// Lack is by how many replicas the room has to grow for another answer, where
	// the workload is not complete, and BackLack that for an earlier group to take
	// it back; 0 where it is not room alone.
	Lack, BackLack int64
	// Cramped says that a cluster would have more of the workload if it had more
	// room.
	Cramped bool
	// Overflowed says that replicas are in overflow tiers, and go back to those before
	// when there is room.
	Overflowed bool

	result  division.Result
	flavors map[int32]string // of an allocation, by chosen row
}

// lackOf is by how many replicas the room that an error is about has to grow.
func lackOf(err error) int64 {
	var full *division.NoRoomError
	if errors.As(err, &full) && full.Wanted > full.Room {
		return full.Wanted - full.Room
	}
	return 0
}

// Binder binds workloads. It keeps memory for the next one, so it is for one
// goroutine at a time. The zero value is ready.
type Binder struct {
	divider    division.Divider
	candidates []division.Candidate
	positions  []int32     // of flavors, by candidate, of an allocation
	sizes      []siteSized // by row
	columns    []ledger.RoomColumn
	mask       columns.Bitmap
	scratch    columns.Bitmap
	weights    []int64 // by row
	places     []memberRow
	grouped    *columns.Fleet // that groups are of
	groups     map[string]*division.Groups

	// Of the workload at hand.
	fleet   *columns.Fleet
	p       *Propagation
	views   []*placement.View
	others  ledger.Others
	spare   ledger.Spare
	present Present
	now     time.Time
	out     Binding
	// refilling says that the question is whether earlier tiers can be filled again.
	refilling bool
}

// memberRow is one cluster of the present binding, or one that is being left.
type memberRow struct {
	row      int
	replicas int64
	cluster  string
	state    memberState
	evicted  string // reason, once it is to be left
}

// memberState says what a cluster of the present binding is good for.
type memberState uint8

const (
	// memberStays fits, or is as good as if it did.
	memberStays memberState = iota
	// memberSuspended is offline, and so are too many others.
	memberSuspended
	// memberLost is offline, or has a taint that evicts.
	memberLost
	// memberFailed has the application unhealthy for too long.
	memberFailed
	// memberLeaving is an eviction that goes on.
	memberLeaving
	// memberUnwanted does not fit any more for other reasons: the policy or the
	// cluster's labels have changed.
	memberUnwanted
)

// Bind answers where a workload runs, as of a moment. The views are those of the
// queries of its affinity groups, in their order. Spare may be nil.
//
// The rules (DESIGN 3.2.9 and 3.2.10): groups are asked in order from the
// observed one, an explicit reschedule from the first; the first that takes the
// whole workload has it. Where a group has no room for more replicas, those that
// run stay, and nothing moves on to the next group. Where a cluster is lost and
// the rest of its group has no room for its replicas, the next group is asked. An
// earlier group that could have taken the workload for the whole stabilization
// window takes it back, and so do earlier tiers of a group with what overflowed.
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
	b.takeBack(observed)
	if !b.out.Complete && bound.fresh && len(bound.clusters) > 0 {
		// A new division finds no place: what there is stays as if nobody had asked.
		bound.fresh = false
		return b.Bind(f, p, views, others, spare, bound, now)
	}
	if b.out.Complete {
		b.out.Shares, b.out.Cramped = b.out.result.Shares, b.out.result.Cramped
	} else {
		b.out.Lack = leastLack(b.out.tried)
		b.remain(start, lost)
	}
	if b.out.Cramped || b.out.Overflowed {
		b.out.BackLack = 0 // any room may be enough for another answer
	}
	b.p.strategy.complete(b)
	b.evict(observed)
	b.schedule()
	return b.out
}

// askInOrder asks the affinity groups from start on, until one takes the workload.
// Where it stays on the clusters of the first, no room there for more replicas is no
// reason to ask others.
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

// takeBack moves the workload back to an earlier group, or within its group to earlier
// tiers, where they have been able to take it for long enough.
func (b *Binder) takeBack(observed int) {
	if back, result := b.failBack(observed); back >= 0 {
		b.out.tried = append(b.out.tried, tried{back, nil})
		b.out.group, b.out.result, b.out.Complete = back, result, true
	} else if b.out.Complete {
		b.refill(b.out.group)
	}
}

// leastLack is that of the group which has to grow least to take the workload.
func leastLack(asked []tried) (least int64) {
	for i, t := range asked {
		if lack := lackOf(t.err); i == 0 || lack < least {
			least = lack
		}
	}
	return least
}

// judge says of every cluster of the present binding, and of those that are being
// left, what it is good for, and returns how many replicas are lost. Where the
// observed group is no more, fitting any group is enough.
func (b *Binder) judge(observed int) (lost int64) {
	b.places = b.places[:0]
	pass := placement.PassOf(b.fleet, b.p.Groups[max(observed, 0)].Query, b.others.Reserved)
	lost = b.judgeMembers(&pass, observed) + b.present.lost
	first := pass // of the group that is asked first
	if b.present.fresh {
		first = placement.PassOf(b.fleet, b.p.Groups[0].Query, b.others.Reserved)
	}
	b.judgeEvictions(&first, lost > 0)
	if !b.p.divided() {
		return 0
	}
	return lost
}

// judgeMembers is judge for the clusters of the present binding. The pass is that of
// the observed group.
func (b *Binder) judgeMembers(pass *placement.Pass, observed int) (lost int64) {
	braked := Brakes(b.fleet)
	for _, c := range b.present.clusters {
		row, ok := b.fleet.Row(c.Name)
		if !ok {
			lost += c.Replicas
			continue
		}
		m := memberRow{row: row, replicas: c.Replicas, cluster: c.Name, state: b.stateOf(pass, &c, row, braked, observed)}
		if m.state == memberLost || m.state == memberFailed {
			lost += c.Replicas
		}
		b.places = append(b.places, m)
	}
	return lost
}

// stateOf says what a cluster of the present binding is good for.
func (b *Binder) stateOf(pass *placement.Pass, c *api.WorkloadCluster, row int, braked bool, observed int) memberState {
	switch {
	case !endures(pass, row):
		if braked && offlineOnly(pass, row) {
			return memberSuspended
		}
		return memberLost
	case (c.Replicas > 0 || !b.p.replicated) && b.failed(c.Name): // also where another group is to have the cluster
		return memberFailed
	case pass.Admits(row, true) || observed < 0 && b.fitsAny(row):
		return memberStays
	}
	return memberUnwanted
}

// judgeEvictions is judge for the clusters that are being left. first is the pass of the
// group that is asked first; to restore is to stay on one that was lost and is back
// before a replacement was found.
func (b *Binder) judgeEvictions(first *placement.Pass, restore bool) {
	for _, e := range b.present.evictions {
		row, ok := b.fleet.Row(e.Cluster)
		if !ok || b.evictionOver(e) {
			continue
		}
		m := memberRow{row: row, replicas: e.Replicas, cluster: e.Cluster, state: memberLeaving, evicted: e.Reason}
		if restore && e.Reason == api.EvictedClusterLost && first.Admits(row, true) {
			m.state, m.evicted = memberStays, ""
		}
		b.places = append(b.places, m)
	}
}

// fitsAny reports whether a cluster of the present binding fits any group.
func (b *Binder) fitsAny(row int) bool {
	return slices.ContainsFunc(b.p.Groups, func(g AffinityGroup) bool {
		pass := placement.PassOf(b.fleet, g.Query, b.others.Reserved)
		return pass.Admits(row, true)
	})
}

func (b *Binder) any(state memberState) bool {
	return slices.ContainsFunc(b.places, func(m memberRow) bool { return m.state == state })
}

// try asks one affinity group to take the whole workload. For a fail-back, lost
// clusters that are back count as candidates.
func (b *Binder) try(g int, back bool) (division.Result, error) {
	if !b.p.strategy.asks(b.p.replicas) {
		return division.Result{}, nil
	}
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
	return b.p.strategy.divide(b, group)
}

// failBack asks the groups before the one that has the workload whether they
// could take it, notes since when they could, and returns the first that could
// for long enough; -1 where there is none.
func (b *Binder) failBack(observed int) (int, division.Result) {
	current := b.out.group
	if current < 0 {
		current = observed
	}
	if !b.p.failBack || current <= 0 {
		return -1, division.Result{}
	}
	for g := range current {
		result, err := b.try(g, true)
		if err != nil {
			if lack := lackOf(err); g == 0 || lack < b.out.BackLack {
				b.out.BackLack = lack
			}
			continue
		}
		since := b.feasibleSince(b.p.Groups[g].Name)
		if !b.out.Complete || b.stable(since) { // what is incomplete cannot wait
			return g, result
		}
		b.awaitBack(b.p.Groups[g].Name, since)
	}
	return -1, division.Result{}
}

// refill asks whether replicas in overflow tiers have room in the tiers before them,
// notes since when they have, and moves them back if that is long enough.
func (b *Binder) refill(group int) {
	tiers := b.p.Groups[group].tiers
	if !b.p.failBack || !b.p.divided() || len(tiers) < 2 || b.present.fresh {
		return
	}
	has := b.byTier(tiers, b.out.result.Shares)
	if b.out.Overflowed = slices.ContainsFunc(has[1:], func(n int64) bool { return n > 0 }); !b.out.Overflowed {
		return
	}
	b.refilling = true
	result, err := b.try(group, true)
	b.refilling = false
	if err != nil {
		return
	}
	would := b.byTier(tiers, result.Shares)
	tier := 0
	for tier < len(has)-1 && would[tier] == has[tier] {
		tier++
	}
	if would[tier] <= has[tier] {
		return
	}
	name := tiers[tier].Name
	since := b.feasibleSince(name)
	if b.stable(since) {
		b.out.result = result
		return
	}
	b.awaitBack(name, since)
}

// byTier is how many replicas are in each tier.
func (b *Binder) byTier(tiers []filter.Affinity, shares []division.Share) []int64 {
	sums := make([]int64, len(tiers))
	for _, s := range shares {
		if tier := filter.TierOf(tiers, b.fleet, int(s.Row)); tier >= 0 {
			sums[tier] += s.Replicas
		}
	}
	return sums
}

// feasibleSince is since when a group or tier could have taken replicas back: now,
// where it could not so far.
func (b *Binder) feasibleSince(name string) time.Time {
	for _, e := range b.present.earlier {
		if e.AffinityName == name && e.FeasibleSince != nil {
			return *e.FeasibleSince
		}
	}
	return b.now
}

// stable reports whether that is long enough.
func (b *Binder) stable(since time.Time) bool { return !b.now.Before(since.Add(b.p.stabilization)) }

// awaitBack notes that a group or tier could take replicas back.
func (b *Binder) awaitBack(name string, since time.Time) {
	b.soon(since.Add(b.p.stabilization))
	utc := since.UTC()
	b.out.earlier = append(b.out.earlier, api.EarlierAffinity{AffinityName: name, FeasibleSince: &utc})
}

// remain keeps what fits of the present binding, because no group takes the
// workload.
func (b *Binder) remain(start int, lost int64) {
	kept := int64(0)
	for i := range b.places {
		m := &b.places[i]
		if m.state == memberStays || m.state == memberSuspended || m.state == memberUnwanted && b.fitsAny(m.row) {
			s := division.Share{Row: int32(m.row), Rank: b.fleet.NameRank()[m.row], Replicas: m.replicas}
			if b.p.replicated && b.p.replicas == 0 {
				s.Replicas = 0 // to run nothing no place is needed
			}
			b.out.Shares = append(b.out.Shares, s)
			kept += s.Replicas
		}
	}
	slices.SortFunc(b.out.Shares, func(a, b division.Share) int { return int(a.Rank) - int(b.Rank) })
	if len(b.out.Shares) > 0 {
		b.out.group = b.p.Group(b.present.affinity) // -1: they are of a group that is no more
	} else if b.p.Group(b.present.affinity) >= 0 {
		b.out.group = start
	}
	if b.p.divided() {
		b.out.lost = max(min(lost, b.p.replicas-kept), 0)
	}
}

// soon notes a moment at which time alone may change the answer.
func (b *Binder) soon(at time.Time) {
	if at.After(b.now) && (b.out.NextAt.IsZero() || at.Before(b.out.NextAt)) {
		b.out.NextAt = at
	}
}

// schedule notes when a toleration runs out that the binding rests on.
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
