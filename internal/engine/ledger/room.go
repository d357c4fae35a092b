package ledger

import (
	"math"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// Unknown is the room of a cluster that does not report its amounts: anything fits.
const Unknown = -1

// Room computes how many replicas of one workload fit on clusters.
type Room struct {
	fleet    *columns.Fleet
	Requests []RoomColumn
	pods     RoomColumn
	small    bool // all amounts are small
}

// RoomColumn holds the available amount of one resource by row, and how much a replica needs.
type RoomColumn struct {
	small                        smallColumn // if all amounts are
	resource                     string
	uncommitted, reserved, spare *amount.Column
	milli                        amount.Milli
}

// smallColumn is a RoomColumn of small amounts, which are faster to compute with: the sum of three
// does not overflow.
type smallColumn struct {
	uncommitted, reserved, spare []int64
	milli                        int64
}

// prepare fills in small, and reports whether all amounts are.
func (c *RoomColumn) prepare() bool {
	uncommitted, isSmall := c.uncommitted.Small()
	reserved, held := c.reserved.Small()
	spare, more := c.spare.Small()
	milli, each := c.milli.Small()
	c.small = smallColumn{uncommitted, reserved, spare, milli}
	return isSmall && held && more && each
}

// left is the left of the RoomColumn.
func (c *smallColumn) left(row int) (milli int64, ok bool) {
	if row >= len(c.uncommitted) || c.uncommitted[row] < 0 {
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

// Spare is what would become available if other workloads left, by resource and row, in
// thousandths.
type Spare map[string]*amount.Column

// MeasureNeeds prepares a Room for replicas with the given needs. spare adds room that does not
// exist yet, to find out whether it would help.
func MeasureNeeds(f *columns.Fleet, needs Needs, reserved *Reservations, spare Spare, scratch []RoomColumn) Room {
	m := Room{fleet: f, Requests: scratch[:0], small: true}
	column := func(resource string, milli amount.Milli) RoomColumn {
		c := RoomColumn{resource: resource, uncommitted: f.Uncommitted()[resource], reserved: reserved.Column(resource), spare: spare[resource], milli: milli}
		m.small = c.prepare() && m.small
		return c
	}
	m.pods = column(columns.ResourcePods, amount.Unit)
	for _, r := range needs {
		m.Requests = append(m.Requests, column(r.Resource, r.Milli))
	}
	return m
}

// left returns how much of the resource is available. ok is false if the cluster does not report
// it. It is negative if the resource is overcommitted.
func (c *RoomColumn) left(row int) (milli amount.Milli, ok bool) {
	if row >= c.uncommitted.Len() || !c.uncommitted.At(row).Reported() {
		return amount.Milli{}, false
	}
	return c.uncommitted.At(row).Minus(At(c.reserved, row)).Plus(At(c.spare, row)), true
}

// Free returns how many more replicas fit on a cluster: the minimum of left / request over all
// resources. Example: with 3.5 CPUs and 8 GiB left, and replicas of 1 CPU and 4 GiB, it is min(3,
// 2) = 2. If a cluster reports no amounts, it is Unknown: anything fits. If it reports other
// resources than the requested ones, nothing fits.
func (m *Room) Free(row int) int64 {
	if !m.fleet.Rows()[row].Reports {
		return Unknown
	}
	if !m.small {
		return m.freeWide(row)
	}
	best := int64(math.MaxInt64)
	for i := range m.Requests {
		c := &m.Requests[i].small
		left, ok := c.left(row)
		if !ok || left < c.milli {
			return 0
		}
		if n := left / c.milli; n < best {
			best = n
		}
	}
	if left, ok := m.pods.small.left(row); ok {
		best = min(best, max(left/1000, 0))
	}
	if best == math.MaxInt64 {
		return Unknown // the workload needs nothing that is measured
	}
	return min(best, amount.Most) // as Fits
}

// freeWide is Free for amounts of any size.
func (m *Room) freeWide(row int) int64 {
	best := int64(math.MaxInt64)
	for i := range m.Requests {
		left, ok := m.Requests[i].left(row)
		if !ok {
			return 0
		}
		best = min(best, left.Fits(m.Requests[i].milli))
	}
	if left, ok := m.pods.left(row); ok {
		best = min(best, left.Fits(amount.Unit))
	}
	if best == math.MaxInt64 {
		return Unknown
	}
	return best
}

// Total returns how many replicas fit on a cluster if those that the workload holds there count as
// free. It is Unknown if Free is.
func (m *Room) Total(row int, own *Hold) int64 {
	if !m.fleet.Rows()[row].Reports {
		return Unknown
	}
	best := int64(math.MaxInt64)
	least := func(c *RoomColumn) {
		left, ok := c.left(row)
		if !ok {
			if c != &m.pods {
				best = 0
			}
			return
		}
		best = min(best, left.Plus(own.Of(c.resource)).Fits(c.milli))
	}
	for i := range m.Requests {
		least(&m.Requests[i])
	}
	least(&m.pods)
	if best == math.MaxInt64 {
		return Unknown
	}
	return best
}

// AddHold adds what replicas of a workload hold on a cluster.
func (s Spare) AddHold(f *columns.Fleet, needs Needs, cluster string, replicas int64) {
	row, ok := f.Row(cluster)
	if !ok {
		return
	}
	for _, r := range needs.Of(replicas) {
		column := s[r.Resource]
		if column == nil {
			column = column.Copy(f.Slots(), amount.Milli{})
			s[r.Resource] = column
		}
		column.Set(row, column.At(row).Plus(r.Milli))
	}
}

// Subtract removes amounts on a cluster.
func (s Spare) Subtract(f *columns.Fleet, cluster string, amounts map[string]amount.Milli) {
	row, ok := f.Row(cluster)
	if !ok {
		return
	}
	for resource, milli := range amounts {
		if column := s[resource]; row < column.Len() {
			column.Set(row, column.At(row).Minus(milli))
		}
	}
}

// RowRoom is what is available on one cluster, by resource.
type RowRoom struct {
	reports bool
	left    map[string]amount.Milli
}

// RoomOn measures what is available on a cluster.
func RoomOn(f *columns.Fleet, reserved *Reservations, row int) RowRoom {
	if row >= len(f.Rows()) || f.Rows()[row] == nil {
		return RowRoom{reports: true}
	}
	r := RowRoom{reports: f.Rows()[row].Reports, left: make(map[string]amount.Milli, 4)}
	for resource, column := range f.Uncommitted() {
		c := RoomColumn{resource: resource, uncommitted: column, reserved: reserved.Column(resource)}
		if left, ok := c.left(row); ok {
			r.left[resource] = left
		}
	}
	return r
}

// For returns how many replicas fit.
func (r RowRoom) For(needs Needs) int64 {
	if !r.reports {
		return math.MaxInt64
	}
	best := int64(math.MaxInt64)
	for i := range needs {
		best = min(best, r.left[needs[i].Resource].Fits(needs[i].Milli))
	}
	if left, ok := r.left[columns.ResourcePods]; ok {
		best = min(best, left.Fits(amount.Unit))
	}
	return best
}

// Overcommitted reports whether more of a resource is held than there is.
func (r RowRoom) Overcommitted() bool {
	for _, left := range r.left {
		if left.Sign() < 0 {
			return true
		}
	}
	return false
}

// Grew reports whether there is more of anything than before.
func (r RowRoom) Grew(before RowRoom) bool {
	if r.reports != before.reports {
		return true
	}
	for resource, left := range r.left {
		if was, ok := before.left[resource]; !ok || was.Less(left) {
			return true
		}
	}
	return len(r.left) < len(before.left) // a limit was removed, such as that of pods
}
