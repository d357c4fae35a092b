package provider

import (
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newClusterResource() *terraform.Resource {
	attributes := clusterSpecAttributes()
	maps.Copy(attributes, clusterCloudAttributes())
	attributes["spot"] = spotAttribute()
	return &terraform.Resource{
		Kind:       api.KindCluster,
		Dependents: api.KindPlacementScore,
		Description: "A cluster that placements can choose: its labels, where it is, what it has and which metrics rate it. " +
			"One that is still to be created gets the `cloud` to create it on. " +
			"Its state (online or not, amounts reported or observed, values of metrics) is read with the data source `scheduler_cluster`.",
		Attributes: terraform.WithSecrets(attributes),
		Local:      map[string]bool{terraform.SecretsVersion: true, "wait": true},
		Decision:   clusterCloud,
		// Neither labels nor a kubeconfig are among them: what is created on the cloud
		// must not have to be replaced when they are written.
		Inputs: []string{"namespace", "namespaces", "cloud_constraints", "openstack"},
		Choice: cloudOfCluster(),
		Warn:   spotWithoutKubeconfig,
	}
}

// clusterSpecAttributes are what the owner of a cluster declares about it.
func clusterSpecAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"namespace": schema.StringAttribute{
			MarkdownDescription: "Owner: only placements of this namespace see the cluster. Without it all do.",
			Optional:            true,
			Validators:          terraform.NotEmpty,
		},
		"namespaces": schema.SetAttribute{
			MarkdownDescription: "Several owners: only placements of these namespaces see the cluster. Without it and `namespace` all do; both may not be given, and an empty set is refused.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"cloud_provider": schema.StringAttribute{
			MarkdownDescription: "Who runs the cluster's machines, such as `aws`.",
			Optional:            true,
		},
		"region": schema.StringAttribute{
			MarkdownDescription: "Region the cluster is in.",
			Optional:            true,
		},
		"zones": schema.SetAttribute{
			MarkdownDescription: "Availability zones the cluster spans.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"claims": schema.MapAttribute{
			MarkdownDescription: "Facts about the cluster by name, such as its version or its platform; the claim selectors of placements match them.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"taints": schema.SetNestedAttribute{
			MarkdownDescription: "Keep placements that do not tolerate them off the cluster. The server adds taints of its own (`" + api.TaintUnreachable + "`, `" + api.TaintUnhealthy + "`) to clusters that are offline; the data source `scheduler_cluster` shows all of them, each with the time since when.",
			Optional:            true,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"key": schema.StringAttribute{
					MarkdownDescription: "Name of the taint, in the form of a label's name.",
					Required:            true,
				},
				"value": schema.StringAttribute{
					MarkdownDescription: "Value that tolerations may compare with.",
					Optional:            true,
				},
				"effect": schema.StringAttribute{
					MarkdownDescription: "`NoSelect` (or `NoExecute`): no new decision, present ones end. `NoSelectIfNew` (or `NoSchedule`): no new decision, present ones stay. `PreferNoSelect` (or `PreferNoSchedule`): ranked last among equals.",
					Required:            true,
				},
			}},
		},
		"custom_resources": schema.ListAttribute{
			MarkdownDescription: "Custom resource definitions the cluster has, as `<plural>.<group>`.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"api_resources": schema.ListAttribute{
			MarkdownDescription: "Types of resources the cluster takes, as `<api version>/<kind>`: `apps/v1/Deployment`. Only workloads of these types go there. Without it the cluster takes every type.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"metrics": metricsAttribute("cluster"),
		"capacity": schema.MapAttribute{
			MarkdownDescription: "Total amount by resource, as Kubernetes quantities: `{ cpu = \"64\", memory = \"256Gi\" }`.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"allocatable": schema.MapAttribute{
			MarkdownDescription: "Amount that workloads may use, by resource.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"allocated": schema.MapAttribute{
			MarkdownDescription: "Amount in use, by resource. Writing it is a capacity report: reservations of older decisions end.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"paused": schema.BoolAttribute{
			MarkdownDescription: "Take no new decision; present ones stay. Default `false`.",
			Optional:            true,
			Computed:            true,
			Default:             booldefault.StaticBool(false),
		},
		"kubernetes": schema.SingleNestedAttribute{
			MarkdownDescription: "Access to the Kubernetes cluster, in which the server then observes its state, its amounts, its region and zones, its custom resource definitions and its types of resources.",
			Optional:            true,
			Attributes: map[string]schema.Attribute{
				"kubeconfig": schema.StringAttribute{
					MarkdownDescription: "Kubeconfig file that stands alone: with tokens and certificates, not names of files or programs.",
					Optional:            true,
					Sensitive:           true,
					WriteOnly:           true,
				},
			},
		},
		"health": schema.SingleNestedAttribute{
			MarkdownDescription: "How the server finds out whether the cluster is online. Without it a cluster with a kubeconfig is watched; one without kubeconfig and without heartbeats counts as online.",
			Optional:            true,
			Attributes: map[string]schema.Attribute{
				"url": schema.StringAttribute{
					MarkdownDescription: "Probed with GET; an answer of 200 to 299 is a success. Without it the cluster is watched by its kubeconfig; one without a kubeconfig is expected to send heartbeats.",
					Optional:            true,
				},
				"interval": schema.StringAttribute{
					MarkdownDescription: "Time between two probes, or in which a heartbeat is expected. Default `" + string(api.DefaultHealthInterval) + "`.",
					Optional:            true,
					Computed:            true,
					Default:             stringdefault.StaticString(string(api.DefaultHealthInterval)),
					Validators:          terraform.NotEmpty,
				},
				"failure_threshold": schema.Int64Attribute{
					CustomType:          terraform.WholeNumber{},
					MarkdownDescription: "Failures in a row that take the cluster out. Default `3`.",
					Optional:            true,
					Computed:            true,
					Default:             int64default.StaticInt64(api.DefaultFailureThreshold),
					Validators:          []validator.Int64{int64validator.AtLeast(1)},
				},
				"success_threshold": schema.Int64Attribute{
					CustomType:          terraform.WholeNumber{},
					MarkdownDescription: "Successes in a row that bring it back. Default `2`.",
					Optional:            true,
					Computed:            true,
					Default:             int64default.StaticInt64(api.DefaultSuccessThreshold),
					Validators:          []validator.Int64{int64validator.AtLeast(1)},
				},
			},
		},
	}
}
