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

// Reservations are the amounts that decisions hold on clusters until a capacity report newer than
// the decision arrives, which contains them. They are mutable: they belong to the goroutine that
// decides and must not be shared without a lock. The result of Freeze may be shared. The nil
// Reservations are empty.
type Reservations struct {
	holds *btree.BTreeG[entry]
	// sums are the counted holds by resource and row of the fleet last synced.
	sums map[string][]int64
	// frozen is the last result of Freeze, or nil if something has changed since. owned are the
	// columns that no frozen copy shares.
	frozen *Reservations
	owned  map[string]bool
}

// entry is a hold with its owner and cluster.
type entry struct {
	cluster string
	owner   api.Key
	*Hold
}

// Hold is what one placement or workload holds on one cluster. A hold in the ledger is never
// modified.
type Hold struct {
	Requests []Amount
	since    time.Time
	counted  bool // newer than the cluster's last capacity report
	// reported is the part of a growing hold that an earlier report contains, so that it is not
	// counted twice.
	reported []Amount
}

// count returns how much of an amount is not contained in a report.
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

// Of returns how much of a resource is held.
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

// Freeze returns an immutable snapshot. The copy is made only at the first change after it.
func (r *Reservations) Freeze() *Reservations {
	if r.frozen == nil {
		r.frozen = &Reservations{holds: r.holds.Clone(), sums: maps.Clone(r.sums)}
		clear(r.owned)
	}
	return r.frozen
}

// Thaw returns an independent ledger that starts from a frozen one. It may be called concurrently.
func (r *Reservations) Thaw() *Reservations {
	shared := *r.holds // Clone writes to its receiver
	return &Reservations{holds: shared.Clone(), sums: maps.Clone(r.sums), frozen: r, owned: map[string]bool{}}
}

// put adds a hold, replacing that of the same owner on the same cluster.
func (r *Reservations) put(h entry) {
	r.frozen = nil
	r.holds.ReplaceOrInsert(h)
}

// writable returns a column that has all rows of the fleet and that no frozen copy shares.
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

// Column returns the reserved amounts of a resource by row.
func (r *Reservations) Column(resource string) []int64 {
	if r == nil {
		return nil
	}
	return r.sums[resource]
}

// Held returns what a placement or workload holds on a cluster.
func (r *Reservations) Held(owner api.Key, cluster string) (*Hold, bool) {
	if r == nil {
		return nil, false
	}
	h, ok := r.holds.Get(entry{cluster: cluster, owner: owner})
	return h.Hold, ok
}

// Hold reserves amounts on a cluster for a placement, as of the given time. They replace what it
// held there before.
func (r *Reservations) Hold(f *columns.Fleet, placement api.Key, amounts Needs, cluster string, since time.Time) {
	r.Release(f, placement, cluster)
	r.hold(f, entry{cluster, placement, &Hold{Requests: amounts, since: since}})
}

// HoldReplicas reserves the needs of a workload's replicas on a cluster, as of the given time. If a
// capacity report contains replicas that were held before, only additional ones are reserved.
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

// Sync applies a new version of the fleet: the holds on every changed row are counted again,
// because a capacity report may be newer, and the row may belong to another cluster.
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

// charge calls the function for every amount of a hold that the cluster's last capacity report does
// not contain.
func (h *Hold) charge(charge func(resource string, amount int64)) {
	for _, q := range h.Requests {
		if h.counted || q.declared() {
			charge(q.Resource, h.count(q))
		}
	}
}

// Waiting reports whether any hold on a cluster counts until its next capacity report.
func (r *Reservations) Waiting(cluster string) bool {
	waiting := false
	r.holds.AscendGreaterOrEqual(entry{cluster: cluster}, func(h entry) bool {
		waiting = h.cluster == cluster && h.counted
		return h.cluster == cluster && !waiting
	})
	return waiting
}

// Available returns allocatable - allocated - reservations of every resource that the cluster
// reports, never below 0.
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

// At returns the value of a row in a column, which may be shorter than the fleet.
func At(column []int64, row int) int64 {
	if row < len(column) {
		return column[row]
	}
	return 0
}
