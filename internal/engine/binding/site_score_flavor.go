package binding

import "github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"

// flavorPosition prefers sites that have room for the flavors that come first in
// the list.
type flavorPosition struct{}

func (flavorPosition) Name() string { return "Flavor" }

// Reads are the sizes of machines.
func (flavorPosition) Reads() columns.Aspects { return columns.Flavors }

// Rate is 10 divided by the position of the flavor, cut off: 10, 5, 3, 2, 2, 1. The
// figure is the position, from 1 on.
func (flavorPosition) Rate(s *siteSeen) (score, raw int64) {
	if s.position < 0 {
		return 0, 0
	}
	return positionScore(int64(s.position) + 1), int64(s.position) + 1
}

// positionScore is the mean over the machines that are needed, of which each has
// the flavor at a position.
func positionScore(positions ...int64) int64 {
	sum := int64(0)
	for _, position := range positions {
		sum += 10 / position
	}
	return sum / int64(len(positions))
}
