package engine

import (
	"fmt"
	"math"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// resources demands that every requested amount is available: allocatable -
// allocated - reservations. A cluster of the present decision is not charged
// for the placement's own reservation.
type resources struct{}

func (resources) Name() string                   { return "resource_requests" }
func (resources) Grounds(q *Query) int           { return len(q.requests) }
func (resources) On(q *Query, ground int) string { return q.requests[ground].resource }

func (resources) Blame(q *Query, ground, n int) string {
	r := q.requests[ground]
	return fmt.Sprintf("%s less than %s of %s available", plural(n, "has", "have"), r.text, r.resource)
}

func (resources) Apply(p *Pass, ground int, keep Bitmap) {
	r := p.query.requests[ground]
	column, sums := p.fleet.uncommitted[r.resource], p.reserved.column(r.resource)
	keep.each(func(row int) {
		if row >= len(column) || column[row] == unreported || column[row]-at(sums, row) < r.milli {
			keep.clear(row)
		}
	})
}

func (resources) Admits(p *Pass, ground, row int, current bool) bool {
	available, ok := p.available(ground, row, current)
	return ok && available >= p.query.requests[ground].milli
}

func (resources) Reason(p *Pass, ground, row int) string {
	r := p.query.requests[ground]
	_, current := p.reserved.held(p.query.Key, p.fleet.name(row))
	because := ""
	if gone := goneBecause(p.fleet.rows[row].cluster, r.resource); gone != "" {
		because = ": " + gone
	}
	available, ok := p.available(ground, row, current)
	if !ok {
		return fmt.Sprintf("reports no allocatable %s%s", r.resource, because)
	}
	return fmt.Sprintf("has %s of %s available, %s requested%s",
		api.FormatMilli(r.resource, max(available, 0)), r.resource, r.text, because)
}

// available is what the placement could use of a resource on a cluster.
func (p *Pass) available(ground, row int, current bool) (int64, bool) {
	r := p.query.requests[ground]
	column := p.fleet.uncommitted[r.resource]
	if row >= len(column) || column[row] == unreported {
		return 0, false
	}
	available := column[row] - at(p.reserved.column(r.resource), row)
	if current {
		// Its own use is charged either as a reservation or, where the cluster has
		// reported since, as part of what is allocated.
		if h, ok := p.reserved.held(p.query.Key, p.fleet.name(row)); ok {
			own := h.of(r.resource)
			available = min(available, math.MaxInt64-own) + own
		}
	}
	return available, true
}

func at(column []int64, row int) int64 {
	if row < len(column) {
		return column[row]
	}
	return 0
}
