package provider

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// referToClusters is said first, because forgetting it shows only now and then.
const referToClusters = "Where the same configuration creates the clusters, refer to them, with `cluster_sets = [scheduler_cluster_set.<name>.name]` whose clusters are there before, or `depends_on = [scheduler_cluster.<name>]`: what is decided before they exist is decided without them. "

func newWorkloadResource() *terraform.Resource {
	attributes := terraform.SpecAttributes(api.KindWorkload)
	// Policies select workloads by their labels, so these say where it runs, too.
	inputs := append(slices.Sorted(maps.Keys(attributes)), "labels")
	// How replicas are split inside of clusters does not say which those are.
	inputs = slices.DeleteFunc(inputs, func(name string) bool { return name == distribution })
	maps.Copy(attributes, splitAttributes())
	attributes["clusters"] = schema.MapAttribute{
		MarkdownDescription: "The binding: replicas by cluster, `0` where the workload is not replicated. Policy, affinity group, health and reasons are read with the data source `scheduler_workload`.",
		ElementType:         types.Int64Type,
		Computed:            true,
	}
	attributes["evicting"] = schema.MapAttribute{
		MarkdownDescription: "Replicas, by cluster, that are to go on running on clusters the workload is leaving, until their replacement is healthy. What is to run in all is `merge(evicting, clusters)`.",
		ElementType:         types.Int64Type,
		Computed:            true,
	}
	attributes["wait"] = terraform.WorkloadWaitAttribute()
	attributes[terraform.PreviewToken] = terraform.PreviewTokenAttribute("scheduler_propagation_preview", "clusters")
	return &terraform.Resource{
		Kind:      api.KindWorkload,
		Unsettled: distributionUnsettled,
		Description: referToClusters + "The template of something that runs on clusters, such as a Deployment, with its replicas. A `scheduler_propagation_policy` that selects it says where, or its own `allocation`; `clusters` is the binding as of the last refresh. " +
			"It stays known in a plan unless the plan changes what it follows from. Let the workload depend on its policy where both are in one configuration.",
		Attributes:   attributes,
		Local:        map[string]bool{"wait": true, terraform.PreviewToken: true},
		Significant:  []string{distribution, "on_demand", "spot"},
		Decision:     workloadBinding,
		Previewed:    previewedWorkload,
		Inputs:       inputs,
		PlanDivision: planSplit,
		Choice:       clustersOfWorkload(),
		Warn:         clampedDistribution,
	}
}

// workloadBinding is the part of a workload's status that is in state.
func workloadBinding(object api.Object) map[string]any {
	binding := map[string]any{"clusters": map[string]any{}, "evicting": map[string]any{}, "on_demand": nil, "spot": nil}
	if workload, ok := object.(*api.Workload); ok {
		binding["clusters"] = replicasOf(workload.Status.Clusters)
		binding["evicting"] = replicaDocument(workload.Status.Evicting())
		maps.Copy(binding, splitOf(workload))
	}
	return binding
}

// previewedWorkload is that part as a preview says it will be.
func previewedWorkload(preview *api.Preview) map[string]any {
	return map[string]any{"clusters": replicaDocument(preview.Replicas), "evicting": replicaDocument(preview.Evicting)}
}

// replicasOf are the replicas of a binding by cluster.
func replicasOf(clusters []api.WorkloadCluster) map[string]any {
	document := make(map[string]any, len(clusters))
	for _, c := range clusters {
		document[c.Name] = replicaCount(c.Replicas)
	}
	return document
}

// replicaDocument is a map of replicas by cluster as a document.
func replicaDocument(replicas map[string]int64) map[string]any {
	document := make(map[string]any, len(replicas))
	for cluster, n := range replicas {
		document[cluster] = replicaCount(n)
	}
	return document
}

func replicaCount(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }
