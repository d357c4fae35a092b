package split

import (
	"cmp"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Divide returns the target of a workload in each of its clusters, given their replicas as shares.
// Modes apply within each cluster, so that what they guarantee survives the loss of the others. A
// count applies to all clusters together and is divided by their shares: 3 over shares of 4, 3 and
// 3 is 1 each; 4 is 2, 1, 1. If the clusters together have more than the workload's replicas, each
// has a copy of the workload and gets the whole count.
//
// The sum of the on-demand replicas is never below that of the workload in one cluster: halves and
// percentages are rounded up in each, and counts are exact.
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

// divideCount divides a count by shares of a total. The remainder goes to the largest fractions,
// among equals to the larger share, then to the first.
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
