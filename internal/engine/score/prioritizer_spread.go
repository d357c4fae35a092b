package score

import "github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"

// evenness prefers clusters in domains of which few are chosen; see pickSpread. Its
// weight says what that is worth where spread constraints divide the clusters.
type evenness struct{ builtin }

// Reads implements prioritizer: the domains are those of the spread constraints, and
// what those look at they say themselves.
func (evenness) Reads() columns.Aspects { return 0 }

// Evens implements evening.
func (evenness) Evens() {}
