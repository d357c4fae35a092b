package provider

import (
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// placementSpecAttributes are what a decision follows from.
func placementSpecAttributes() map[string]schema.Attribute {
	attributes := placementFilterAttributes()
	maps.Copy(attributes, placementRankingAttributes())
	attributes["decision_strategy"] = decisionStrategyAttribute()
	return attributes
}

// placementFilterAttributes say which clusters fit.
func placementFilterAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"number_of_clusters": schema.Int64Attribute{
			CustomType:          terraform.WholeNumber{},
			MarkdownDescription: "How many clusters to choose. Without it all that fit.",
			Optional:            true,
		},
		"cluster_sets": schema.ListAttribute{
			MarkdownDescription: "Names of the `scheduler_cluster_set`s to choose from: clusters of any of them that admits the namespace. Without it every cluster that the namespace sees.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"cluster_names": schema.ListAttribute{
			MarkdownDescription: "Names of the clusters to choose from. Without it every name.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"exclude_clusters": schema.ListAttribute{
			MarkdownDescription: "Names of clusters that are out whatever else says.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"kubernetes_version": schema.StringAttribute{
			MarkdownDescription: "Condition on the Kubernetes version that the server observed of the cluster, in Terraform's language: `>= 1.33, < 2`, `~> 1.33.0`. Only its numbers count: `v1.33.2+k3s1` is 1.33.2. A version that is not known satisfies none.",
			Optional:            true,
			Validators:          terraform.NotEmpty,
		},
		"label_constraints": schema.ListAttribute{
			MarkdownDescription: "Conditions on the cluster's labels, all of which must hold: `location is DE`, `tier != edge`, `zone in (a, b)`, `zone not in (c)`. A label that is absent satisfies none.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"metric_constraints": schema.ListAttribute{
			MarkdownDescription: "Conditions on the cluster's metrics, all of which must hold: `load < 5`, `latency less than or equal 0.2`. A failing metric satisfies none.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"metric_constraint_basis": schema.StringAttribute{
			MarkdownDescription: "Which figure `metric_constraints` compare: `raw` (default), `normalized` or `weighted`.",
			Optional:            true,
			Computed:            true,
			Default:             stringdefault.StaticString(string(api.BasisRaw)),
			Validators:          terraform.NotEmpty,
		},
		"custom_resources": schema.ListAttribute{
			MarkdownDescription: "Custom resource definitions the cluster must have, as `<plural>.<group>`.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"predicates": schema.ListNestedAttribute{
			MarkdownDescription: "Sets of conditions. A cluster must match one of them, if there are any; within one all conditions must hold.",
			Optional:            true,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"label_selector": labelSelectorAttribute("Conditions on the cluster's labels."),
				"claim_selector": labelSelectorAttribute("Conditions on the cluster's claims."),
				"cel": schema.ListAttribute{
					MarkdownDescription: "CEL expressions that must all be true, such as `managedCluster.metadata.labels[\"tier\"] == \"gold\"`. One that fails, because a label is absent for example, is not true.",
					ElementType:         types.StringType,
					Optional:            true,
				},
			}},
		},
		"tolerations": tolerationsAttribute("Taints that do not keep the placement off a cluster."),
		"resource_requests": schema.MapAttribute{
			MarkdownDescription: "Amounts that must be available on every chosen cluster, and are reserved there, as Kubernetes quantities.",
			ElementType:         types.StringType,
			Optional:            true,
		},
	}
}

// placementRankingAttributes say which of the clusters that fit are chosen, and
// when a decision moves.
func placementRankingAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"spread_constraints": schema.ListNestedAttribute{
			MarkdownDescription: "How the chosen clusters are to be divided over labels, claims, regions, zones or providers.",
			Optional:            true,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"topology_key": schema.StringAttribute{
					MarkdownDescription: "Label or claim whose values divide the clusters, or with type `Field` one of `region`, `zone` and `cloud_provider`.",
					Required:            true,
				},
				"type": schema.StringAttribute{
					MarkdownDescription: "`Label` (default), `Claim` or `Field`.",
					Optional:            true,
					Computed:            true,
					Default:             stringdefault.StaticString(string(api.SpreadLabel)),
					Validators:          terraform.NotEmpty,
				},
				"max_skew": schema.Int64Attribute{
					CustomType:          terraform.WholeNumber{},
					MarkdownDescription: "By how many clusters the fullest part may exceed the emptiest that has clusters which fit, at least 1. Default `1`.",
					Optional:            true,
					Computed:            true,
					Default:             int64default.StaticInt64(1),
				},
				"when_unsatisfiable": schema.StringAttribute{
					MarkdownDescription: "`ScheduleAnyway` (default): clusters that would break the constraint come last. `DoNotSchedule`: they are not chosen.",
					Optional:            true,
					Computed:            true,
					Default:             stringdefault.StaticString(string(api.ScheduleAnyway)),
					Validators:          terraform.NotEmpty,
				},
			}},
		},
		"strategy": schema.StringAttribute{
			MarkdownDescription: "How candidates are scored: `metrics` (default), the weighted mean of a cluster's metrics, or `prioritizers`, the weighted sum of the scores of `prioritizer_policy`.",
			Optional:            true,
			Computed:            true,
			Default:             stringdefault.StaticString(string(api.StrategyMetrics)),
			Validators:          terraform.NotEmpty,
		},
		"metrics": schema.SingleNestedAttribute{
			MarkdownDescription: "Settings of the `metrics` strategy; there are none under another one.",
			Optional:            true,
			Computed:            true,
			Attributes: map[string]schema.Attribute{
				"stickiness": schema.Float64Attribute{
					MarkdownDescription: "Weight of staying on the current cluster, at least 0. Default `0.1`.",
					Optional:            true,
					Computed:            true,
					Default:             terraform.StaticDecimal(api.DefaultStickiness),
				},
			},
		},
		"prioritizer_policy": prioritizerPolicyAttribute(),
		"migration": schema.BoolAttribute{
			MarkdownDescription: "`false`: a decision that still fits is never moved. Default `true`.",
			Optional:            true,
			Computed:            true,
			Default:             booldefault.StaticBool(true),
		},
		"reschedule_after": schema.StringAttribute{
			MarkdownDescription: "A decision younger than this is kept while it fits. Default `" + string(api.DefaultRescheduleAfter) + "` under `metrics`, `" + string(api.PromptRescheduleAfter) + "` under `prioritizers`.",
			Optional:            true,
			Computed:            true,
			Validators:          terraform.NotEmpty,
		},
		"min_improvement": schema.Float64Attribute{
			MarkdownDescription: "A decision moves only for a score better by more than this, at least 0. Default `0`.",
			Optional:            true,
			Computed:            true,
			Default:             terraform.StaticDecimal(0),
		},
	}
}

func prioritizerPolicyAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "Settings of the `prioritizers` strategy: what the score of a cluster is the sum of. Default under that strategy `{ mode = \"additive\" }`; there are none under another one.",
		Optional:            true,
		Computed:            true,
		Attributes: map[string]schema.Attribute{
			"mode": schema.StringAttribute{
				MarkdownDescription: "`additive` (default): `balance` and `steady` with weight 1, which configurations override or extend. `exact`: only what is listed.",
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(string(api.ModeAdditive)),
				Validators:          terraform.NotEmpty,
			},
			"configurations": schema.ListNestedAttribute{
				MarkdownDescription: "Prioritizers, each with its weight. The score of a cluster is the sum of weight × score; each score is from -100 to 100.",
				Optional:            true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"type": schema.StringAttribute{
						MarkdownDescription: "`builtin` (default): computed by the server. `addon`: a score of the clusters' `scheduler_placement_score`. `metric`: a metric that the clusters list, mapped to -100 to 100.",
						Optional:            true,
						Computed:            true,
						Default:             stringdefault.StaticString(string(api.PrioritizerBuiltin)),
						Validators:          terraform.NotEmpty,
					},
					"name": schema.StringAttribute{
						MarkdownDescription: "Of a builtin: `balance` (clusters with fewer decisions of other placements), `steady` (clusters of the present decision), `resource_allocatable_cpu`, `resource_allocatable_memory`, `resource_available_cpu`, `resource_available_memory` or `spread`. Of a metric: its name.",
						Optional:            true,
					},
					"resource_name": schema.StringAttribute{
						MarkdownDescription: "Of an addon: name of the `scheduler_placement_score`, the same on every cluster.",
						Optional:            true,
					},
					"score_name": schema.StringAttribute{
						MarkdownDescription: "Of an addon: name of the score in it.",
						Optional:            true,
					},
					"weight": schema.Int64Attribute{
						CustomType:          terraform.WholeNumber{},
						MarkdownDescription: "From -10 to 10. `0` disables the prioritizer, a negative weight prefers low scores. Default `1`.",
						Optional:            true,
						Computed:            true,
						Default:             int64default.StaticInt64(1),
					},
				}},
			},
		},
	}
}

func decisionStrategyAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "How the chosen clusters are divided into groups, such as the steps of a rollout. The data source `scheduler_placement_decisions` shows the groups.",
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"clusters_per_decision_group": schema.StringAttribute{
				MarkdownDescription: "Clusters of a group at most: a number, or a percentage of the chosen clusters such as `25%`, rounded up. Default `" + string(api.DefaultGroupSize) + "`.",
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(string(api.DefaultGroupSize)),
				Validators:          terraform.NotEmpty,
			},
			"decision_groups": schema.ListNestedAttribute{
				MarkdownDescription: "Named groups, in order; a cluster belongs to the first that it matches. The others form groups without a name.",
				Optional:            true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"name": schema.StringAttribute{
						MarkdownDescription: "Name of the group.",
						Required:            true,
					},
					"label_selector": labelSelectorAttribute("Conditions on the labels of the clusters that belong to the group."),
				}},
			},
		},
	}
}
