package provider

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// ofWorkloads are the fields of previews and explanations that placements do not have.
var ofWorkloads = []string{
	"kind", "current_replicas", "replicas", "evicting", "bindings", "policy", "policy_reason", "observed_affinity", "affinities", "groups",
	"available", "weight", "tier",
}

func newPlacementPreviewDataSource() datasource.DataSource {
	arguments := terraform.DataSourceArguments(terraform.SpecAttributes(api.KindPlacement))
	maps.Copy(arguments, placementArguments())
	arguments["labels"] = schema.MapAttribute{
		MarkdownDescription: "Labels of the placement. They do not change the decision, but the token is only valid for a placement with the same labels.",
		ElementType:         types.StringType,
		Optional:            true,
	}
	answer := terraform.ComputedAttributes(reflect.TypeFor[api.Preview]())
	for _, name := range slices.Concat([]string{"id", "kind", "name", "namespace", "spec", "labels", "created_at"}, ofWorkloads) {
		delete(answer, name)
	}
	answer["token"] = schema.StringAttribute{
		MarkdownDescription: "Set the placement's `preview_token_wo` to this token: the plan then shows exactly this decision, and the apply commits it or fails. The token differs in every plan.",
		Computed:            true,
	}
	return &terraform.DataSource{
		Name:    "placement_preview",
		Subject: "the preview of placement",
		Objects: map[string]terraform.ObjectRules{"": {Kind: api.KindPlacement, Unsettled: placementUnsettled}},
		Description: "The decision that a placement would get, made by the server during the plan. Give the preview the same attributes as the placement, and pass its `token` to the placement: " +
			"`clusters` is then known in the plan, even if the plan creates the placement, so that `for_each` over it works in a single apply. The apply commits exactly this decision. If the fleet has changed so that the server would decide differently, the apply fails and asks you to plan again.",
		Arguments: arguments,
		Answer:    answer,
		Ask: func(ctx context.Context, s *terraform.Session, arguments map[string]any) (map[string]any, error) {
			key := s.NamespacedKey(api.KindPlacement, arguments)
			arguments["namespace"] = key.Namespace
			object, err := terraform.Unflatten(api.KindPlacement, arguments)
			if err != nil {
				return nil, err
			}
			preview, err := s.Client().Preview(ctx, object)
			if err != nil {
				return nil, err
			}
			document, err := terraform.JSONDocument(preview)
			if err != nil {
				return nil, err
			}
			document["namespace"] = key.Namespace
			return document, nil
		},
	}
}
