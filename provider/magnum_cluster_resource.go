package provider

import (
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newMagnumClusterResource() *terraform.Resource {
	attributes := terraform.SpecAttributes(api.KindMagnumCluster)
	inputs := slices.Sorted(maps.Keys(attributes))
	for name, description := range map[string]string{
		"project":              "The decision: name of the chosen `scheduler_openstack_project`, null where none fits. Its score, and the labels and metrics that the cluster has from it, are read with the data source `scheduler_magnum_cluster`.",
		"project_id":           "ID of that project in the OpenStack.",
		"selected_template_id": "Template to create the cluster from: `template_id`, or that of the project.",
	} {
		attributes[name] = schema.StringAttribute{MarkdownDescription: description, Computed: true}
	}
	attributes["wait"] = terraform.WaitAttribute("cluster", "project", "project")
	return &terraform.Resource{
		Kind: api.KindMagnumCluster,
		Description: "A cluster to be created by OpenStack Magnum. The server chooses its project from the `scheduler_openstack_project`s in its namespace, by their labels and metrics; " +
			"an `openstack_containerinfra_cluster_v1` with `project_id` and `selected_template_id` then creates it. The choice stays as long as the project exists and fits. " +
			"If the projects are in the same configuration, make this resource depend on them.",
		Attributes:  attributes,
		Local:       map[string]bool{"wait": true},
		Decision:    magnumProject,
		ConcernedBy: concerned,
		Inputs:      inputs,
		Choice:      projectOfMagnumCluster(),
	}
}

// magnumProject returns the part of a Magnum cluster's status that is in state.
func magnumProject(object api.Object) map[string]any {
	decision := map[string]any{"project": nil, "project_id": nil, "selected_template_id": nil}
	cluster, ok := object.(*api.MagnumCluster)
	if !ok {
		return decision
	}
	for name, value := range map[string]string{
		"project": cluster.Status.Project, "project_id": cluster.Status.ProjectID, "selected_template_id": cluster.Status.TemplateID,
	} {
		if value != "" {
			decision[name] = value
		}
	}
	return decision
}

// projectOfMagnumCluster is the choice of a project for a Magnum cluster.
func projectOfMagnumCluster() *terraform.Choice {
	return &terraform.Choice{
		Chosen: "project",
		State: func(object api.Object) (state terraform.ChoiceState, ok bool) {
			if cluster, ok := object.(*api.MagnumCluster); ok {
				return terraform.ChoiceState{Observed: cluster.Status.ObservedGeneration, Conditions: cluster.Status.Conditions, Found: api.ConditionBound}, true
			}
			return state, false
		},
	}
}
