package score

import "github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"

// steady prefers the clusters of the current decision.
type steady struct{ builtin }

// Reads implements prioritizer: the current decision is not part of the fleet.
func (steady) Reads() columns.Aspects { return 0 }

// Stay implements sticking.
func (steady) Stay() float64 { return 100 }

// Observe implements observable.
func (s steady) Observe(_ *Rating, _, _ int, current bool) (float64, observation) {
	if current {
		return s.Stay(), observation{}
	}
	return 0, observation{}
}
