package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// clusterCloudAttributes say on which cloud a cluster is, or is to be, and what
// it has from there.
func clusterCloudAttributes() map[string]schema.Attribute {
	wait := terraform.WaitAttribute("cluster", "cloud", "cloud")
	wait.MarkdownDescription += " Only a cluster with `cloud_constraints` is waited for."
	return map[string]schema.Attribute{
		"openstack": schema.SingleNestedAttribute{
			MarkdownDescription: "Availability zone of a `scheduler_cloud` that the cluster stands for: its amounts and flavors are those of the zone.",
			Optional:            true,
			Attributes: map[string]schema.Attribute{
				"cloud":             schema.StringAttribute{MarkdownDescription: "Name of the `scheduler_cloud`.", Required: true},
				"region":            schema.StringAttribute{MarkdownDescription: "Region of the cloud.", Required: true},
				"availability_zone": schema.StringAttribute{MarkdownDescription: "Availability zone of the region.", Required: true},
			},
		},
		"cloud_constraints": schema.SingleNestedAttribute{
			MarkdownDescription: "Which clouds the cluster may be created on. The labels and metrics that they name are inherited from the cloud. The cluster is `pending`, and gets no placement, until something shows that it exists: a kubeconfig or a probe that works, a heartbeat, or amounts.",
			Optional:            true,
			Attributes: map[string]schema.Attribute{
				"label_constraints": schema.ListAttribute{
					MarkdownDescription: "Conditions on the cloud's labels, all of which must hold: `location is DE`, `operator not in (a, b)`.",
					ElementType:         types.StringType,
					Optional:            true,
				},
				"metric_constraints": schema.ListAttribute{
					MarkdownDescription: "Conditions on the cloud's metrics, all of which must hold: `price < 5`. A failing metric satisfies none.",
					ElementType:         types.StringType,
					Optional:            true,
				},
			},
		},
		"inherit_labels": schema.BoolAttribute{
			MarkdownDescription: "Take over the labels of `cloud`; of equal ones that of the cloud counts. Default `false`.",
			Optional:            true,
			Computed:            true,
			Default:             booldefault.StaticBool(false),
		},
		"inherit_metrics": schema.BoolAttribute{
			MarkdownDescription: "Take over the metrics of `cloud`, in addition to its own. Default `false`.",
			Optional:            true,
			Computed:            true,
			Default:             booldefault.StaticBool(false),
		},
		"flavors": schema.ListNestedAttribute{
			MarkdownDescription: "Sizes of machines that the cluster has, in addition to those of its zone.",
			Optional:            true,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"name": schema.StringAttribute{
					MarkdownDescription: "Name of the flavor.",
					Required:            true,
				},
				"vcpus": schema.Int64Attribute{
					CustomType:          terraform.WholeNumber{},
					MarkdownDescription: "Processors of a machine.",
					Optional:            true,
				},
				"memory": schema.StringAttribute{
					MarkdownDescription: "Memory of a machine, as a Kubernetes quantity such as `4Gi`.",
					Optional:            true,
				},
				"count": schema.Int64Attribute{
					CustomType:          terraform.WholeNumber{},
					MarkdownDescription: "How many machines there is room for, as long as no amounts are reported.",
					Optional:            true,
				},
			}},
		},
		"cloud": schema.StringAttribute{
			MarkdownDescription: "Cloud that the server chose to create the cluster on; null where it chose none. A cluster without a kubeconfig gets one, unless it stands for a zone (`openstack`). The choice stays as long as the cloud is there and fits. Let the cluster depend on the clouds where both are in one configuration.",
			Computed:            true,
		},
		"wait": wait,
	}
}

// clusterCloud is the part of a cluster's status that is in state.
func clusterCloud(object api.Object) map[string]any {
	cloud := map[string]any{"cloud": nil}
	if cluster, ok := object.(*api.Cluster); ok && cluster.Status.Cloud != "" {
		cloud["cloud"] = cluster.Status.Cloud
	}
	return cloud
}

// cloudOfCluster is the choice of a cloud for a cluster that says which it may be
// created on.
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
				state.Observed = 0 // its health was observed, and no cloud looked for yet
			}
			return state, true
		},
	}
}
