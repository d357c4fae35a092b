package engine

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// prioritizer rates a cluster by what is known of it, whoever asks: from -100 to
// 100. Those that look at decisions (balance, steady, spread) are part of the
// strategy itself; see score_prioritizers.go.
type prioritizer interface {
	// Name is the prioritizer's name in explanations. Two that have the same name
	// rate the same.
	Name() string
	// figures finds what the prioritizer looks at in a fleet, once per pass.
	figures(f *Fleet) figures
	// rate is the score of a row. scale is the range of the amounts over the
	// candidates, of those that compare them.
	rate(f *Fleet, from *figures, scale *span, row int) float64
	// observe is what the score of a row rests on, for explanations.
	observe(f *Fleet, from *figures, row int) observation
}

// observation is what the score of a prioritizer rests on.
type observation struct {
	// raw is the figure as the user knows it, nil where there is none.
	raw *float64
	// metric is that whose value the figure is, nil where it is something else.
	metric *api.Key
	// reason says why there is no figure, or why it does not count; "" where it
	// counts.
	reason string
	// expiredAt is since when the figure does not count because it is too old.
	expiredAt *time.Time
}

// builtinPrioritizers are the built-in prioritizers by name. A new one is one
// file and one line here.
var builtinPrioritizers = map[string]prioritizer{
	api.PrioritizerAllocatableCPU:    resourceShare{name: api.PrioritizerAllocatableCPU, resource: "cpu"},
	api.PrioritizerAllocatableMemory: resourceShare{name: api.PrioritizerAllocatableMemory, resource: "memory"},
	api.PrioritizerAvailableCPU:      resourceShare{name: api.PrioritizerAvailableCPU, resource: "cpu", free: true},
	api.PrioritizerAvailableMemory:   resourceShare{name: api.PrioritizerAvailableMemory, resource: "memory", free: true},
}

// figures is where a prioritizer finds its figures by row; it uses one of them.
type figures struct {
	scores  []int8
	amounts []int64 // in thousandths, or unreported
}

// amount is the amount of a row.
func (x *figures) amount(row int) int64 {
	if row < len(x.amounts) {
		return x.amounts[row]
	}
	return unreported
}

// term is a prioritizer with its weight in a policy.
type term struct {
	prioritizer
	weight float64
}

// relative says that the term compares the candidates with each other, so that
// one more candidate may change the score of all.
func (t *term) relative() bool {
	_, ok := t.prioritizer.(resourceShare)
	return ok
}

// free is the resource of which the term rates what is left, "" for any other.
func (t *term) free() string {
	if share, ok := t.prioritizer.(resourceShare); ok && share.free {
		return share.resource
	}
	return ""
}
