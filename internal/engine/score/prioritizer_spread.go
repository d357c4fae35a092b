package score

import "github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"

// evenness prefers clusters in domains of which few are chosen; see pickSpread. Its weight is the
// value of an even distribution over the domains of spread constraints.
type evenness struct{ builtin }

// Reads implements prioritizer: spread constraints declare what they read themselves.
func (evenness) Reads() columns.Aspects { return 0 }

// Evens implements spreading.
func (evenness) Evens() {}
