package filter

import (
	"fmt"
	"maps"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// resources requires that every requested amount is available: allocatable - allocated -
// reservations. On a cluster of the current decision, the placement's own reservation is not
// subtracted.
type resources struct{}

func (resources) Name() string { return "resource_requests" }

func (resources) Compile(s *Spec, made []Check) ([]Check, error) {
	for _, name := range slices.Sorted(maps.Keys(s.Placement.ResourceRequests)) {
		text := s.Placement.ResourceRequests[name]
		milli, err := text.Milli()
		if err != nil {
			return made, fmt.Errorf("spec.resource_requests[%q]: %w", name, err)
		}
		if milli == (amount.Milli{}) {
			continue // asks for nothing
		}
		made = append(made, &hasRoom{Amount: ledger.Amount{Resource: name, Text: text, Milli: milli}})
	}
	return made, nil
}

// hasRoom requires an amount of one resource.
type hasRoom struct {
	resources
	ledger.Amount
}

// Reserves implements Reserving.
func (c *hasRoom) Reserves() ledger.Amount { return c.Amount }

func (c *hasRoom) Key(k key.Writer) {
	k.Text("resource", c.Resource)
	k.Text("amount", c.Milli.String())
	k.Words("text", string(c.Text))
}

func (c *hasRoom) Reads() columns.Aspects { return columns.Amounts | columns.Reserved }
func (c *hasRoom) On() string             { return c.Resource }

func (c *hasRoom) Rejection(n int) string {
	return fmt.Sprintf("%s less than %s of %s available", Plural(n, "has", "have"), c.Text, c.Resource)
}

func (c *hasRoom) Apply(l *Evaluation, keep columns.Bitmap) {
	column, sums := l.Fleet.Uncommitted()[c.Resource], l.Reserved.Column(c.Resource)
	keep.Each(func(row int) {
		if row >= column.Len() || !column.At(row).Reported() || column.At(row).Minus(ledger.At(sums, row)).Less(c.Milli) {
			keep.Clear(row)
		}
	})
}

func (c *hasRoom) Admits(l *Evaluation, row int, current bool) bool {
	available, ok := c.available(l, row, current)
	return ok && !available.Less(c.Milli)
}

func (c *hasRoom) Reason(l *Evaluation, row int) string {
	_, current := l.Reserved.Held(*l.Owner, l.Fleet.Name(row))
	because := ""
	if gone := columns.GoneBecause(l.Fleet.Cluster(row), c.Resource); gone != "" {
		because = ": " + gone
	}
	available, ok := c.available(l, row, current)
	if !ok {
		return fmt.Sprintf("reports no allocatable %s%s", c.Resource, because)
	}
	return fmt.Sprintf("has %s of %s available, %s requested%s",
		api.FormatMilli(c.Resource, available.Rest()), c.Resource, c.Text, because)
}

// available returns how much of the resource the placement could use on a cluster.
func (c *hasRoom) available(l *Evaluation, row int, current bool) (amount.Milli, bool) {
	column := l.Fleet.Uncommitted()[c.Resource]
	if row >= column.Len() || !column.At(row).Reported() {
		return amount.Milli{}, false
	}
	available := column.At(row).Minus(ledger.At(l.Reserved.Column(c.Resource), row))
	if current {
		// Its own use is counted either as a reservation or, if the cluster has reported since, as
		// part of the allocated amount.
		if h, ok := l.Reserved.Held(*l.Owner, l.Fleet.Name(row)); ok {
			available = available.Plus(h.Of(c.Resource))
		}
	}
	return available, true
}
