package ledger

import (
	"cmp"
	"maps"
	"strings"
	"time"

	"github.com/google/btree"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
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
	sums map[string]*amount.Column
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
func (h *Hold) count(r Amount) amount.Milli {
	if r.declared() {
		return r.Milli
	}
	for _, known := range h.reported {
		if known.Resource == r.Resource {
			return r.Milli.Minus(known.Milli).Rest()
		}
	}
	return r.Milli
}

// Of returns how much of a resource is held.
func (h *Hold) Of(resource string) amount.Milli {
	for _, r := range h.Requests {
		if r.Resource == resource {
			return r.Milli
		}
	}
	return amount.Milli{}
}

// NewReservations returns an empty ledger.
func NewReservations() *Reservations {
	return &Reservations{holds: btree.NewG(16, inOrder), sums: map[string]*amount.Column{}, owned: map[string]bool{}}
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
func (r *Reservations) writable(resource string, slots int) *amount.Column {
	r.frozen = nil
	column := r.sums[resource]
	if r.owned[resource] && column.Len() >= slots {
		return column
	}
	own := column.Copy(slots, amount.Milli{})
	r.sums[resource], r.owned[resource] = own, true
	return own
}

// Column returns the reserved amounts of a resource by row.
func (r *Reservations) Column(resource string) *amount.Column {
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
		h.charge(func(resource string, milli amount.Milli) {
			column := r.writable(resource, f.Slots())
			column.Set(row, column.At(row).Plus(milli))
		})
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
		h.charge(func(resource string, milli amount.Milli) {
			column := r.writable(resource, f.Slots())
			column.Set(row, column.At(row).Minus(milli))
		})
	}
}

// Sync applies a new version of the fleet: the holds on every changed row are counted again,
// because a capacity report may be newer, and the row may belong to another cluster.
func (r *Reservations) Sync(f *columns.Fleet, delta columns.Delta) {
	sums := map[string]amount.Milli{}
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
				h.charge(func(resource string, milli amount.Milli) { sums[resource] = sums[resource].Plus(milli) })
				return true
			})
		}
		for resource, column := range r.sums {
			if sum := sums[resource]; sum != At(column, row) {
				r.writable(resource, f.Slots()).Set(row, sum)
			}
			delete(sums, resource)
		}
		for resource, sum := range sums {
			r.writable(resource, f.Slots()).Set(row, sum)
		}
	}
	for _, h := range differ {
		r.put(h)
	}
}

// charge calls the function for every amount of a hold that the cluster's last capacity report does
// not contain.
func (h *Hold) charge(charge func(resource string, milli amount.Milli)) {
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
		if free := f.Uncommitted()[name].At(row); free.Reported() {
			out[name] = api.FormatMilli(name, free.Minus(At(reserved.Column(name), row)).Rest())
		}
	})
	return out
}

// At returns the value of a row in a column, which may be shorter than the fleet.
func At(column *amount.Column, row int) amount.Milli {
	if row < column.Len() {
		return column.At(row)
	}
	return amount.Milli{}
}
