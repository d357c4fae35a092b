package provider

import (
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newPlacementDecisionsDataSource() datasource.DataSource {
	return &terraform.DataSource{
		Name:    "placement_decisions",
		Subject: "the decisions of placement",
		Description: "The current decision of a placement, with scores, ranks, groups and times. If the placement is in the same configuration and you need only the names of the clusters, use " +
			"`scheduler_placement.<name>.clusters` instead, which stays known while you edit the placement.",
		Arguments: placementArguments(),
		Answer:    terraform.ComputedAttributes(reflect.TypeFor[api.PlacementStatus]()),
		Ask: func(ctx context.Context, s *terraform.Session, arguments map[string]any) (map[string]any, error) {
			key := s.NamespacedKey(api.KindPlacement, arguments)
			placement, err := s.Client().Get(ctx, key)
			if err != nil {
				return nil, err
			}
			document, err := terraform.JSONDocument(placement.StatusPart())
			if err != nil {
				return nil, err
			}
			document["namespace"] = key.Namespace
			return document, nil
		},
	}
}

// placementArguments are the arguments that identify a placement.
func placementArguments() map[string]schema.Attribute { return namespacedArguments("placement") }

// namespacedArguments are the arguments that identify a namespaced object.
func namespacedArguments(what string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name": schema.StringAttribute{MarkdownDescription: "Name of the " + what + ".", Required: true, Validators: []validator.String{terraform.ObjectName{}}},
		"namespace": schema.StringAttribute{
			MarkdownDescription: "Namespace of the " + what + ". Defaults to the namespace of the provider.",
			Optional:            true,
			Computed:            true,
			Validators:          []validator.String{terraform.ObjectName{}},
		},
	}
}
