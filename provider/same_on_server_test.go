package provider_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
)

// A list that is empty in one plan and absent in the next is no change of the decision: what follows it can be planned.
func TestAccEmptyAndAbsentFollowTheDecision(t *testing.T) {
	f := newFleet(t)
	placement := func(attributes string) string {
		return f.config(`
			resource "scheduler_cluster" "east" { name = "east" }
			resource "scheduler_placement" "web" {
				name       = "web"
				` + attributes + `
				depends_on = [scheduler_cluster.east]
			}
			resource "terraform_data" "on" {
				count = length(scheduler_placement.web.clusters)
				input = scheduler_placement.web.clusters[count.index]
			}`)
	}
	first := f.config(`
			resource "scheduler_cluster" "east" { name = "east" }
			resource "scheduler_placement" "web" {
				name       = "web"
				depends_on = [scheduler_cluster.east]
			}`)
	steps := []resource.TestStep{{Config: first}, {Config: placement("")}}
	for _, attributes := range []string{
		"tolerations = []", "", "label_constraints = []\nresource_requests = {}\nspread_constraints = []", "exclude_clusters = []",
		"min_improvement = 0\nmigration = true\nmetrics = { stickiness = 0.1 }", "metrics = {}",
	} {
		steps = append(steps, resource.TestStep{
			Config: placement(attributes),
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction("terraform_data.on[0]", plancheck.ResourceActionNoop)},
				PostApplyPostRefresh: emptyPlan(),
			},
		})
	}
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: factories, Steps: steps})
}

// A list whose absence means all must not become empty: the placement would be on every cluster.
func TestAccEmptyListThatMeansAll(t *testing.T) {
	f := newFleet(t)
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: factories, Steps: []resource.TestStep{
		{
			Config: f.config(`resource "scheduler_placement" "web" {
				name          = "web"
				cluster_names = [for name in ["east", "west"] : name if name == "north"]
			}`),
			PlanOnly:    true,
			ExpectError: regexp.MustCompile(`cluster_names:\s+must\s+not\s+be\s+empty:\s+omit\s+it\s+for\s+all\s+clusters`),
		},
		{
			Config: f.config(`data "scheduler_placement_preview" "web" {
				name         = "web"
				cluster_sets = []
			}`),
			PlanOnly:    true,
			ExpectError: regexp.MustCompile(`cluster_sets:\s+must\s+not\s+be\s+empty:\s+omit\s+it\s+for\s+all\s+clusters`),
		},
	}})
}
