package provider

import (
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newPlacementExplanationDataSource() datasource.DataSource {
	answer := terraform.ComputedAttributes(reflect.TypeFor[api.Explanation]())
	for _, name := range ofWorkloads {
		delete(answer, name)
	}
	if candidates, ok := answer["candidates"].(schema.ListNestedAttribute); ok {
		for _, name := range ofWorkloads {
			delete(candidates.NestedObject.Attributes, name)
		}
	}
	return &terraform.DataSource{
		Name:        "placement_explanation",
		Subject:     "the explanation of placement",
		Description: "Why a placement has its clusters: a summary, the filter that rejected each other cluster, the parts of each score, and how close the decision is to moving.",
		Arguments:   placementArguments(),
		Answer:      answer,
		Ask: func(ctx context.Context, s *terraform.Session, arguments map[string]any) (map[string]any, error) {
			explanation, err := s.Client().Explain(ctx, s.NamespacedKey(api.KindPlacement, arguments))
			if err != nil {
				return nil, err
			}
			return terraform.JSONDocument(explanation)
		},
	}
}
