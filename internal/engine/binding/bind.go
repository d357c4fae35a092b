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
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/window"
)

// Present is the current binding of a workload.
type Present struct {
	clusters  []api.WorkloadCluster
	affinity  string
	evictions []api.Eviction
	health    []api.ClusterHealth
	earlier   []api.EarlierAffinity
	lost      int64
	// observed says that the binding was made for the current spec.
	observed bool
	// pending says that the present binding does not meet the request fully.
	pending bool
	// fresh is an explicit request for a new binding: the first group is tried first, and replicas
	// are divided anew.
	fresh bool
	// settled says that the binding answers the current spec and policy. namespace and labels are those of the workload,
	// which move windows select by.
	settled   bool
	namespace string
	labels    map[string]string
}

// NewPresent returns the binding in a workload's status. policy is the one that the workload
// follows, or nil if it has its own placement.
func NewPresent(w *api.Workload, policy *api.PropagationPolicy) Present {
	s := &w.Status
	scheduled := api.FindCondition(s.Conditions, api.ConditionScheduled)
	answered, fresh := s.Answers(&w.Metadata)
	return Present{
		pending:  scheduled != nil && scheduled.Status == api.ConditionFalse,
		clusters: s.Clusters, affinity: s.ObservedAffinity, evictions: s.Evictions, health: s.Health,
		earlier: s.EarlierAffinities, lost: s.LostReplicas, observed: answered, fresh: fresh,
		settled: answered && !fresh && AnswersPolicy(s, policy), namespace: w.Metadata.Namespace, labels: w.Metadata.Labels,
	}
}

// AnswersPolicy reports whether a binding was made for a policy as it is now; nil is none.
func AnswersPolicy(s *api.WorkloadStatus, policy *api.PropagationPolicy) bool {
	path, uid, generation := policyOf(policy)
	return s.Policy == path && s.PolicyUID == uid && s.PolicyGeneration == generation
}

// policyOf returns how a status identifies the policy that the workload follows. The policy may be
// nil.
func policyOf(policy *api.PropagationPolicy) (path, uid string, generation int64) {
	if policy == nil {
		return "", "", 0
	}
	return policy.Path(), policy.Metadata.UID, policy.Metadata.Generation
}

// tried is the result of trying one affinity group.
type tried struct {
	group int
	err   error // nil: it has room for the workload
}

// Binding is the result for a Propagation.
type Binding struct {
	// group is the affinity group of the clusters, or -1 if none has been chosen yet.
	group  int
	shares []division.Share
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
	// Overflowed says that replicas are in overflow tiers. They return to earlier tiers when there
	// is room.
	Overflowed bool
	// held says that a move window keeps replicas where they are, and frozen that it keeps all of them.
	held, frozen bool

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
	window  *window.Hold // that keeps what does not have to move where it is; nil = nothing does
	// refilling says that the division tries to move replicas back to earlier tiers.
	refilling bool
}

// memberRow is one cluster of the present binding, or one that the workload is leaving.
type memberRow struct {
	row      int
	replicas int64
	cluster  string
	state    memberState
	evicted  string // reason of the eviction
}

// memberState is the state of a cluster of the present binding.
type memberState uint8

const (
	// memberStays: the cluster fits, or is treated as if it did.
	memberStays memberState = iota
	// memberSuspended: the cluster is offline, but so are too many others.
	memberSuspended
	// memberLost: the cluster is offline or has a taint that evicts.
	memberLost
	// memberFailed: the application has been unhealthy on the cluster for too long.
	memberFailed
	// memberLeaving: an eviction is in progress.
	memberLeaving
	// memberUnwanted: the cluster no longer fits for other reasons, such as a change of the policy
	// or of its labels.
	memberUnwanted
)

// Bind decides where a workload runs at the given time. views are those of the queries of its
// affinity groups, in order. spare may be nil.
//
// The rules (9 and 10 of docs/architecture.md): groups are tried in order, starting with the observed one,
// or with the first one for an explicit reschedule; the first group that has room for the whole
// workload gets it. If a group only lacks room for additional replicas, running ones stay and the
// workload does not move to the next group. If a cluster is lost and the rest of its group lacks
// room for its replicas, the next group is tried. An earlier group that could have held the
// workload for the whole stabilization window takes it back. Earlier tiers of a group do the same
// with replicas that overflowed.
func (b *Binder) Bind(f *columns.Fleet, p *Propagation, views []*placement.View, others ledger.Others, spare ledger.Spare, bound Present, now time.Time) Binding {
	b.fleet, b.p, b.views, b.others, b.spare, b.present, b.now = f, p, views, others, spare, bound, now
	b.out, b.window = Binding{group: -1}, nil
	if bound.settled && !bound.pending {
		b.window = f.Windows().Held(bound.namespace, bound.labels, now)
	}
	observed := p.Group(bound.affinity)
	start := max(observed, 0)
	if bound.fresh {
		start = 0
	}
	lost := b.judge(observed)
	b.askInOrder(start, !bound.fresh && observed >= 0 && lost == 0 && b.any(memberStays) && !b.any(memberUnwanted))
	b.takeBack(observed)
	if !b.out.Complete && bound.fresh && len(bound.clusters) > 0 {
		// A new division is impossible: keep the binding as if none had been requested, but for the
		// evictions, which end.
		bound.fresh, bound.evictions = false, nil
		return b.Bind(f, p, views, others, spare, bound, now)
	}
	if b.out.Complete {
		b.out.shares, b.out.Cramped = b.out.result.Shares, b.out.result.Cramped
	} else {
		b.out.Lack = leastLack(b.out.tried)
		b.remain(start, lost)
	}
	b.hold(observed, lost)
	if b.out.Cramped || b.out.Overflowed {
		b.out.BackLack = 0 // any additional room may change the result
	}
	b.p.strategy.complete(b)
	b.evict(observed)
	b.schedule()
	return b.out
}

// hold keeps the replicas where they are, if a move window says so and none of them has to move: all run where they may,
// and the workload has what it wants. Copies on further clusters take nothing away.
func (b *Binder) hold(observed int, lost int64) {
	if b.window == nil || observed < 0 || lost > 0 {
		return
	}
	chosen := make(map[int32]int64, len(b.out.shares))
	for _, s := range b.out.shares {
		chosen[s.Row] = s.Replicas
	}
	var stay []division.Share
	total, leaves := int64(0), false
	for i := range b.places {
		switch m := &b.places[i]; m.state {
		case memberStays, memberSuspended:
			stay = append(stay, division.Share{Row: int32(m.row), Rank: b.fleet.NameRank()[m.row], Replicas: m.replicas})
			total += m.replicas
			replicas, there := chosen[int32(m.row)]
			leaves = leaves || !there || replicas < m.replicas
		case memberLeaving:
		default:
			return
		}
	}
	if !leaves || b.p.divided() && total != b.p.replicas || !b.mayHold() {
		return
	}
	slices.SortFunc(stay, func(a, c division.Share) int { return int(a.Rank) - int(c.Rank) })
	b.out.group, b.out.shares, b.out.frozen = observed, stay, true
}

// mayHold reports whether a move window keeps replicas from moving: not while the workload lacks any.
func (b *Binder) mayHold() bool {
	if b.window == nil || !b.out.Complete {
		return false
	}
	b.out.held = true
	b.soon(b.window.Next)
	return true
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

// takeBack moves the workload back to an earlier group, or within its group to earlier tiers, if
// these have been able to hold it for long enough.
func (b *Binder) takeBack(observed int) {
	if back, result := b.failBack(observed); back >= 0 {
		b.out.tried = append(b.out.tried, tried{back, nil})
		b.out.group, b.out.result, b.out.Complete = back, result, true
	} else if b.out.Complete {
		b.refill(b.out.group)
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

// judge determines the state of every cluster of the present binding, and of those that the
// workload is leaving, and returns how many replicas are lost. If the observed group no longer
// exists, a cluster need only fit any group.
func (b *Binder) judge(observed int) (lost int64) {
	b.places = b.places[:0]
	pass := placement.PassOf(b.fleet, b.p.Groups[max(observed, 0)].Query, b.others.Reserved)
	lost = b.judgeMembers(&pass, observed) + b.present.lost
	first := pass // of the group that is tried first
	if b.present.fresh {
		first = placement.PassOf(b.fleet, b.p.Groups[0].Query, b.others.Reserved)
	}
	b.judgeEvictions(&first, lost > 0)
	if !b.p.divided() {
		return 0
	}
	return lost
}

// judgeMembers is judge for the clusters of the present binding. pass is that of the observed
// group.
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

// stateOf returns the state of a cluster of the present binding.
func (b *Binder) stateOf(pass *placement.Pass, c *api.WorkloadCluster, row int, braked bool, observed int) memberState {
	switch {
	case !endures(pass, row):
		if braked && offlineOnly(pass, row) {
			return memberSuspended
		}
		return memberLost
	case (c.Replicas > 0 || !b.p.replicated) && b.failed(c.Name): // also if the cluster is in another group
		return memberFailed
	case pass.Admits(row, true) || observed < 0 && b.fitsAny(row):
		return memberStays
	}
	return memberUnwanted
}

// judgeEvictions is judge for the clusters that the workload is leaving, which an explicit reschedule
// ends. first is the pass of the group that is tried first. With restore, the workload stays on a lost cluster that came back
// before a replacement was found.
func (b *Binder) judgeEvictions(first *placement.Pass, restore bool) {
	for _, e := range b.present.evictions {
		row, ok := b.fleet.Row(e.Cluster)
		if !ok || b.present.fresh || expired(e, b.now) {
			continue
		}
		m := memberRow{row: row, replicas: e.Replicas, cluster: e.Cluster, state: memberLeaving, evicted: e.Reason}
		switch {
		case restore && e.Reason == api.EvictedClusterLost && first.Admits(row, true):
			m.state, m.evicted = memberStays, ""
		case e.PurgeMode != api.PurgeNever && b.recovered(first, e, row):
			continue
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

// try tries to place the whole workload in one affinity group. For a fail-back, lost clusters that
// are back count as candidates.
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

// failBack tries the groups before the observed one, records since when each could hold the
// workload, and returns the first one that could for long enough, or -1.
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
		if !b.out.Complete || b.stable(since) { // an incomplete workload does not wait
			return g, result
		}
		b.awaitBack(b.p.Groups[g].Name, since)
	}
	return -1, division.Result{}
}

// refill checks whether replicas in overflow tiers fit into earlier tiers, records since when, and
// moves them back if that is long enough.
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

// byTier returns how many replicas are in each tier.
func (b *Binder) byTier(tiers []filter.Affinity, shares []division.Share) []int64 {
	sums := make([]int64, len(tiers))
	for _, s := range shares {
		if tier := filter.TierOf(tiers, b.fleet, int(s.Row)); tier >= 0 {
			sums[tier] += s.Replicas
		}
	}
	return sums
}

// feasibleSince returns since when a group or tier could have taken replicas back: now, if it could
// not before.
func (b *Binder) feasibleSince(name string) time.Time {
	for _, e := range b.present.earlier {
		if e.AffinityName == name && e.FeasibleSince != nil {
			return *e.FeasibleSince
		}
	}
	return b.now
}

// stable reports whether the stabilization time has passed, and no move window holds the workload.
func (b *Binder) stable(since time.Time) bool {
	return !b.now.Before(since.Add(b.p.stabilization)) && !b.mayHold()
}

// awaitBack records that a group or tier could take replicas back.
func (b *Binder) awaitBack(name string, since time.Time) {
	b.soon(since.Add(b.p.stabilization))
	utc := since.UTC()
	b.out.earlier = append(b.out.earlier, api.EarlierAffinity{AffinityName: name, FeasibleSince: &utc})
}

// remain keeps the part of the present binding that fits, because no group can hold the workload.
func (b *Binder) remain(start int, lost int64) {
	kept := int64(0)
	for i := range b.places {
		m := &b.places[i]
		if m.state == memberStays || m.state == memberSuspended || m.state == memberUnwanted && b.fitsAny(m.row) {
			s := division.Share{Row: int32(m.row), Rank: b.fleet.NameRank()[m.row], Replicas: m.replicas}
			if b.p.replicated {
				s.Replicas = min(s.Replicas, b.p.replicas)
			}
			b.out.shares = append(b.out.shares, s)
			kept += s.Replicas
		}
	}
	slices.SortFunc(b.out.shares, func(a, b division.Share) int { return int(a.Rank) - int(b.Rank) })
	if b.p.divided() && kept > b.p.replicas {
		b.removeSurplus()
		kept = b.p.replicas
	}
	if len(b.out.shares) > 0 {
		b.out.group = b.p.Group(b.present.affinity) // -1: the group of the clusters no longer exists
	} else if b.p.Group(b.present.affinity) >= 0 {
		b.out.group = start
	}
	if b.p.divided() {
		b.out.lost = max(min(lost, b.p.replicas-kept), 0)
	}
}

// removeSurplus removes the replicas that are no longer wanted from what remains, as if nothing else
// were asked for.
func (b *Binder) removeSurplus() {
	r := division.Request{Replicas: b.p.replicas, Replicated: true, Mode: b.p.mode, Descending: b.p.descending}
	if r.Mode == division.Static {
		r.Mode = division.Dynamic // weights would move what runs
	}
	tiers := b.p.Groups[max(b.p.Group(b.present.affinity), 0)].tiers
	b.candidates = b.candidates[:0]
	for _, s := range b.out.shares {
		c := division.Candidate{Row: s.Row, Rank: s.Rank, Present: true, Assigned: s.Replicas, Max: division.Unlimited}
		if len(tiers) > 1 {
			c.Tier = int32(max(filter.TierOf(tiers, b.fleet, int(s.Row)), 0))
		}
		b.candidates = append(b.candidates, c)
	}
	if result, err := b.divider.Divide(&r, b.candidates); err == nil {
		b.out.shares = result.Shares
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
	for _, s := range b.out.shares {
		if at := pass.Stays(int(s.Row)); !at.IsZero() {
			b.soon(at)
		}
	}
}
