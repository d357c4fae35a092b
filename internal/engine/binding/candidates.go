package binding

import (
	"maps"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/division"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// What the ledger and the division say of a cluster that reports no amounts is the
// same number; this does not compile where it is not.
var _ = [1]struct{}{}[ledger.Unknown-division.Unknown]

// gather lists the candidates of the mask, in the order of their names.
func (b *Binder) gather(group *AffinityGroup) {
	f := b.fleet
	m := b.p.measure(f, b.others.Reserved, b.spare, b.columns)
	b.columns = m.Requests
	b.candidates = slices.Grow(b.candidates[:0], b.mask.Count())
	measured := b.p.replicated
	for rank, row := range f.ByName() {
		if !b.mask.Has(int(row)) {
			continue
		}
		free := int64(division.Unknown)
		if measured {
			free = m.Free(int(row))
		}
		b.candidates = append(b.candidates, division.Candidate{
			Row: row, Rank: int32(rank), Free: free, Weight: 1, Max: division.Unlimited,
		})
	}
	b.markPresent(&m)
	if len(group.tiers) > 1 {
		for i := range b.candidates {
			b.candidates[i].Tier = int32(filter.TierOf(group.tiers, f, int(b.candidates[i].Row)))
		}
	}
	if len(b.p.weights) > 0 {
		b.weigh()
	}
	for i := range b.p.limits {
		b.bind(&b.p.limits[i])
	}
}

// markPresent says what clusters of the present binding hold.
func (b *Binder) markPresent(m *ledger.Room) {
	for i := range b.places {
		member := &b.places[i]
		if member.state == memberLeaving && !b.mask.Has(member.row) {
			continue
		}
		at, ok := slices.BinarySearchFunc(b.candidates, b.fleet.NameRank()[member.row], func(c division.Candidate, rank int32) int {
			return int(c.Rank) - int(rank)
		})
		if !ok {
			continue
		}
		c := &b.candidates[at]
		c.Present, c.Assigned = true, member.replicas
		if !b.p.replicated {
			c.Assigned = 0
			continue
		}
		b.remeasure(c, member, m)
		unwell := member.replicas > 0 && b.unwell(member.cluster) // what was reported is about replicas
		if b.p.divided() && (member.state == memberSuspended || b.fleet.Paused().Has(member.row) || unwell) {
			c.Free = 0 // what it has stays, it gets no more
		}
	}
}

// remeasure counts what a cluster has of the workload as free where replicas have
// become larger or smaller than those that it was chosen for, or did so and found
// no place since, and where it is to be taken back after it was lost. Otherwise
// what runs stays, also where a cluster has shrunk.
func (b *Binder) remeasure(c *division.Candidate, member *memberRow, m *ledger.Room) {
	anew := b.present.Pending || member.state == memberLeaving
	if b.present.answered && !anew || c.Free == division.Unknown {
		return
	}
	own, ok := b.others.Reserved.Held(b.p.key, member.cluster)
	if !ok || !anew && slices.EqualFunc(own.Requests, b.p.needs.Of(member.replicas), ledger.SameAmount) {
		return
	}
	if total := m.Total(member.row, own); total != division.Unknown {
		c.Assigned = min(c.Assigned, total)
		c.Free = total - c.Assigned
	}
}

// weigh gives every candidate its static weight: the largest of those that match.
func (b *Binder) weigh() {
	selected := b.selection()
	weights := slices.Grow(b.weights[:0], b.fleet.Slots())[:b.fleet.Slots()]
	clear(weights)
	for i := range b.p.weights {
		w := &b.p.weights[i]
		copy(selected, b.mask)
		w.affinity.SelectInto(b.fleet, selected, b.scratch[:len(selected)])
		selected.Each(func(row int) { weights[row] = max(weights[row], w.weight) })
	}
	for i := range b.candidates {
		c := &b.candidates[i]
		c.Weight = weights[c.Row]
	}
	b.weights = weights
}

// bind bounds the replicas of the candidates that a limit matches.
func (b *Binder) bind(l *limit) {
	selected := b.selection()
	copy(selected, b.mask)
	l.affinity.SelectInto(b.fleet, selected, b.scratch[:len(selected)])
	for i := range b.candidates {
		if c := &b.candidates[i]; selected.Has(int(c.Row)) {
			c.Min, c.Max = max(c.Min, l.min), min(c.Max, l.max)
		}
	}
}

// selection is a bitmap to select into; the first half of b.scratch is another.
func (b *Binder) selection() columns.Bitmap {
	words := len(b.mask)
	if len(b.scratch) < 2*words {
		b.scratch = make(columns.Bitmap, 2*words)
	}
	return b.scratch[words : 2*words]
}

// request is the question to the divider.
func (b *Binder) request() division.Request {
	r := division.Request{
		Replicas: b.p.replicas, Replicated: b.p.replicated, Mode: b.p.mode,
		Fresh: b.present.fresh, Descending: b.p.descending, Empty: b.p.empty, Bare: len(b.p.needs) == 0, Refill: b.refilling, Regions: b.sharesRegion(),
	}
	for i := range b.p.constraints {
		c := &b.p.constraints[i]
		bound := division.Constraint{By: c.By(), Min: 1, Max: division.Unlimited}
		if c.MinGroups != nil {
			bound.Min = *c.MinGroups
		}
		if groups, ok := c.Max(); ok {
			bound.Max = groups
		}
		if c.SpreadByField != api.GroupByCluster {
			bound.Groups = b.groupsBy(c)
		}
		r.Constraints = append(r.Constraints, bound)
	}
	return r
}

// groupsBy tells the clusters apart by a field or a label. It is kept while the
// fleet is the same.
func (b *Binder) groupsBy(c *api.GroupConstraint) *division.Groups {
	if b.grouped != b.fleet {
		b.grouped, b.groups = b.fleet, map[string]*division.Groups{}
	}
	by := c.By()
	out, ok := b.groups[by]
	if !ok {
		values := b.fleet.Places()[c.SpreadByField]
		if c.SpreadByLabel != "" {
			values = b.fleet.Labels().Of(c.SpreadByLabel).Values
		}
		out = groupsOfValues(values, b.fleet.Slots())
		b.groups[by] = out
	}
	return out
}

// groupsOfValues makes a group of the rows with the same value, in the order of
// the values.
func groupsOfValues(values map[string]*columns.RowSet, slots int) *division.Groups {
	out := &division.Groups{Names: slices.Sorted(maps.Keys(values)), Of: make([]int32, slots)}
	for i := range out.Of {
		out.Of[i] = -1
	}
	for i, value := range out.Names {
		values[value].Each(func(row int) {
			if out.Of[row] < 0 {
				out.Of[row] = int32(i)
				return
			}
			if out.Several == nil {
				out.Several = map[int32][]int32{}
			}
			at := int32(row)
			if len(out.Several[at]) == 0 {
				out.Several[at] = []int32{out.Of[row]}
			}
			out.Several[at] = append(out.Several[at], int32(i))
		})
	}
	return out
}

// Room is for how many replicas of a workload a cluster has room, those it has and
// what would be spare included; ok is false where that is not known.
func Room(f *columns.Fleet, p *Propagation, reserved *ledger.Reservations, spare ledger.Spare, row int) (replicas int64, ok bool) {
	m := p.measure(f, reserved, spare, nil)
	own, ok := reserved.Held(p.key, f.Name(row))
	if !ok {
		own = &ledger.Hold{}
	}
	n := m.Total(row, own)
	return n, n != division.Unknown
}

// measure prepares the measuring of room. It can be told of more room than there
// is, to see whether that would help.
func (p *Propagation) measure(f *columns.Fleet, reserved *ledger.Reservations, spare ledger.Spare, scratch []ledger.RoomColumn) ledger.Room {
	return ledger.MeasureNeeds(f, p.needs, reserved, spare, scratch)
}
