package split

import (
	"cmp"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Divide are the targets of a workload in each of its clusters, of which shares are
// the replicas. Every mode holds inside of each cluster, so that what it promises
// survives the loss of the others. A count holds over all clusters together and is
// divided by their shares: 3 over shares of 4, 3 and 3 is 1 each; 4 is 2, 1, 1.
// Where the clusters have more than the replicas of the workload together, each has
// a copy of it, and the whole count.
//
// The sum of the on-demand replicas is never below that of the workload in one
// cluster: halves and percentages are rounded up in each, and the count is exact.
func Divide(kind string, replicas int64, shares []int64, d api.DistributionSpec) []Target {
	out := make([]Target, len(shares))
	total := int64(0)
	for i, share := range shares {
		out[i] = Targets(kind, share, d)
		total += share
	}
	if d.Mode != api.ModeCustom || len(shares) < 2 || total > replicas {
		return out
	}
	count, percent, err := d.CustomOnDemand.Parse()
	if err != nil || percent {
		return out
	}
	for i, n := range divideCount(min(count, total), total, shares) {
		out[i].OnDemand, out[i].Spot = n, shares[i]-n
		out[i].Clamped = count > total
	}
	return out
}

// divideCount divides a count by shares of a total, what is left over by the largest
// remainders, of equals to the larger share, then to the first.
func divideCount(count, total int64, shares []int64) []int64 {
	parts := make([]int64, len(shares))
	if total == 0 {
		return parts
	}
	order := make([]int, len(shares))
	left := count
	for i, share := range shares {
		order[i] = i
		parts[i] = count * share / total
		left -= parts[i]
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(
			cmp.Compare(count*shares[b]%total, count*shares[a]%total),
			cmp.Compare(shares[b], shares[a]),
		)
	})
	for _, i := range order[:left] {
		parts[i]++
	}
	return parts
}
