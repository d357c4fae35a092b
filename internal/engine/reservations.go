package engine

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Reservations are the amounts that decisions hold on clusters until a capacity
// report newer than the decision arrives: from then on the report speaks for
// them. It is the one mutable thing in the engine; whoever decides owns it and
// must not share it between goroutines without a lock. The nil Reservations
// hold nothing.
type Reservations struct {
	clusters map[string]map[api.Key]*hold
	// sums are the counted holds by resource and row of the fleet last synced.
	sums map[string][]int64
}

// hold is what one placement or workload holds on one cluster.
type hold struct {
	requests []request
	since    time.Time
	counted  bool // newer than the cluster's last capacity report
	// reported is the part of a growing hold that an earlier report contains: it
	// is not counted a second time.
	reported []request
}

// count is how much of an amount is not in a report.
func (h *hold) count(r request) int64 {
	if r.declared() {
		return r.milli
	}
	for _, known := range h.reported {
		if known.resource == r.resource {
			return max(r.milli-known.milli, 0)
		}
	}
	return r.milli
}

func (h *hold) of(resource string) int64 {
	for _, r := range h.requests {
		if r.resource == resource {
			return r.milli
		}
	}
	return 0
}

// NewReservations returns an empty ledger.
func NewReservations() *Reservations {
	return &Reservations{clusters: map[string]map[api.Key]*hold{}, sums: map[string][]int64{}}
}

// column is the reserved amounts of a resource by row.
func (r *Reservations) column(resource string) []int64 {
	if r == nil {
		return nil
	}
	return r.sums[resource]
}

func (r *Reservations) held(placement api.Key, cluster string) (*hold, bool) {
	if r == nil {
		return nil, false
	}
	h, ok := r.clusters[cluster][placement]
	return h, ok
}

// Hold reserves amounts on a cluster for a placement, as of a moment; they
// replace what it held there.
func (r *Reservations) Hold(f *Fleet, placement api.Key, amounts Needs, cluster string, since time.Time) {
	r.Release(f, placement, cluster)
	r.hold(f, placement, cluster, &hold{requests: amounts, since: since})
}

// HoldReplicas reserves what replicas of a workload need on a cluster, as of a
// moment. Where some were held before and a capacity report contains them, only
// those that are new are reserved.
func (r *Reservations) HoldReplicas(f *Fleet, workload api.Key, needs Needs, cluster string, replicas int64, since time.Time) {
	h := &hold{requests: needs.of(replicas), since: since}
	if before, ok := r.held(workload, cluster); ok {
		h.reported = before.reported
		if _, known := f.Row(cluster); known && !before.counted {
			h.reported = before.requests
		}
		r.Release(f, workload, cluster)
	}
	r.hold(f, workload, cluster, h)
}

func (r *Reservations) hold(f *Fleet, owner api.Key, cluster string, h *hold) {
	if len(h.requests) == 0 {
		return
	}
	holds := r.clusters[cluster]
	if holds == nil {
		holds = map[api.Key]*hold{}
		r.clusters[cluster] = holds
	}
	holds[owner] = h
	if row, ok := f.Row(cluster); ok {
		r.count(row, h, f.rows[row].knows(h.since), f.Slots())
	}
}

// Release ends what a placement holds on a cluster.
func (r *Reservations) Release(f *Fleet, placement api.Key, cluster string) {
	holds := r.clusters[cluster]
	h, ok := holds[placement]
	if !ok {
		return
	}
	delete(holds, placement)
	if len(holds) == 0 {
		delete(r.clusters, cluster)
	}
	if row, ok := f.Row(cluster); ok {
		for _, q := range h.requests {
			if h.counted || q.declared() {
				r.sums[q.resource][row] -= h.count(q)
			}
		}
	}
}

// Sync follows a fleet to its next version: the holds on every changed row are
// counted again, because a capacity report may have overtaken them and a row
// may belong to another cluster now.
func (r *Reservations) Sync(f *Fleet, delta Delta) {
	for _, row := range delta.Rows {
		for resource, column := range r.sums {
			if len(column) < f.Slots() {
				column = append(column, make([]int64, f.Slots()-len(column))...)
				r.sums[resource] = column
			}
			column[row] = 0
		}
		if f.rows[row] == nil {
			continue
		}
		for _, h := range r.clusters[f.name(row)] {
			known := f.rows[row].knows(h.since)
			if r.count(row, h, known, f.Slots()); known {
				h.reported = nil
			}
		}
	}
}

// count adds a hold to the sums, but for what the cluster's last capacity report
// contains.
func (r *Reservations) count(row int, h *hold, known bool, slots int) {
	h.counted = !known
	for _, q := range h.requests {
		if known && !q.declared() {
			continue
		}
		column := r.sums[q.resource]
		if len(column) < slots {
			column = append(column, make([]int64, slots-len(column))...)
			r.sums[q.resource] = column
		}
		column[row] += h.count(q)
	}
}

// Available is allocatable - allocated - reservations of every resource the
// cluster reports, never below zero.
func Available(f *Fleet, reserved *Reservations, row int) api.Quantities {
	if f.Cluster(row) == nil {
		return nil
	}
	out := api.Quantities{}
	resourcesOf(f.Cluster(row), func(name string) {
		if free := f.uncommitted[name][row]; free != unreported {
			out[name] = api.FormatMilli(name, max(free-at(reserved.column(name), row), 0))
		}
	})
	return out
}

// Counted are the amounts that a workload's hold on a cluster takes from what is
// available there: nothing where a capacity report contains it.
func (r *Reservations) Counted(owner api.Key, cluster string) map[string]int64 {
	h, ok := r.held(owner, cluster)
	if !ok || !h.counted {
		return nil
	}
	out := make(map[string]int64, len(h.requests))
	for _, q := range h.requests {
		out[q.resource] = h.count(q)
	}
	return out
}

// at is the amount in a row of a column, which may be shorter than the fleet.
func at(column []int64, row int) int64 {
	if row < len(column) {
		return column[row]
	}
	return 0
}
