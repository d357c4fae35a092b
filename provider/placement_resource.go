package provider

import (
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func newPlacementResource() resource.Resource {
	attributes := placementSpecAttributes()
	inputs := slices.Sorted(maps.Keys(attributes))
	attributes["clusters"] = schema.ListAttribute{
		MarkdownDescription: "The decision: names of the chosen clusters, best first. Scores, reasons and times are read with the data sources `scheduler_placement_decisions` and `scheduler_placement_explanation`.",
		ElementType:         types.StringType,
		Computed:            true,
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
	attributes[previewToken] = previewTokenAttribute()
	return &objectResource{
		kind: api.KindPlacement,
		description: "Asks for clusters. The server chooses them by labels, claims, taints, metrics, scores, custom resources and capacity, and keeps the choice current; " +
			"`clusters` is the decision as of the last refresh. It stays known in a plan unless the plan changes what is asked for.",
		attributes: attributes,
		local:      map[string]bool{"wait": true, previewToken: true},
		dependent:  dependentDefaults{on: "strategy", names: []string{"metrics", "prioritizer_policy", "reschedule_after"}},
		decision:   placementDecision,
		inputs:     inputs,
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
