package ledger

import (
	"cmp"
	"maps"
	"strings"
	"time"

	"github.com/google/btree"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// Reservations are the amounts that decisions hold on clusters until a capacity
// report newer than the decision arrives: from then on the report speaks for
// them. They are mutable; whoever decides owns them and must not share them between
// goroutines without a lock. What Freeze returns may be shared. The nil Reservations
// hold nothing.
type Reservations struct {
	holds *btree.BTreeG[entry]
	// Sums are the counted holds by resource and row of the fleet last synced.
	sums map[string][]int64
	// frozen is what Freeze last returned, nil once something differs; owned are the
	// columns that no frozen copy has.
	frozen *Reservations
	owned  map[string]bool
}

// entry is a hold with where and whose it is.
type entry struct {
	cluster string
	owner   api.Key
	*Hold
}

// Hold is what one placement or workload holds on one cluster. One that is in the
// ledger is never changed.
type Hold struct {
	Requests []Amount
	since    time.Time
	counted  bool // newer than the cluster's last capacity report
	// reported is the part of a growing hold that an earlier report contains: it
	// is not counted a second time.
	reported []Amount
}

// count is how much of an amount is not in a report.
func (h *Hold) count(r Amount) int64 {
	if r.declared() {
		return r.Milli
	}
	for _, known := range h.reported {
		if known.Resource == r.Resource {
			return max(r.Milli-known.Milli, 0)
		}
	}
	return r.Milli
}

// Of is what is held of a resource.
func (h *Hold) Of(resource string) int64 {
	for _, r := range h.Requests {
		if r.Resource == resource {
			return r.Milli
		}
	}
	return 0
}

// NewReservations returns an empty ledger.
func NewReservations() *Reservations {
	return &Reservations{holds: btree.NewG(16, inOrder), sums: map[string][]int64{}, owned: map[string]bool{}}
}

func inOrder(a, b entry) bool {
	return cmp.Or(strings.Compare(a.cluster, b.cluster), a.owner.Compare(b.owner)) < 0
}

// Freeze returns what is held now. It never changes, and costs nothing until the
// first change after it.
func (r *Reservations) Freeze() *Reservations {
	if r.frozen == nil {
		r.frozen = &Reservations{holds: r.holds.Clone(), sums: maps.Clone(r.sums)}
		clear(r.owned)
	}
	return r.frozen
}

// Thaw returns a ledger that begins with what a frozen one holds, and goes its own
// way from there. It may be called from many goroutines.
func (r *Reservations) Thaw() *Reservations {
	shared := *r.holds // Clone writes to what it clones
	return &Reservations{holds: shared.Clone(), sums: maps.Clone(r.sums), frozen: r, owned: map[string]bool{}}
}

// put takes in a hold, in place of that of the same owner on the same cluster.
func (r *Reservations) put(h entry) {
	r.frozen = nil
	r.holds.ReplaceOrInsert(h)
}

// writable is a column that has every row of a fleet and that no frozen copy has.
func (r *Reservations) writable(resource string, slots int) []int64 {
	r.frozen = nil
	column := r.sums[resource]
	if r.owned[resource] && len(column) >= slots {
		return column
	}
	own := make([]int64, max(slots, len(column)))
	copy(own, column)
	r.sums[resource], r.owned[resource] = own, true
	return own
}

// Column is the reserved amounts of a resource by row.
func (r *Reservations) Column(resource string) []int64 {
	if r == nil {
		return nil
	}
	return r.sums[resource]
}

// Held is what a placement or workload holds on a cluster.
func (r *Reservations) Held(owner api.Key, cluster string) (*Hold, bool) {
	if r == nil {
		return nil, false
	}
	h, ok := r.holds.Get(entry{cluster: cluster, owner: owner})
	return h.Hold, ok
}

// Hold reserves amounts on a cluster for a placement, as of a moment; they
// replace what it held there.
func (r *Reservations) Hold(f *columns.Fleet, placement api.Key, amounts Needs, cluster string, since time.Time) {
	r.Release(f, placement, cluster)
	r.hold(f, entry{cluster, placement, &Hold{Requests: amounts, since: since}})
}

// HoldReplicas reserves what replicas of a workload need on a cluster, as of a
// moment. Where some were held before and a capacity report contains them, only
// those that are new are reserved.
func (r *Reservations) HoldReplicas(f *columns.Fleet, workload api.Key, needs Needs, cluster string, replicas int64, since time.Time) {
	h := &Hold{Requests: needs.Of(replicas), since: since}
	if before, ok := r.Held(workload, cluster); ok {
		h.reported = before.reported
		if _, known := f.Row(cluster); known && !before.counted {
			h.reported = before.Requests
		}
		r.Release(f, workload, cluster)
	}
	r.hold(f, entry{cluster, workload, h})
}

func (r *Reservations) hold(f *columns.Fleet, h entry) {
	if len(h.Requests) == 0 {
		return
	}
	if row, ok := f.Row(h.cluster); ok {
		h.counted = !f.Rows()[row].Knows(h.since)
		h.charge(func(resource string, amount int64) { r.writable(resource, f.Slots())[row] += amount })
	}
	r.put(h)
}

// Release ends what a placement holds on a cluster.
func (r *Reservations) Release(f *columns.Fleet, placement api.Key, cluster string) {
	h, ok := r.Held(placement, cluster)
	if !ok {
		return
	}
	r.frozen = nil
	r.holds.Delete(entry{cluster: cluster, owner: placement})
	if row, ok := f.Row(cluster); ok {
		h.charge(func(resource string, amount int64) { r.writable(resource, f.Slots())[row] -= amount })
	}
}

// Sync follows a fleet to its next version: the holds on every changed row are
// counted again, because a capacity report may have overtaken them and a row
// may belong to another cluster now.
func (r *Reservations) Sync(f *columns.Fleet, delta columns.Delta) {
	sums := map[string]int64{}
	var differ []entry
	for _, row := range delta.Rows {
		clear(sums)
		if f.Rows()[row] != nil {
			name := f.Name(row)
			r.holds.AscendGreaterOrEqual(entry{cluster: name}, func(h entry) bool {
				if h.cluster != name {
					return false
				}
				known := f.Rows()[row].Knows(h.since)
				if h.counted == known || known && h.reported != nil {
					next := *h.Hold
					next.counted = !known
					if known {
						next.reported = nil
					}
					h.Hold = &next
					differ = append(differ, h)
				}
				h.charge(func(resource string, amount int64) { sums[resource] += amount })
				return true
			})
		}
		for resource, column := range r.sums {
			if sum := sums[resource]; sum != At(column, row) {
				r.writable(resource, f.Slots())[row] = sum
			}
			delete(sums, resource)
		}
		for resource, sum := range sums {
			r.writable(resource, f.Slots())[row] = sum
		}
	}
	for _, h := range differ {
		r.put(h)
	}
}

// charge tells of every amount of a hold that the cluster's last capacity report
// does not contain.
func (h *Hold) charge(charge func(resource string, amount int64)) {
	for _, q := range h.Requests {
		if h.counted || q.declared() {
			charge(q.Resource, h.count(q))
		}
	}
}

// Waiting reports whether anything is held on a cluster until its next capacity report.
func (r *Reservations) Waiting(cluster string) bool {
	waiting := false
	r.holds.AscendGreaterOrEqual(entry{cluster: cluster}, func(h entry) bool {
		waiting = h.cluster == cluster && h.counted
		return h.cluster == cluster && !waiting
	})
	return waiting
}

// Available is allocatable - allocated - reservations of every resource the
// cluster reports, never below zero.
func Available(f *columns.Fleet, reserved *Reservations, row int) api.Quantities {
	if f.Cluster(row) == nil {
		return nil
	}
	out := api.Quantities{}
	columns.ResourcesOf(f.Cluster(row), func(name string) {
		if free := f.Uncommitted()[name][row]; free != columns.Unreported {
			out[name] = api.FormatMilli(name, max(free-At(reserved.Column(name), row), 0))
		}
	})
	return out
}

// Counted are the amounts that a workload's hold on a cluster takes from what is
// available there: nothing where a capacity report contains it.
func (r *Reservations) Counted(owner api.Key, cluster string) map[string]int64 {
	h, ok := r.Held(owner, cluster)
	if !ok || !h.counted {
		return nil
	}
	out := make(map[string]int64, len(h.Requests))
	for _, q := range h.Requests {
		out[q.Resource] = h.count(q)
	}
	return out
}

// At is the amount in a row of a column, which may be shorter than the fleet.
func At(column []int64, row int) int64 {
	if row < len(column) {
		return column[row]
	}
	return 0
}
