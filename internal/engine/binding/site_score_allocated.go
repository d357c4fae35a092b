package binding

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// leastAllocated prefers sites with the largest free share.
type leastAllocated struct{}

func (leastAllocated) Name() string { return "SiteResourcesLeastAllocated" }

// Reads returns the amounts of resources and their use.
func (leastAllocated) Reads() columns.Aspects { return columns.Amounts }

// ratedAmounts are the rated resources and their weights. Names of the form <resource>/<type> are
// parts of one amount: storage is the sum over all types.
var ratedAmounts = [...]struct {
	resource string
	weight   int64
}{
	{columns.ResourceMemory, 10},
	{columns.ResourceCPU, 10},
	{"storage", 5},
	{"floating_ips", 1},
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
	if !a.capacity.Positive() {
		return 0
	}
	return amount.Min(a.free, a.capacity).Times(100).Fits(a.capacity)
}
