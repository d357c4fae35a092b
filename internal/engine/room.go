package engine

import (
	"math"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/division"
)

// room measures for how many replicas of one workload clusters have room.
type room struct {
	fleet    *Fleet
	requests []roomColumn
	pods     roomColumn
}

// roomColumn is what is free of one resource by row, and how much a replica
// needs.
type roomColumn struct {
	resource                     string
	uncommitted, reserved, spare []int64
	milli                        int64
}

// Spare is what would be free in addition if other workloads left, by resource
// and row, in thousandths.
type Spare map[string][]int64

// measureNeeds prepares the measuring of room for replicas with some needs. It can be
// told of more room than there is, to see whether that would help.
func measureNeeds(f *Fleet, needs Needs, reserved *Reservations, spare Spare, scratch []roomColumn) room {
	column := func(resource string, milli int64) roomColumn {
		return roomColumn{resource, f.uncommitted[resource], reserved.column(resource), spare[resource], milli}
	}
	m := room{fleet: f, requests: scratch[:0], pods: column(resourcePods, 1000)}
	for _, r := range needs {
		m.requests = append(m.requests, column(r.resource, r.milli))
	}
	return m
}

// left is what is free of the resource; ok is false where the cluster does not
// report it. It is negative where more is promised than there is.
func (c *roomColumn) left(row int) (milli int64, ok bool) {
	if row >= len(c.uncommitted) || c.uncommitted[row] == unreported {
		return 0, false
	}
	left := c.uncommitted[row]
	if row < len(c.reserved) {
		left -= c.reserved[row]
	}
	if row < len(c.spare) {
		left += c.spare[row]
	}
	return left, true
}

// free is how many replicas a cluster has room for in addition to those it has:
// the smallest of left / request over all resources. Example: with 3.5 CPUs and
// 8 GiB left, and replicas of 1 CPU and 4 GiB, it is min(3, 2) = 2. A cluster that
// reports no amounts has room for anything, division.Unknown; one that reports
// others than the requested ones for nothing.
func (m *room) free(row int) int64 {
	if !m.fleet.rows[row].reports {
		return division.Unknown
	}
	best := int64(math.MaxInt64)
	for i := range m.requests {
		c := &m.requests[i]
		left, ok := c.left(row)
		if !ok || left < c.milli {
			return 0
		}
		if n := left / c.milli; n < best {
			best = n
		}
	}
	if left, ok := m.pods.left(row); ok {
		best = min(best, max(left/1000, 0))
	}
	if best == math.MaxInt64 {
		return division.Unknown // nothing that the workload needs is counted
	}
	return best
}

// total is how many replicas a cluster has room for when its own, which hold
// the given amounts, are counted as free. division.Unknown as free has it.
func (m *room) total(row int, own *hold) int64 {
	if !m.fleet.rows[row].reports {
		return division.Unknown
	}
	best := int64(math.MaxInt64)
	least := func(c *roomColumn) {
		left, ok := c.left(row)
		if !ok {
			if c != &m.pods {
				best = 0
			}
			return
		}
		if amount := own.of(c.resource); left < math.MaxInt64-amount {
			left += amount
		}
		best = min(best, max(left/c.milli, 0))
	}
	for i := range m.requests {
		least(&m.requests[i])
	}
	least(&m.pods)
	if best == math.MaxInt64 {
		return division.Unknown
	}
	return best
}

// AddHold adds to spare what replicas of a workload hold on a cluster.
func (s Spare) AddHold(f *Fleet, needs Needs, cluster string, replicas int64) {
	row, ok := f.Row(cluster)
	if !ok {
		return
	}
	for _, r := range needs.of(replicas) {
		column := s[r.resource]
		if column == nil {
			column = make([]int64, f.Slots())
			s[r.resource] = column
		}
		column[row] += r.milli
	}
}

// Subtract takes amounts on a cluster out of what is spare.
func (s Spare) Subtract(f *Fleet, cluster string, amounts map[string]int64) {
	row, ok := f.Row(cluster)
	if !ok {
		return
	}
	for resource, milli := range amounts {
		if column := s[resource]; row < len(column) {
			column[row] -= milli
		}
	}
}

// RowRoom is what is free on one cluster, by resource.
type RowRoom struct {
	reports bool
	left    map[string]int64
}

// RoomOn measures what is free on a cluster.
func RoomOn(f *Fleet, reserved *Reservations, row int) RowRoom {
	if row >= len(f.rows) || f.rows[row] == nil {
		return RowRoom{reports: true}
	}
	r := RowRoom{reports: f.rows[row].reports, left: make(map[string]int64, 4)}
	for resource, column := range f.uncommitted {
		c := roomColumn{resource: resource, uncommitted: column, reserved: reserved.column(resource)}
		if left, ok := c.left(row); ok {
			r.left[resource] = left
		}
	}
	return r
}

// For is how many replicas there is room for.
func (r RowRoom) For(needs Needs) int64 {
	if !r.reports {
		return math.MaxInt64
	}
	best := int64(math.MaxInt64)
	for i := range needs {
		best = min(best, max(r.left[needs[i].resource], 0)/needs[i].milli)
	}
	if left, ok := r.left[resourcePods]; ok {
		best = min(best, max(left, 0)/1000)
	}
	return best
}

// Grew reports whether there is more of anything than before.
func (r RowRoom) Grew(before RowRoom) bool {
	if r.reports != before.reports {
		return true
	}
	for resource, left := range r.left {
		if was, ok := before.left[resource]; !ok || left > was {
			return true
		}
	}
	return len(r.left) < len(before.left) // a limit fewer, as of pods
}
