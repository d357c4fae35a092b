package binding

import (
	"math/bits"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// leastAllocated prefers sites of which the largest part is free.
type leastAllocated struct{}

func (leastAllocated) Name() string { return "SiteResourcesLeastAllocated" }

// Reads are the amounts that there are and are in use.
func (leastAllocated) Reads() columns.Aspects { return columns.Amounts }

// ratedAmounts are the resources that are looked at, and how much each counts.
// Names with a / and a type after them are parts of one amount: storage is the sum
// over all types.
//
// Amounts are summed in units, of thousandths, so that sums of storage without an
// end do not overflow.
var ratedAmounts = [...]struct {
	resource     string
	weight, unit int64
}{
	{columns.ResourceMemory, 10, 1000},
	{columns.ResourceCPU, 10, 1},
	{"storage", 5, 1000},
	{"floating_ips", 1, 1},
}

// Rate is the mean of the free parts in percent, by weight and cut off. A resource
// that is not reported has nothing free. The figure is the sum before it is
// divided by the weights.
func (leastAllocated) Rate(s *siteSeen) (score, raw int64) {
	weights := int64(0)
	for i := range ratedAmounts {
		weights += ratedAmounts[i].weight
		raw += ratedAmounts[i].weight * s.amounts[i].percent()
	}
	return raw / weights, raw
}

// percent is the free part, cut off.
func (a siteAmount) percent() int64 {
	if a.capacity == 0 {
		return 0
	}
	high, low := bits.Mul64(min(a.free, a.capacity), 100)
	percent, _ := bits.Div64(high, low, a.capacity)
	return int64(percent)
}
