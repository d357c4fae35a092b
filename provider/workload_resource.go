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

// referToClusters is a warning given early, because the consequences of a missing dependency show
// up only sometimes.
const referToClusters = "If the same configuration creates the clusters, make this resource depend on them, with `depends_on = [scheduler_cluster.<name>]` or through a cluster set that depends on them, `cluster_sets = [scheduler_cluster_set.<name>.name]`: otherwise the decision may be made before the clusters exist. "

func newWorkloadResource() *terraform.Resource {
	attributes := terraform.SpecAttributes(api.KindWorkload)
	// Policies select workloads by label, so labels affect the decision too.
	inputs := append(slices.Sorted(maps.Keys(attributes)), "labels")
	// The split within clusters does not affect which clusters are chosen.
	inputs = slices.DeleteFunc(inputs, func(name string) bool { return name == distribution })
	maps.Copy(attributes, splitAttributes())
	attributes["clusters"] = schema.MapAttribute{
		MarkdownDescription: "The binding: replicas by cluster, or `0` if the workload is not replicated. For the policy, affinity group, health and reasons, use the data source `scheduler_workload`.",
		ElementType:         types.Int64Type,
		Computed:            true,
	}
	attributes["evicting"] = schema.MapAttribute{
		MarkdownDescription: "Replicas by cluster that are being evicted. They keep running until their replacements are healthy. What should run in total is `merge(evicting, clusters)`.",
		ElementType:         types.Int64Type,
		Computed:            true,
	}
	attributes["wait"] = terraform.WorkloadWaitAttribute()
	attributes[terraform.PreviewToken] = terraform.PreviewTokenAttribute("scheduler_propagation_preview", "clusters")
	return &terraform.Resource{
		Kind:      api.KindWorkload,
		Unsettled: distributionUnsettled,
		Description: "Something that runs on clusters, such as a Deployment with its replicas. " + referToClusters + "Where it runs is determined by a `scheduler_propagation_policy` that selects it, or by its own `allocation`. `clusters` is the binding as of the last refresh. " +
			"It stays known in a plan unless the plan changes something that affects it. If the policy is in the same configuration, add it to `depends_on`.",
		Attributes:   attributes,
		Local:        map[string]bool{"wait": true, terraform.PreviewToken: true},
		Significant:  []string{distribution, "on_demand", "spot"},
		Decision:     workloadBinding,
		ConcernedBy:  concerned,
		Previewed:    previewedWorkload,
		Inputs:       inputs,
		PlanDivision: planSplit,
		Choice:       clustersOfWorkload(),
		Warn:         clampedDistribution,
	}
}

// workloadBinding returns the part of a workload's status that is in state.
func workloadBinding(object api.Object) map[string]any {
	binding := map[string]any{"clusters": map[string]any{}, "evicting": map[string]any{}, "on_demand": nil, "spot": nil}
	if workload, ok := object.(*api.Workload); ok {
		binding["clusters"] = replicasOf(workload.Status.Clusters)
		binding["evicting"] = replicaDocument(workload.Status.Evicting())
		maps.Copy(binding, splitOf(workload))
	}
	return binding
}

// previewedWorkload returns that part according to a preview.
func previewedWorkload(preview *api.Preview) map[string]any {
	return map[string]any{"clusters": replicaDocument(preview.Replicas), "evicting": replicaDocument(preview.Evicting)}
}

// replicasOf returns the replicas of a binding by cluster.
func replicasOf(clusters []api.WorkloadCluster) map[string]any {
	document := make(map[string]any, len(clusters))
	for _, c := range clusters {
		document[c.Name] = replicaCount(c.Replicas)
	}
	return document
}

// replicaDocument returns replicas by cluster as a document.
func replicaDocument(replicas map[string]int64) map[string]any {
	document := make(map[string]any, len(replicas))
	for cluster, n := range replicas {
		document[cluster] = replicaCount(n)
	}
	return document
}

func replicaCount(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }
