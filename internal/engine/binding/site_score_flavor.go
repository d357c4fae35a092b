package binding

import "github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"

// flavorPosition prefers sites that have room for the flavors listed first.
type flavorPosition struct{}

func (flavorPosition) Name() string { return "Flavor" }

// Reads returns the machine sizes.
func (flavorPosition) Reads() columns.Aspects { return columns.Flavors }

// Rate is 10 divided by the position of the flavor, truncated: 10, 5, 3, 2, 2, 1. The raw value is
// the position, starting at 1.
func (flavorPosition) Rate(s *siteSeen) (score, raw int64) {
	if s.position < 0 {
		return 0, 0
	}
	return positionScore(int64(s.position) + 1), int64(s.position) + 1
}

// positionScore returns the mean over the required machines, given the position of each one's
// flavor.
func positionScore(positions ...int64) int64 {
	sum := int64(0)
	for _, position := range positions {
		sum += 10 / position
	}
	return sum / int64(len(positions))
}
