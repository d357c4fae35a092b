package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// clusterCloudAttributes returns the attributes about the cloud that a cluster is on, or will be
// created on.
func clusterCloudAttributes() map[string]schema.Attribute {
	wait := terraform.WaitAttribute("cluster", "cloud", "cloud")
	wait.MarkdownDescription += " Only a cluster with `cloud_constraints` is waited for."
	return map[string]schema.Attribute{
		"cloud": schema.StringAttribute{
			MarkdownDescription: "Cloud that the server chose for the cluster, or null if it chose none. The server chooses one for a cluster without a kubeconfig, unless the cluster represents a zone (`openstack`). The choice stays as long as the cloud exists and fits. If the clouds are in the same configuration, make the cluster depend on them.",
			Computed:            true,
		},
		"wait": wait,
	}
}

// clusterCloud returns the part of a cluster's status that is in state.
func clusterCloud(object api.Object) map[string]any {
	cloud := map[string]any{"cloud": nil}
	if cluster, ok := object.(*api.Cluster); ok && cluster.Status.Cloud != "" {
		cloud["cloud"] = cluster.Status.Cloud
	}
	return cloud
}

// cloudOfCluster is the choice of a cloud for a cluster with cloud constraints.
func cloudOfCluster() *terraform.Choice {
	return &terraform.Choice{
		Chosen: "cloud",
		State: func(object api.Object) (state terraform.ChoiceState, ok bool) {
			cluster, ok := object.(*api.Cluster)
			if !ok || cluster.Spec.CloudConstraints == nil {
				return state, false
			}
			state = terraform.ChoiceState{Observed: cluster.Status.ObservedGeneration, Conditions: cluster.Status.Conditions, Found: api.ConditionBound}
			if cluster.Status.Cloud == "" && api.FindCondition(cluster.Status.Conditions, api.ConditionBound) == nil {
				state.Observed = 0 // its health was observed, but no cloud was looked for yet
			}
			return state, true
		},
	}
}
