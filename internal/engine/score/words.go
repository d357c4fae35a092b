package score

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
)

// All is the number of clusters of a query that wants every cluster that fits.
const All = -1

// Words are what the conditions of a placement say: users of another scheduler keep
// the words they know.
type Words struct {
	// Satisfied says whether the placement has what it wants.
	Satisfied func(t Tally) api.Condition
	// Scheduled says that the sentence about clusters that are missing stands in the
	// condition Scheduled, as Satisfied has another's wording.
	Scheduled bool
	// WellReason and WellMessage are those of Misconfigured where nothing is.
	WellReason, WellMessage string
}

// Tally is what conditions are about.
type Tally struct {
	// Wanted is how many clusters to choose, or All; Chosen how many there are.
	Wanted, Chosen int
	Fleet          *columns.Fleet
	In             filter.Confining // nil: every cluster set
	Explain        func() string    // nil: nothing is missing
}

// Missing is how many clusters are wanted that are not there.
func (t Tally) Missing() int {
	if t.Wanted == All {
		return 0
	}
	return t.Wanted - t.Chosen
}

// Why is the sentence about clusters that are missing.
func (t Tally) Why() string {
	if t.Explain == nil {
		return ""
	}
	return t.Explain()
}

// sets are the cluster sets that are asked for, those of them that can be used, and
// how many clusters they have together at most: none is what matters.
func (t Tally) sets() (asked, usable []string, members int) {
	if t.In == nil {
		return nil, nil, 0
	}
	usable, members = t.In.Usable(t.Fleet)
	return t.In.Sets(), usable, members
}
