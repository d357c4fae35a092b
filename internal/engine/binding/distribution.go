package binding

import (
	"fmt"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
)

// splits reports whether a workload's replicas are split between on-demand and spot nodes.
func splits(spec *api.WorkloadSpec) bool { return spec.Distribution != nil && spec.Replicated() }

// targets returns the split of each share, or nil if the workload has no distribution.
func targets(spec *api.WorkloadSpec, shares []int64) []split.Target {
	if !splits(spec) {
		return nil
	}
	return split.Divide(spec.Kind, *spec.Replicas, shares, *spec.Distribution)
}

func sharesOf(clusters []api.WorkloadCluster) []int64 {
	shares := make([]int64, len(clusters))
	for i := range clusters {
		shares[i] = clusters[i].Replicas
	}
	return shares
}

// putTargets sets the targets of the clusters in a status, and reports whether they changed. It
// replaces the slice, which is shared.
func putTargets(spec *api.WorkloadSpec, status *api.WorkloadStatus) (changed bool) {
	if !splits(spec) {
		if !slices.ContainsFunc(status.Clusters, func(c api.WorkloadCluster) bool { return c.OnDemand != nil || c.Spot != nil }) {
			return false
		}
		status.Clusters = slices.Clone(status.Clusters)
		for i := range status.Clusters {
			status.Clusters[i].OnDemand, status.Clusters[i].Spot = nil, nil
		}
		return true
	}
	wanted := targets(spec, sharesOf(status.Clusters))
	for i, c := range status.Clusters {
		changed = changed || !is(c.OnDemand, wanted[i].OnDemand) || !is(c.Spot, wanted[i].Spot)
	}
	if !changed {
		return false
	}
	status.Clusters = slices.Clone(status.Clusters)
	for i := range status.Clusters {
		status.Clusters[i].OnDemand, status.Clusters[i].Spot = &wanted[i].OnDemand, &wanted[i].Spot
	}
	return true
}

func is(n *int64, value int64) bool { return n != nil && *n == value }

// splitClause returns the end of the summary of a binding: how its shares are split, or "" if they
// are not.
func splitClause(spec *api.WorkloadSpec, shares []int64) string {
	sum := split.Split{}
	for _, t := range targets(spec, shares) {
		sum.OnDemand += t.OnDemand
		sum.Spot += t.Spot
	}
	if sum.Total() == 0 {
		return ""
	}
	if text := clampedSentence(spec, shares); text != "" {
		return "; " + text
	}
	return fmt.Sprintf("; %d of the replicas go to on-demand nodes, %d to spot nodes", sum.OnDemand, sum.Spot)
}

// clampedSentence says that a count exceeds the replicas, or returns "".
func clampedSentence(spec *api.WorkloadSpec, shares []int64) string {
	total := int64(0)
	for _, n := range shares {
		total += n
	}
	if total == 0 || !slices.ContainsFunc(targets(spec, shares), func(t split.Target) bool { return t.Clamped }) {
		return ""
	}
	n := min(total, *spec.Replicas) // if every cluster has a copy, the count applies to each
	return fmt.Sprintf("custom_on_demand %s is above the %d %s: all of them go to on-demand nodes", spec.Distribution.CustomOnDemand, n, filter.Plural(int(n), "replica", "replicas"))
}

// SplitClause returns the end of the sentence about a workload that keeps its clusters, or "" if it
// has no split.
func SplitClause(w *api.Workload) string {
	return splitClause(&w.Spec, sharesOf(w.Status.Clusters))
}
