package binding

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// NewDistributionStatus returns the status of a workload after a new observation of its split: the
// current status with the resulting condition, and without observations from clusters that it has
// left.
func NewDistributionStatus(f *columns.Fleet, w *api.Workload, now time.Time) (status api.WorkloadStatus, changed bool) {
	status = w.Status
	changed = observeSplit(f, &w.Spec, &status, now)
	return status, changed
}

// observeSplit updates the observed split in a status to match the rest of it, and reports whether
// it changed.
func observeSplit(f *columns.Fleet, spec *api.WorkloadSpec, status *api.WorkloadStatus, now time.Time) (changed bool) {
	outdated := func(d api.ClusterDistribution) bool { return spec.Distribution == nil || !status.RunsOn(d.Cluster) }
	if slices.ContainsFunc(status.Distribution, outdated) {
		kept := slices.DeleteFunc(slices.Clone(status.Distribution), outdated)
		if status.Distribution = kept; len(kept) == 0 {
			status.Distribution = nil // same as after decoding
		}
		changed = true
	}
	if spec.Distribution == nil {
		return api.RemoveCondition(&status.Conditions, api.ConditionDistributed) || changed
	}
	return api.SetCondition(&status.Conditions, distributedCondition(f, spec, status), now) || changed
}

// splitStanding is the state of a cluster's split, in ascending severity.
type splitStanding int

const (
	splitConverged splitStanding = iota
	splitUnobserved
	splitFallenBack
	splitConverging
	splitNotSplit
	splitBlocked
)

// condition returns the condition of a workload whose worst cluster has this state.
func (s splitStanding) condition() (api.ConditionStatus, string) {
	switch s {
	case splitUnobserved:
		return api.ConditionUnknown, api.ReasonNotObserved
	case splitFallenBack:
		return api.ConditionFalse, api.ReasonFallenBack
	case splitConverging:
		return api.ConditionFalse, api.ReasonConverging
	case splitNotSplit:
		return api.ConditionFalse, api.ReasonNotSplit
	case splitBlocked:
		return api.ConditionFalse, api.ReasonBlockedSplit
	case splitConverged:
	}
	return api.ConditionTrue, api.ReasonConverged
}

// clusterSplit is the split in one cluster.
type clusterSplit struct {
	standing splitStanding
	text     string
}

// maxSplitClusters is the number of clusters that the condition names.
const maxSplitClusters = 3

// distributedCondition says whether the pods of a workload are split as requested and, if not,
// names the worst clusters.
func distributedCondition(f *columns.Fleet, spec *api.WorkloadSpec, status *api.WorkloadStatus) api.Condition {
	c := api.Condition{Type: api.ConditionDistributed}
	if len(status.Clusters) == 0 && (!spec.Replicated() || *spec.Replicas > 0) {
		c.Status, c.Reason, c.Message = api.ConditionUnknown, api.ReasonNotObserved, "it does not run on any cluster yet"
		return c
	}
	var off []clusterSplit
	for i := range status.Clusters {
		if s := standingOn(f, spec, status, &status.Clusters[i]); s.standing != splitConverged {
			off = append(off, s)
		}
	}
	slices.SortStableFunc(off, func(a, b clusterSplit) int { return cmp.Compare(b.standing, a.standing) })
	worst := splitConverged
	if len(off) > 0 {
		worst = off[0].standing
	}
	c.Status, c.Reason = worst.condition()
	var parts []string
	for i := range off[:min(len(off), maxSplitClusters)] {
		parts = append(parts, off[i].text)
	}
	if more := len(off) - maxSplitClusters; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	if clamped := clampedSentence(spec, sharesOf(status.Clusters)); clamped != "" {
		parts = append(parts, clamped)
	}
	c.Message = strings.Join(parts, "; ")
	return c
}

// standingOn returns the state of one cluster of a binding.
func standingOn(f *columns.Fleet, spec *api.WorkloadSpec, status *api.WorkloadStatus, c *api.WorkloadCluster) clusterSplit {
	if spec.Replicated() && c.Replicas == 0 {
		return clusterSplit{} // it has no replicas there
	}
	on := fmt.Sprintf("cluster %q", c.Name)
	if row, ok := f.Row(c.Name); ok && !f.Cluster(row).SpotEnabled() {
		return clusterSplit{splitNotSplit, on + " does not have spot enabled"}
	}
	i := slices.IndexFunc(status.Distribution, func(d api.ClusterDistribution) bool { return d.Cluster == c.Name })
	if i < 0 {
		return clusterSplit{splitUnobserved, on + " has not been observed yet"}
	}
	d := &status.Distribution[i]
	said := func(otherwise string) string {
		return on + ": " + cmp.Or(api.Shorten(d.Message, maxSplitMessage), otherwise)
	}
	switch d.State {
	case api.DistributionBlocked:
		return clusterSplit{splitBlocked, said("the split cannot be reached")}
	case api.DistributionAbsent:
		return clusterSplit{splitNotSplit, said("there is no such workload")}
	case api.DistributionUnmanaged:
		return clusterSplit{splitNotSplit, said("a label of the workload disables the split")}
	case api.DistributionDegraded:
		return clusterSplit{splitFallenBack, said(fmt.Sprintf("%d pods for spot nodes run on on-demand nodes", d.FallenBack))}
	case api.DistributionConverged:
		// If the number of replicas is the decided one, the split must be too: the observation may
		// be older than the decision.
		if c.OnDemand == nil || d.Replicas != c.Replicas || d.TargetOnDemand == *c.OnDemand {
			return clusterSplit{}
		}
		return clusterSplit{splitConverging, fmt.Sprintf("%s: %d replicas must be on on-demand nodes, but it still uses %d", on, *c.OnDemand, d.TargetOnDemand)}
	case api.DistributionReplacing, api.DistributionWaiting:
	}
	return clusterSplit{splitConverging, said(fmt.Sprintf("%d on-demand and %d spot of %d and %d", d.OnDemand, d.Spot, d.TargetOnDemand, d.TargetSpot))}
}

// maxSplitMessage limits how much of a message the condition repeats.
const maxSplitMessage = 256
