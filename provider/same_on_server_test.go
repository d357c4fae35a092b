package provider_test

import (
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
