package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// resources demands that every requested amount is available: allocatable -
// allocated - reservations. A cluster of the present decision is not charged
// for the placement's own reservation.
type resources struct{}

func (resources) Name() string { return "resource_requests" }

func (resources) Compile(s *Spec, made []Check) ([]Check, error) {
	for _, name := range slices.Sorted(maps.Keys(s.Placement.ResourceRequests)) {
		text := s.Placement.ResourceRequests[name]
		milli, err := text.Milli()
		if err != nil {
			return made, fmt.Errorf("spec.resource_requests[%q]: %w", name, err)
		}
		made = append(made, &hasRoom{request: request{name, text, milli}})
	}
	return made, nil
}

// hasRoom asks for an amount of one resource.
type hasRoom struct {
	resources
	request
}

func (c *hasRoom) Key(k *Key) {
	k.Text("resource", c.resource)
	k.Text("amount", strconv.FormatInt(c.milli, 10))
	k.Words("text", string(c.text))
}

func (c *hasRoom) Reads() Aspects { return Amounts | Reserved }
func (c *hasRoom) On() string     { return c.resource }

func (c *hasRoom) Blame(n int) string {
	return fmt.Sprintf("%s less than %s of %s available", plural(n, "has", "have"), c.text, c.resource)
}

func (c *hasRoom) Apply(l *Look, keep Bitmap) {
	column, sums := l.fleet.uncommitted[c.resource], l.reserved.column(c.resource)
	keep.each(func(row int) {
		if row >= len(column) || column[row] == unreported || column[row]-at(sums, row) < c.milli {
			keep.clear(row)
		}
	})
}

func (c *hasRoom) Admits(l *Look, row int, current bool) bool {
	available, ok := c.available(l, row, current)
	return ok && available >= c.milli
}

func (c *hasRoom) Reason(l *Look, row int) string {
	_, current := l.reserved.held(*l.owner, l.fleet.name(row))
	because := ""
	if gone := goneBecause(l.fleet.rows[row].cluster, c.resource); gone != "" {
		because = ": " + gone
	}
	available, ok := c.available(l, row, current)
	if !ok {
		return fmt.Sprintf("reports no allocatable %s%s", c.resource, because)
	}
	return fmt.Sprintf("has %s of %s available, %s requested%s",
		api.FormatMilli(c.resource, max(available, 0)), c.resource, c.text, because)
}

// available is what the placement could use of the resource on a cluster.
func (c *hasRoom) available(l *Look, row int, current bool) (int64, bool) {
	column := l.fleet.uncommitted[c.resource]
	if row >= len(column) || column[row] == unreported {
		return 0, false
	}
	available := column[row] - at(l.reserved.column(c.resource), row)
	if current {
		// Its own use is charged either as a reservation or, where the cluster has
		// reported since, as part of what is allocated.
		if h, ok := l.reserved.held(*l.owner, l.fleet.name(row)); ok {
			own := h.of(c.resource)
			available = min(available, math.MaxInt64-own) + own
		}
	}
	return available, true
}
