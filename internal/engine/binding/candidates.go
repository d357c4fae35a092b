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

// The ledger and the division must use the same number for clusters that report no amounts;
// otherwise this does not compile.
var _ = [1]struct{}{}[ledger.Unknown-division.Unknown]

// gather lists the candidates of the mask in name order.
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

// markPresent sets what clusters of the present binding hold.
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
		unwell := member.replicas > 0 && b.unwell(member.cluster) // health reports are about replicas
		if b.p.divided() && (member.state == memberSuspended || b.fleet.Paused().Has(member.row) || unwell) {
			c.Free = 0 // running replicas stay, no new ones are added
		}
	}
}

// remeasure counts the workload's replicas on a cluster as free if the workload is to be placed anew:
// its spec has changed, so their size may have, it has not found room since, or a lost cluster is to
// be taken back. Otherwise running replicas stay, even if the cluster has shrunk.
func (b *Binder) remeasure(c *division.Candidate, member *memberRow, m *ledger.Room) {
	if b.present.observed && !b.present.pending && member.state != memberLeaving || c.Free == division.Unknown {
		return
	}
	own, ok := b.others.Reserved.Held(b.p.key, member.cluster)
	if !ok {
		return
	}
	if total := m.Total(member.row, own); total != division.Unknown {
		c.Assigned = min(c.Assigned, total)
		c.Free = total - c.Assigned
	}
}

// weigh sets the static weight of every candidate: the largest of those that match.
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

// bind sets the limits of the candidates that a limit matches.
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

// selection returns a bitmap to select into; the first half of b.scratch is another one.
func (b *Binder) selection() columns.Bitmap {
	words := len(b.mask)
	if len(b.scratch) < 2*words {
		b.scratch = make(columns.Bitmap, 2*words)
	}
	return b.scratch[words : 2*words]
}

// request returns the request to the divider.
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

// groupsBy groups the clusters by a field or label. The result is kept while the fleet is the same.
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

// groupsOfValues groups the rows by value, in the order of the values.
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

// Room returns how many replicas of a workload fit on a cluster, including its current ones and
// what would become available according to spare. ok is false if that is unknown.
func Room(f *columns.Fleet, p *Propagation, reserved *ledger.Reservations, spare ledger.Spare, row int) (replicas int64, ok bool) {
	m := p.measure(f, reserved, spare, nil)
	own, ok := reserved.Held(p.key, f.Name(row))
	if !ok {
		own = &ledger.Hold{}
	}
	n := m.Total(row, own)
	return n, n != division.Unknown
}

// measure prepares a Room. spare adds room that does not exist yet, to find out whether it would
// help.
func (p *Propagation) measure(f *columns.Fleet, reserved *ledger.Reservations, spare ledger.Spare, scratch []ledger.RoomColumn) ledger.Room {
	return ledger.MeasureNeeds(f, p.needs, reserved, spare, scratch)
}
