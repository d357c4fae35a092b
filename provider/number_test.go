package provider_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
)

// Numbers that Terraform computes have more digits than a float64. Every attribute takes them, and the next plan is empty.
func TestAccComputedNumbers(t *testing.T) {
	f := newFleet(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{{
			Config: f.config(`
				resource "scheduler_metric" "load" {
					name             = "load"
					min              = -100 / 3
					max              = 1e300 / 3
					allowed_values   = [1 / 3, 2 / 3, 1e-300 / 3]
					metrics_provider = { name = "none", metric = "load" }
				}
				resource "scheduler_placement" "p" {
					name               = "p"
					number_of_clusters = 1 / 3 * 0
					min_improvement    = 1 / 3
					metrics            = { stickiness = 1 / 7 }
				}
				data "scheduler_placement_preview" "p" {
					name            = "other"
					min_improvement = 1 / 3
				}`),
			ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
		}},
	})
	for _, test := range []struct{ attribute, value, want string }{
		{"number_of_clusters", "10 / 3", `number_of_clusters:\s+3\.33+5\s+is\s+not\s+a\s+whole\s+number`},
		{"number_of_clusters", "3 + 1e-60", `(?s)number_of_clusters:.*close\s+to\s+3,.*not\s+a\s+whole`},
		{"min_improvement", "1e-400", `min_improvement:\s+1e-400\s+is\s+too\s+small`},
		{"metrics", "{ stickiness = -1e-400 }", `metrics\.stickiness:\s+-1e-400\s+is\s+too\s+small`},
		{"min_improvement", "1e400", `min_improvement:\s+1e\+400\s+is\s+too\s+large`},
	} {
		t.Run(test.attribute+" = "+test.value, func(t *testing.T) {
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: factories,
				Steps: []resource.TestStep{{
					Config: f.config(`resource "scheduler_placement" "q" {
						name = "q"
						` + test.attribute + " = " + test.value + `
					}`),
					ExpectError: regexp.MustCompile(test.want),
					PlanOnly:    true,
				}},
			})
		})
	}
}
