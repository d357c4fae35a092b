package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// clustersOfWorkload is the choice of clusters for a workload, after which its pods may
// be split.
func clustersOfWorkload() *terraform.Choice {
	return &terraform.Choice{
		Chosen: "cluster",
		Moved:  true,
		State: func(object api.Object) (state terraform.ChoiceState, ok bool) {
			if workload, ok := object.(*api.Workload); ok {
				return terraform.ChoiceState{Observed: workload.Status.ObservedGeneration, Conditions: workload.Status.Conditions, Found: api.ConditionScheduled}, true
			}
			return state, false
		},
		Unfinished: unsplit,
		Hopeless:   unsplittable,
	}
}

// unsplit reports a workload that is to be waited for until its pods are split, and
// is not yet. Where spot nodes are missing, or clusters, waiting does not help.
func unsplit(plan tftypes.Value, object api.Object) bool {
	workload, ok := object.(*api.Workload)
	if !ok || !terraform.AwaitsDistribution(plan) || workload.Spec.Distribution == nil {
		return false
	}
	scheduled := api.FindCondition(workload.Status.Conditions, api.ConditionScheduled)
	c := api.FindCondition(workload.Status.Conditions, api.ConditionDistributed)
	return (scheduled == nil || scheduled.Status != api.ConditionFalse) &&
		(c == nil || c.Status != api.ConditionTrue && c.Reason != api.ReasonFallenBack)
}

// unsplittable says why the pods of a workload that is waited for are never split,
// however long one waits: one of its clusters does not have spot enabled; "" = nothing
// is in the way.
func unsplittable(ctx context.Context, c *client.Client, plan tftypes.Value, object api.Object) string {
	workload, ok := object.(*api.Workload)
	if !ok || !unsplit(plan, object) || workload.Status.ObservedGeneration < workload.Metadata.Generation {
		return ""
	}
	distributed := api.FindCondition(workload.Status.Conditions, api.ConditionDistributed)
	if distributed == nil || distributed.Reason != api.ReasonNotSplit {
		return ""
	}
	for _, chosen := range workload.Status.Clusters {
		if chosen.Replicas == 0 && workload.Spec.Replicated() {
			continue
		}
		object, err := c.Get(ctx, api.Key{Kind: api.KindCluster, Name: chosen.Name})
		if cluster, ok := object.(*api.Cluster); ok && err == nil && !cluster.SpotEnabled() {
			return fmt.Sprintf("Cluster %q does not have spot enabled: give it spot = { enabled = true }. Otherwise wait for \"decided\" alone.", chosen.Name)
		}
	}
	return ""
}
