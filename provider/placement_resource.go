package provider

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/constraint"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newPlacementResource() *terraform.Resource {
	attributes := terraform.SpecAttributes(api.KindPlacement)
	inputs := slices.Sorted(maps.Keys(attributes))
	attributes["clusters"] = schema.ListAttribute{
		MarkdownDescription: "The decision: names of the chosen clusters, best first. For scores, reasons and times, use the data sources `scheduler_placement_decisions` and `scheduler_placement_explanation`.",
		ElementType:         types.StringType,
		Computed:            true,
	}
	attributes["wait"] = terraform.WaitAttribute("placement", "cluster", "clusters")
	attributes[terraform.PreviewToken] = terraform.PreviewTokenAttribute("scheduler_placement_preview", "clusters")
	return &terraform.Resource{
		Kind:      api.KindPlacement,
		Unsettled: placementUnsettled,
		Description: "Selects clusters. " + referToClusters + "The server chooses clusters by labels, claims, taints, metrics, scores, custom resources and capacity, and keeps the choice current. " +
			"`clusters` is the decision as of the last refresh. It stays known in a plan unless the plan changes something that affects the decision.",
		Attributes:  attributes,
		Local:       map[string]bool{"wait": true, terraform.PreviewToken: true},
		Decision:    placementDecision,
		ConcernedBy: concerned,
		Previewed:   previewedPlacement,
		Inputs:      inputs,
		Choice:      clustersOfPlacement(),
		Warn:        warnOfPlacement,
	}
}

// warnOfPlacement warns about a placement that asks for what it cannot get.
func warnOfPlacement(config map[string]tftypes.Value, diags *diag.Diagnostics) {
	noClusterWanted(config, diags)
	warnOfExcluded(config, path.Empty(), diags)
	const versions, number = "kubernetes_version", "number_of_clusters"
	if wanted, err := constraint.ParseVersion(terraform.TextOf(config[versions])); err == nil && !wanted.Possible() {
		diags.AddAttributeWarning(path.Root(versions), "No version meets kubernetes_version", fmt.Sprintf("%s: no version meets all conditions of %q, so no cluster fits.", versions, wanted))
	}
	if names, wanted := config["cluster_names"], wholeOf(config[number]); names.IsFullyKnown() && !names.IsNull() {
		if listed := len(namesIn(names)); wanted > int64(listed) {
			diags.AddAttributeWarning(path.Root(number), "The placement asks for more clusters than it lists", fmt.Sprintf("%s is %d, but cluster_names lists %d.", number, wanted, listed))
		}
	}
}

// noClusterWanted warns about a placement that asks for no clusters: it is valid, but never gets
// any.
func noClusterWanted(config map[string]tftypes.Value, diags *diag.Diagnostics) {
	const name = "number_of_clusters"
	if n := config[name]; n.IsKnown() && !n.IsNull() && wholeOf(n) == 0 {
		diags.AddAttributeWarning(path.Root(name), "The placement asks for no cluster", "number_of_clusters = 0 selects no cluster, however many fit. Omit it to select all that fit.")
	}
}

// placementDecision returns the part of a placement's status that is in state.
func placementDecision(object api.Object) map[string]any {
	clusters := []any{}
	if placement, ok := object.(*api.Placement); ok {
		for _, name := range placement.Status.Clusters {
			clusters = append(clusters, name)
		}
	}
	return map[string]any{"clusters": clusters}
}

// previewedPlacement returns that part according to a preview.
func previewedPlacement(preview *api.Preview) map[string]any {
	clusters := make([]any, len(preview.Clusters))
	for i, name := range preview.Clusters {
		clusters[i] = name
	}
	return map[string]any{"clusters": clusters}
}

// clustersOfPlacement is the choice of clusters for a placement.
func clustersOfPlacement() *terraform.Choice {
	return &terraform.Choice{
		Chosen: "cluster",
		Moved:  true,
		State: func(object api.Object) (state terraform.ChoiceState, ok bool) {
			if placement, ok := object.(*api.Placement); ok {
				return terraform.ChoiceState{Observed: placement.Status.ObservedGeneration, Conditions: placement.Status.Conditions, Found: api.ConditionScheduled}, true
			}
			return state, false
		},
	}
}

// placementUnsettled: the strategy determines which of its settings are allowed.
var placementUnsettled = terraform.Choices(api.KindPlacement)
