package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// spotAttribute switches on that workloads are split over the nodes of a cluster.
func spotAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "Splits workloads over the on-demand and spot nodes of the cluster: those with a `distribution`, and Deployments and StatefulSets that ask for it by their labels. The guide *Spot nodes* has the details. Without it nothing in the cluster is touched; the webhook of an earlier one is removed, and the pods stay as they are.",
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"enabled": schema.BoolAttribute{
				MarkdownDescription: "Split the pods of workloads that ask for it. Needs `kubernetes.kubeconfig_wo`, and a server that the cluster can reach (`--webhook-listen`). Default `false`.",
				Optional:            true,
				Computed:            true,
				Default:             booldefault.StaticBool(false),
			},
			"node_type_key": schema.StringAttribute{
				MarkdownDescription: "Label of nodes that says which they are. Default `" + api.DefaultNodeTypeKey + "`, with the values `on-demand` and `spot`, which any other label has, too. The labels `karpenter.sh/capacity-type`, `eks.amazonaws.com/capacityType`, `cloud.google.com/gke-spot` and `kubernetes.azure.com/scalesetpriority` are known with their own values.",
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(api.DefaultNodeTypeKey),
				Validators:          terraform.NotEmpty,
			},
			"on_disable": schema.StringAttribute{
				MarkdownDescription: "What becomes of the pods when a workload is not split any more. `keep` (default): they stay as they are. `recreate`: they are replaced by pods without a node type, one after the other.",
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(string(api.OnDisableKeep)),
				Validators:          terraform.NotEmpty,
			},
		},
	}
}

// spotWithoutKubeconfig warns of a cluster whose workloads are to be split and
// whose kubeconfig is not in the configuration. The server may have one all the
// same, which somebody else wrote.
func spotWithoutKubeconfig(config map[string]tftypes.Value, diags *diag.Diagnostics) {
	var enabled bool
	given := terraform.AttributesOf(config["spot"])["enabled"]
	if !given.IsKnown() || given.IsNull() || given.As(&enabled) != nil || !enabled {
		return
	}
	kubernetes := config["kubernetes"]
	now, former := terraform.AttributesOf(kubernetes)["kubeconfig"+terraform.WriteOnlySuffix], terraform.AttributesOf(kubernetes)["kubeconfig"]
	if !kubernetes.IsKnown() || !now.IsNull() || !former.IsNull() {
		return
	}
	diags.AddAttributeWarning(path.Root("spot").AtName("enabled"), "Nothing is split without a kubeconfig",
		"spot.enabled is true, and there is no kubernetes.kubeconfig_wo: unless the server has a kubeconfig already, it cannot reach the cluster to split workloads over its nodes. Add the kubeconfig, or set spot.enabled to false.")
}
