package provider

import (
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// explanationDocs says what the API's own documentation leaves to its reader.
var explanationDocs = map[string]string{
	"kind":       "What is explained: `placement` or `workload`.",
	"namespace":  "Namespace of what is explained.",
	"name":       "Name of what is explained, or of a metric.",
	"margin":     "How far the decision is from its next change.",
	"rejections": "How many clusters each filter removed, in the order of the filters; a cluster counts once, at the first filter that removed it.",
	"candidates": "Every cluster that was looked at.",
	"cluster":    "Name of the cluster.",
	"selected":   "The cluster is part of the decision.",
	"filter":     "The filter that removed the cluster.",
	"reason":     "Why the filter removed it.",
	"score":      "Score of the cluster; absent for rejected ones.",
	"scores":     "What the score is made of.",
	"weight":     "Weight in the score.",
	"count":      "How many clusters.",

	"affinity_name": "Name of the affinity group.",
	"group":         "Name of the group of clusters.",
	"chosen":        "The group is among those chosen.",
	"policy_reason": "Of a workload: why that policy was followed.",
}

func newPlacementExplanationDataSource() datasource.DataSource {
	answer := terraform.ComputedAttributes(reflect.TypeFor[api.Explanation](), explanationDocs)
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
		Description: "Why a placement has the clusters it has: for every cluster what rejected it or what its score is made of, the sentence that sums it up, and how far the decision is from its next change.",
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
