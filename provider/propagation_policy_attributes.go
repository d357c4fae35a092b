package provider

import (
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// propagationPolicySpecAttributes are what the bindings follow from.
func propagationPolicySpecAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"resource_selectors": resourceSelectorsAttribute(),
		"placement":          propagationPlacementAttribute(),
		"priority": schema.Int64Attribute{
			CustomType:          terraform.WholeNumber{},
			MarkdownDescription: "Of several policies that select a workload the one with the highest number claims it; of equals the one that selects more precisely (by name, by labels, by kind), then the first by name. Policies of the workload's namespace come before global ones. Default `0`.",
			Optional:            true,
			Computed:            true,
			Default:             int64default.StaticInt64(0),
		},
		"preemption": schema.StringAttribute{
			MarkdownDescription: "`Always`: the policy takes over workloads that another one has claimed, if it has the higher `priority`, or is namespaced and the other global. Every selector then needs a `name`. `Never` (default): a claim stays where it is.",
			Optional:            true,
			Computed:            true,
			Default:             stringdefault.StaticString(string(api.PreemptNever)),
			Validators:          terraform.NotEmpty,
		},
		"workload_preemption": schema.StringAttribute{
			MarkdownDescription: "`LowerPriority`: a workload that does not fit takes the place of workloads of a lower `priority`. `Never` (default): it waits for room.",
			Optional:            true,
			Computed:            true,
			Default:             stringdefault.StaticString(string(api.WorkloadPreemptionNever)),
			Validators:          terraform.NotEmpty,
		},
		"failover":  failoverAttribute(),
		"fail_back": failBackAttribute(),
	}
}

func resourceSelectorsAttribute() schema.Attribute {
	return schema.ListNestedAttribute{
		MarkdownDescription: "Workloads that the policy is for; matching one selector is enough.",
		Required:            true,
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"api_version": schema.StringAttribute{
				MarkdownDescription: "The workload's `api_version`, such as `apps/v1`.",
				Required:            true,
			},
			"kind": schema.StringAttribute{
				MarkdownDescription: "The workload's `kind`, such as `Deployment`.",
				Required:            true,
			},
			"namespace": schema.StringAttribute{
				MarkdownDescription: "The workload's namespace. Default: the policy's own; for a global policy all of them.",
				Optional:            true,
				Validators:          terraform.NotEmpty,
			},
			"name": schema.StringAttribute{
				MarkdownDescription: "The workload's name. Without it every name.",
				Optional:            true,
				Validators:          terraform.NotEmpty,
			},
			"label_selector": labelSelectorAttribute("Conditions on the workload's labels; not looked at where `name` is given."),
		}},
	}
}

func propagationPlacementAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "Where the workloads run. Without it on every visible cluster, each with all replicas.",
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"cluster_affinity": clusterAffinityAttribute("Clusters to choose from. Without it and `cluster_affinities` every visible cluster."),
			"cluster_affinities": schema.ListNestedAttribute{
				MarkdownDescription: "Groups of clusters to choose from, in order of preference: the first that can take the whole workload does. Not together with `cluster_affinity`.",
				Optional:            true,
				NestedObject: schema.NestedAttributeObject{Attributes: affinityTermAttributes("Name of the group: 1 to 32 characters, unique in the policy.", map[string]schema.Attribute{
					"overflow_affinities": schema.ListNestedAttribute{
						MarkdownDescription: "Further clusters, in order, for the replicas that the group itself has no room for; they are given up in reverse order. Needs `replica_scheduling` of type `Divided` with `Aggregated` or `dynamic_weight`.",
						Optional:            true,
						NestedObject:        schema.NestedAttributeObject{Attributes: affinityTermAttributes("Name of the tier, unique in the group.", nil)},
					},
				})},
			},
			"cluster_tolerations": tolerationsAttribute("Taints that do not keep the workload off a cluster."),
			"spread_constraints":  groupConstraintsAttribute(),
			"replica_scheduling":  replicaSchedulingAttribute(),
			"empty_clusters": schema.BoolAttribute{
				MarkdownDescription: "`true`: chosen clusters that get no replica stay in the binding, with 0. Default `false`.",
				Optional:            true,
				Computed:            true,
				Default:             booldefault.StaticBool(false),
			},
		},
	}
}

func groupConstraintsAttribute() schema.Attribute {
	return schema.ListNestedAttribute{
		MarkdownDescription: "Over how many clusters, regions, zones, providers or values of a label a workload is spread. They hold for the clusters that have replicas in the end. Where there is one by another field, there must be one by `cluster`.",
		Optional:            true,
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"spread_by_field": schema.StringAttribute{
				MarkdownDescription: "`cluster` (default), `region`, `zone` or `provider`. Not together with `spread_by_label`.",
				Optional:            true,
				Computed:            true,
				PlanModifiers:       []planmodifier.String{terraform.SiblingDefault{On: "spread_by_label", Values: map[string]string{"": api.GroupByCluster}}},
				Validators:          terraform.NotEmpty,
			},
			"spread_by_label": schema.StringAttribute{
				MarkdownDescription: "Key of a label: clusters with the same value are a group.",
				Optional:            true,
				Validators:          terraform.NotEmpty,
			},
			"min_groups": schema.Int64Attribute{
				CustomType:          terraform.WholeNumber{},
				MarkdownDescription: "At least so many groups. Default `1`.",
				Optional:            true,
				Computed:            true,
				Default:             int64default.StaticInt64(1),
				Validators:          []validator.Int64{int64validator.AtLeast(1)},
			},
			"max_groups": schema.Int64Attribute{
				CustomType:          terraform.WholeNumber{},
				MarkdownDescription: "At most so many groups. Without it, or with `0`, there is no limit.",
				Optional:            true,
			},
		}},
	}
}

func replicaSchedulingAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "How replicas are divided. Without it every chosen cluster gets all of them (`Duplicated`).",
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"type": schema.StringAttribute{
				MarkdownDescription: "`Divided` (default): the clusters share the replicas. `Duplicated`: each gets all of them.",
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(string(api.Divided)),
				Validators:          terraform.NotEmpty,
			},
			"division_preference": schema.StringAttribute{
				MarkdownDescription: "Of `Divided`. `Weighted` (default): by weight. `Aggregated`: on as few clusters as have room.",
				Optional:            true,
				Computed:            true,
				PlanModifiers:       []planmodifier.String{terraform.SiblingDefault{On: "type", Values: map[string]string{string(api.Divided): string(api.Weighted)}}},
				Validators:          terraform.NotEmpty,
			},
			"weight_preference": schema.SingleNestedAttribute{
				MarkdownDescription: "Of `Weighted`. Without it all weights are equal.",
				Optional:            true,
				Attributes: map[string]schema.Attribute{
					"static_weights": schema.ListNestedAttribute{
						MarkdownDescription: "Weights of clusters. Of several that match a cluster the largest counts; a cluster that none matches gets nothing, unless none matches any.",
						Optional:            true,
						NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
							"affinity": clusterAffinityAttribute("Clusters that have the weight. Without it every cluster."),
							"weight": schema.Int64Attribute{
								CustomType:          terraform.WholeNumber{},
								MarkdownDescription: "At least 1.",
								Required:            true,
							},
						}},
					},
					"dynamic_weight": schema.StringAttribute{
						MarkdownDescription: "`AvailableReplicas`: the weight of a cluster is how many replicas it has room for. Takes the place of `static_weights`.",
						Optional:            true,
						Validators:          terraform.NotEmpty,
					},
				},
			},
			"cluster_limits": schema.ListNestedAttribute{
				MarkdownDescription: "Bounds on the replicas of single clusters; of several that match a cluster the tightest count.",
				Optional:            true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"affinity": clusterAffinityAttribute("Clusters that have the bounds. Without it every cluster."),
					"min_replicas": schema.Int64Attribute{
						CustomType:          terraform.WholeNumber{},
						MarkdownDescription: "A cluster that is used gets at least as many.",
						Optional:            true,
					},
					"max_replicas": schema.Int64Attribute{
						CustomType:          terraform.WholeNumber{},
						MarkdownDescription: "A cluster gets at most as many.",
						Optional:            true,
					},
				}},
			},
		},
	}
}

func failoverAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "How a workload leaves a cluster that is lost, or on which it does not work.",
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"cluster": schema.SingleNestedAttribute{
				MarkdownDescription: "When a cluster goes offline, or gets a taint that evicts. Without it gracefully, with the defaults below.",
				Optional:            true,
				Attributes: map[string]schema.Attribute{
					"purge_mode":   purgeModeAttribute("`Gracefully` (default): the replicas there count as running until their replacement is healthy or `grace_period` is over. `Directly`: they are gone at once."),
					"grace_period": gracePeriodAttribute(),
				},
			},
			"application": schema.SingleNestedAttribute{
				MarkdownDescription: "When the workload is reported unhealthy on a cluster. Without it the workload stays there.",
				Optional:            true,
				Attributes: map[string]schema.Attribute{
					"toleration": schema.StringAttribute{
						MarkdownDescription: "For how long it may be unhealthy. Default `" + string(api.DefaultToleration) + "`.",
						Optional:            true,
						Computed:            true,
						Default:             stringdefault.StaticString(string(api.DefaultToleration)),
						Validators:          terraform.NotEmpty,
					},
					"purge_mode":   purgeModeAttribute("`Gracefully` (default), `Directly`, or `Never`: the replicas there stay until an explicit reschedule."),
					"grace_period": gracePeriodAttribute(),
				},
			},
		},
	}
}

func purgeModeAttribute(description string) schema.Attribute {
	return schema.StringAttribute{
		MarkdownDescription: description,
		Optional:            true,
		Computed:            true,
		Default:             stringdefault.StaticString(string(api.PurgeGracefully)),
		Validators:          terraform.NotEmpty,
	}
}

func gracePeriodAttribute() schema.Attribute {
	return schema.StringAttribute{
		MarkdownDescription: "Of `Gracefully`: after so long the replicas go in any case. Default `" + string(api.DefaultGracePeriod) + "`.",
		Optional:            true,
		Computed:            true,
		PlanModifiers:       []planmodifier.String{terraform.SiblingDefault{On: "purge_mode", Values: map[string]string{string(api.PurgeGracefully): string(api.DefaultGracePeriod)}}},
		Validators:          terraform.NotEmpty,
	}
}

func failBackAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "Whether an earlier one of `cluster_affinities` takes the workload back. Without it never.",
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"mode": schema.StringAttribute{
				MarkdownDescription: "`automatic` (default): once it could have taken the workload for the whole of `stabilization`. `never`: only an explicit reschedule does.",
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(string(api.FailBackAutomatic)),
				Validators:          terraform.NotEmpty,
			},
			"stabilization": schema.StringAttribute{
				MarkdownDescription: "For how long the earlier group must be able to take the workload. Default `" + string(api.DefaultStabilization) + "`.",
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(string(api.DefaultStabilization)),
				Validators:          terraform.NotEmpty,
			},
		},
	}
}

// overflowUnsettled reports that at is the list of overflow affinities of a group,
// and that how replicas are divided, or what the group selects, is not known yet:
// both say whether there may be any.
func overflowUnsettled(base, at path.Path, unknown []path.Path) bool {
	steps := at.Steps()
	if len(steps) == 0 || !steps[len(steps)-1].Equal(path.PathStepAttributeName("overflow_affinities")) {
		return false
	}
	division := base.AtName("placement").AtName("replica_scheduling")
	return slices.ContainsFunc(unknown, func(p path.Path) bool { return terraform.Related(p, division) || terraform.Related(p, at.ParentPath()) })
}
