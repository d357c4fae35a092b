package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// clustersOfWorkload is the choice of clusters for a workload, after which an apply may wait for
// the split of its pods.
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

// unsplit reports whether a plan waits for the split of a workload's pods and it is not complete
// yet. If spot nodes or clusters are missing, waiting does not help.
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

// unsplittable says why the pods of a workload will never be split: one of its clusters does not
// have spot enabled. It returns "" if nothing prevents it.
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
