package binding

import (
	"math/bits"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// leastAllocated prefers sites with the largest free share.
type leastAllocated struct{}

func (leastAllocated) Name() string { return "SiteResourcesLeastAllocated" }

// Reads returns the amounts of resources and their use.
func (leastAllocated) Reads() columns.Aspects { return columns.Amounts }

// ratedAmounts are the rated resources and their weights. Names of the form <resource>/<type> are
// parts of one amount: storage is the sum over all types.
//
// Amounts are summed in units instead of thousandths, so that sums of large storage do not
// overflow.
var ratedAmounts = [...]struct {
	resource     string
	weight, unit int64
}{
	{columns.ResourceMemory, 10, 1000},
	{columns.ResourceCPU, 10, 1},
	{"storage", 5, 1000},
	{"floating_ips", 1, 1},
}

// Rate is the weighted mean of the free shares in percent, truncated. A resource that is not
// reported has a free share of 0. The raw value is the weighted sum.
func (leastAllocated) Rate(s *siteSeen) (score, raw int64) {
	weights := int64(0)
	for i := range ratedAmounts {
		weights += ratedAmounts[i].weight
		raw += ratedAmounts[i].weight * s.amounts[i].percent()
	}
	return raw / weights, raw
}

// percent returns the free share, truncated.
func (a siteAmount) percent() int64 {
	if a.capacity == 0 {
		return 0
	}
	high, low := bits.Mul64(min(a.free, a.capacity), 100)
	percent, _ := bits.Div64(high, low, a.capacity)
	return int64(percent)
}
