package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func newPlacementResource() resource.Resource {
	attributes := placementSpecAttributes()
	inputs := make([]string, 0, len(attributes))
	for name := range attributes {
		inputs = append(inputs, name)
	}
	attributes["clusters"] = schema.ListAttribute{
		MarkdownDescription: "The decision: names of the chosen clusters, best first. Scores, reasons and times are read with the data sources `scheduler_placement_decisions` and `scheduler_placement_explanation`.",
		ElementType:         types.StringType,
		Computed:            true,
		PlanModifiers:       []planmodifier.List{keepUnlessChanged{inputs}},
	}
	attributes["wait"] = schema.SingleNestedAttribute{
		MarkdownDescription: "What an apply waits for. `for` is a word of Terraform's language, so write it in quotes: `wait = { \"for\" = \"none\" }`.",
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"for": schema.StringAttribute{
				MarkdownDescription: "`decided` (default): the decision that answers what was written. `none`: nothing; `clusters` is then what the server happened to have.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.OneOf(waitDecided, waitNone)},
			},
			"on_timeout": schema.StringAttribute{
				MarkdownDescription: "What it means when no decision comes in time, or no cluster fits: `warning` (default on create) or `error` (default on update). Terraform replaces what failed to be created, so an `error` on create makes the next apply create the placement anew.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.OneOf(onTimeoutWarning, onTimeoutError)},
			},
		},
	}
	return &objectResource{
		kind: api.KindPlacement,
		description: "Asks for clusters. The server chooses them by labels, metrics, custom resources and capacity, and keeps the choice current; " +
			"`clusters` is the decision as of the last refresh. It stays known in a plan unless the plan changes what is asked for.",
		attributes: attributes,
		local:      map[string]bool{"wait": true},
		decision:   placementDecision,
		decide:     awaitDecision,
		unawaited:  decisionUnawaited,
	}
}

// placementDecision is the part of a placement's status that is in state.
func placementDecision(object api.Object) map[string]any {
	clusters := []any{}
	if placement, ok := object.(*api.Placement); ok {
		for _, name := range placement.Status.Clusters {
			clusters = append(clusters, name)
		}
	}
	return map[string]any{"clusters": clusters}
}

// placementSpecAttributes are what a decision follows from.
func placementSpecAttributes() map[string]schema.Attribute {
	stickiness := schema.Float64Attribute{
		MarkdownDescription: "Weight of staying on the current cluster, at least 0. Default `0.1`.",
		Optional:            true,
		Computed:            true,
		Default:             decimalDefault{api.DefaultStickiness},
	}
	return map[string]schema.Attribute{
		"number_of_clusters": schema.Int64Attribute{
			CustomType:          wholeNumber{},
			MarkdownDescription: "How many clusters to choose. Without it all that fit.",
			Optional:            true,
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
			Validators:          notEmpty,
		},
		"custom_resources": schema.ListAttribute{
			MarkdownDescription: "Custom resource definitions the cluster must have, as `<plural>.<group>`.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"resource_requests": schema.MapAttribute{
			MarkdownDescription: "Amounts that must be available on every chosen cluster, and are reserved there, as Kubernetes quantities.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"strategy": schema.StringAttribute{
			MarkdownDescription: "How candidates are scored: `metrics` (default), the weighted mean of a cluster's metrics.",
			Optional:            true,
			Computed:            true,
			Default:             stringdefault.StaticString(string(api.StrategyMetrics)),
			Validators:          notEmpty,
		},
		"metrics": schema.SingleNestedAttribute{
			MarkdownDescription: "Settings of the `metrics` strategy.",
			Optional:            true,
			Computed:            true,
			Attributes:          map[string]schema.Attribute{"stickiness": stickiness},
			Default: objectdefault.StaticValue(types.ObjectValueMust(
				map[string]attr.Type{"stickiness": types.Float64Type},
				map[string]attr.Value{"stickiness": decimal(context.Background(), api.DefaultStickiness)},
			)),
		},
		"migration": schema.BoolAttribute{
			MarkdownDescription: "`false`: a decision that still fits is never moved. Default `true`.",
			Optional:            true,
			Computed:            true,
			Default:             booldefault.StaticBool(true),
		},
		"reschedule_after": schema.StringAttribute{
			MarkdownDescription: "A decision younger than this is kept while it fits. Default `" + string(api.DefaultRescheduleAfter) + "`.",
			Optional:            true,
			Computed:            true,
			Default:             stringdefault.StaticString(string(api.DefaultRescheduleAfter)),
			Validators:          notEmpty,
		},
		"min_improvement": schema.Float64Attribute{
			MarkdownDescription: "A decision moves only for a score better by more than this, at least 0. Default `0`.",
			Optional:            true,
			Computed:            true,
			Default:             decimalDefault{0},
		},
	}
}
