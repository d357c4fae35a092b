package score

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
)

// All is the number of clusters of a query that asks for every cluster that fits.
const All = -1

// Words is the wording of a placement's conditions: users of another scheduler see its familiar
// texts.
type Words struct {
	// Satisfied returns the condition that says whether the placement has what it asks for.
	Satisfied func(t Tally) api.Condition
	// Scheduled says that the sentence about missing clusters is in the Scheduled condition,
	// because Satisfied has the other scheduler's wording.
	Scheduled bool
	// WellReason and WellMessage are used by Misconfigured if nothing is wrong.
	WellReason, WellMessage string
}

// Tally is the data that conditions are made from.
type Tally struct {
	// Wanted is the number of clusters to choose, or All; Chosen is the number chosen.
	Wanted, Chosen int
	Fleet          *columns.Fleet
	In             filter.Confining // nil: no restriction to cluster sets
	Explain        func() string    // nil: nothing is missing
}

// Missing returns how many clusters are missing.
func (t Tally) Missing() int {
	if t.Wanted == All {
		return 0
	}
	return t.Wanted - t.Chosen
}

// Why returns the sentence about missing clusters.
func (t Tally) Why() string {
	if t.Explain == nil {
		return ""
	}
	return t.Explain()
}

// sets returns the requested cluster sets, the usable ones, and an upper bound on the number of
// their clusters. Callers only distinguish 0 from more.
func (t Tally) sets() (asked, usable []string, members int) {
	if t.In == nil {
		return nil, nil, 0
	}
	usable, members = t.In.Usable(t.Fleet)
	return t.In.Sets(), usable, members
}
