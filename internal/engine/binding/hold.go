package binding

import (
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/division"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/movement"
)

// Only a binding that answers its spec and its policy, fully, is held: what a user writes is done at
// once, and what a workload that waits for room gets at last is no move.
// Held are replicas on clusters that still fit; those of lost clusters, and replicas that are
// missing, go where they would go anyway.

func (b *Binder) mayHold() bool {
	return b.present.Holding != nil && b.present.answered && !b.present.Pending && len(b.present.clusters) > 0
}

// holdFresh returns what holds the fresh binding that was asked for, nil if nothing does. It is made
// as a whole, or not.
func (b *Binder) holdFresh() *movement.Held {
	if !b.present.fresh || !b.out.Complete || !b.mayHold() {
		return nil
	}
	held, _ := b.whole(b.out.result.Shares, api.CauseReschedule)
	return held
}

// holdBack undoes that an earlier group or tier has taken replicas back, if that must not be done
// now. It is done as a whole, or not. asked is the binding before. moved says that it was done: then
// nothing else is held.
func (b *Binder) holdBack(asked *Binding) (moved bool) {
	if b.present.fresh || !asked.Complete || !b.mayHold() ||
		b.out.group == asked.group && slices.Equal(b.out.result.Shares, asked.result.Shares) {
		return false
	}
	held, n := b.whole(b.out.result.Shares, api.CauseFailBack)
	if held == nil {
		b.out.Moved = n
		return true
	}
	b.out.group, b.out.result, b.out.Complete, b.out.tried = asked.group, asked.result, asked.Complete, asked.tried
	b.awaitBack(b.back, b.feasibleSince(b.back)) // it has not to wait once more
	b.out.Held = held
	b.soon(held.Again)
	return false
}

// whole returns what holds the moves to some shares, and, if nothing does, how many there are.
func (b *Binder) whole(shares []division.Share, reason api.CauseType) (*movement.Held, int64) {
	h := b.heldShares(shares, reason)
	if len(h.moves) == 0 {
		return nil, 0
	}
	made, held := b.present.Holding().Take(h.moves)
	if held == nil {
		return nil, movement.Count(h.moves, made)
	}
	held.Would = b.names(shares)
	return held, 0
}

// names returns the names of the clusters that have replicas.
func (b *Binder) names(shares []division.Share) []string {
	names := make([]string, 0, len(shares))
	for _, s := range shares {
		if s.Replicas > 0 || !b.p.replicated || b.p.replicas == 0 {
			names = append(names, b.fleet.Name(int(s.Row)))
		}
	}
	return names
}

// heldShares are the moves from the present binding to another one.
type heldShares struct {
	// stays are the present shares on clusters that still fit.
	stays []division.Share
	// leaving are those of them that would have fewer replicas, in the order of the moves, and
	// further the clusters that would only be added, after them.
	leaving, further []division.Share
	moves            []movement.Move
	// lost is how many clusters are lost, whose places others take.
	lost int
}

// heldShares returns the moves from the present binding to some shares.
func (b *Binder) heldShares(shares []division.Share, reason api.CauseType) (h heldShares) {
	if b.p.replicated && b.p.replicas == 0 {
		return h // nothing runs
	}
	target := func(row int32) (n int64, ok bool) {
		for _, s := range shares {
			if s.Row == row {
				return s.Replicas, true
			}
		}
		return 0, false
	}
	for i := range b.places {
		m := &b.places[i]
		s := division.Share{Row: int32(m.row), Rank: b.fleet.NameRank()[m.row], Replicas: m.replicas}
		n, ok := target(s.Row)
		// One that no longer fits the group of before may fit the one that is chosen now.
		if m.state != memberStays && m.state != memberSuspended && (m.state != memberUnwanted || !ok) || m.evicted != "" || m.restored {
			continue
		}
		h.stays = append(h.stays, s)
		if !ok && (s.Replicas > 0 || !b.p.replicated) || b.p.divided() && n < s.Replicas {
			h.leaving = append(h.leaving, s)
		}
	}
	h.lost = max(len(b.present.clusters)-len(h.stays), 0)
	var to []*api.Cluster
	for _, s := range shares {
		i := slices.IndexFunc(h.stays, func(x division.Share) bool { return x.Row == s.Row })
		if i >= 0 && (!b.p.divided() || s.Replicas <= h.stays[i].Replicas) {
			continue
		}
		to = append(to, b.fleet.Cluster(int(s.Row)))
		if i < 0 && !b.p.divided() {
			h.further = append(h.further, s)
		}
	}
	for _, s := range h.leaving {
		h.moves = append(h.moves, movement.Move{From: b.fleet.Cluster(int(s.Row)), To: to, Reason: reason})
	}
	// Those that take the place of a cluster that is lost or left are no moves of their own.
	h.further = h.further[min(h.lost+len(h.leaving), len(h.further)):]
	for _, s := range h.further {
		h.moves = append(h.moves, movement.Move{To: []*api.Cluster{b.fleet.Cluster(int(s.Row))}, Reason: reason})
	}
	return h
}

// holdShares takes back those moves of a binding that must not be made now. Under spread
// constraints, and on sites, a binding moves as a whole, because a part of the moves may violate
// them. If nothing but the whole complies with the policy, nothing is held.
func (b *Binder) holdShares() {
	if !b.out.Complete || b.present.fresh || !b.mayHold() {
		return
	}
	reason := api.CauseScore
	if b.p.divided() {
		reason = api.CauseCapacity
	}
	target := b.out.Shares
	h := b.heldShares(target, reason)
	if len(h.moves) == 0 {
		return
	}
	made, held := b.present.Holding().Take(h.moves)
	if held == nil {
		b.out.Moved = movement.Count(h.moves, made)
		return
	}
	if len(b.p.constraints) > 0 || b.p.strategy.inOneRegion() {
		clear(made)
	}
	shares := b.after(&h, target, made)
	if !b.complies(shares) && slices.Contains(made, true) {
		clear(made)
		shares = b.after(&h, target, made)
	}
	if !b.complies(shares) {
		b.out.Moved = movement.Count(h.moves, slices.Repeat([]bool{true}, len(h.moves)))
		return
	}
	b.out.Moved = movement.Count(h.moves, made)
	held.Would = b.names(target)
	b.out.Held = held
	b.soon(held.Again)
	b.out.Shares = shares
}

// after returns the shares after the moves that are made.
func (b *Binder) after(h *heldShares, target []division.Share, made []bool) []division.Share {
	shares := b.fewer
	if b.p.divided() {
		shares = b.partly
	}
	list := shares(h, target, made)
	slices.SortFunc(list, func(a, b division.Share) int { return int(a.Rank) - int(b.Rank) })
	return list
}

// complies reports whether shares comply with the rules of the policy, as those do that are divided.
func (b *Binder) complies(shares []division.Share) bool {
	for _, s := range shares {
		for i := range b.p.limits {
			l := &b.p.limits[i]
			if s.Replicas > 0 && (s.Replicas < l.min || s.Replicas > l.max) && l.affinity.Matches(b.fleet.Cluster(int(s.Row))) {
				return false
			}
		}
	}
	request := b.request()
	return request.Complies(shares)
}

// partly returns the present shares after the moves that are made: what is left, lost or missing
// goes to the clusters that would have more, first to those that have some.
func (b *Binder) partly(h *heldShares, target []division.Share, made []bool) []division.Share {
	shares := slices.Clone(h.stays)
	at := func(row int32) int {
		return slices.IndexFunc(shares, func(s division.Share) bool { return s.Row == row })
	}
	place := b.p.replicas
	for i, s := range h.leaving {
		if made[i] {
			j := slices.IndexFunc(target, func(t division.Share) bool { return t.Row == s.Row })
			if shares[at(s.Row)].Replicas = 0; j >= 0 {
				shares[at(s.Row)].Replicas = target[j].Replicas
			}
		}
	}
	for _, s := range shares {
		place -= s.Replicas
	}
	for _, t := range target { // those that are there already
		if i := at(t.Row); i >= 0 && place > 0 && t.Replicas > shares[i].Replicas {
			n := min(place, t.Replicas-shares[i].Replicas)
			shares[i].Replicas += n
			place -= n
		}
	}
	for _, t := range target {
		if at(t.Row) >= 0 {
			continue
		}
		if n := min(place, t.Replicas); n > 0 || t.Replicas == 0 {
			shares = append(shares, division.Share{Row: t.Row, Rank: t.Rank, Replicas: max(n, 0)})
			place -= max(n, 0)
		}
	}
	return slices.DeleteFunc(shares, func(s division.Share) bool {
		return s.Replicas == 0 && !slices.ContainsFunc(target, func(t division.Share) bool { return t.Row == s.Row })
	})
}

// fewer returns the clusters after the moves that are made, for a workload that has all its replicas
// on each.
func (b *Binder) fewer(h *heldShares, target []division.Share, made []bool) []division.Share {
	left := 0
	shares := slices.DeleteFunc(slices.Clone(h.stays), func(s division.Share) bool {
		i := slices.IndexFunc(h.leaving, func(l division.Share) bool { return l.Row == s.Row })
		if i >= 0 && made[i] {
			left++
			return true
		}
		return false
	})
	places := h.lost + left
	for _, t := range target {
		if slices.ContainsFunc(shares, func(s division.Share) bool { return s.Row == t.Row }) {
			continue
		}
		further := slices.IndexFunc(h.further, func(f division.Share) bool { return f.Row == t.Row })
		switch {
		case further >= 0 && made[len(h.leaving)+further]:
			shares = append(shares, t)
		case further < 0 && places > 0:
			shares = append(shares, t)
			places--
		}
	}
	for i := range shares {
		shares[i].Replicas = target[0].Replicas
	}
	return shares
}
