package provider_test

import (
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// The order of zones and taints does not matter, in the configuration and in the server's responses.
func TestAccClusterOrderDoesNotMatter(t *testing.T) {
	f := newFleet(t)
	east := "scheduler_cluster.east"
	cluster := func(zones, taints string) string {
		return f.config(`
			resource "scheduler_cluster" "east" {
			  name   = "east"
			  zones  = [` + zones + `]
			  taints = [` + taints + `]
			}
			output "effects" { value = { for taint in scheduler_cluster.east.taints : taint.key => taint.effect } }`)
	}
	const (
		dedicated = `{ key = "dedicated", value = "web", effect = "NoSchedule" }`
		old       = `{ key = "old", value = "", effect = "PreferNoSelect" }`
	)
	none := resource.ConfigPlanChecks{PreApply: emptyPlan(), PostApplyPostRefresh: emptyPlan()}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{
				Config:           cluster(`"b", "a", "c"`, old+","+dedicated),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{Config: cluster(`"c", "b", "a"`, dedicated+","+old), ConfigPlanChecks: none},
			{ // the server returns them in another order
				PreConfig: func() {
					edit(f, eastKey, func(c *api.Cluster) {
						slices.Reverse(c.Spec.Zones)
						slices.Reverse(c.Spec.Taints)
					})
				},
				Config: cluster(`"b", "a", "c"`, old+","+dedicated), ConfigPlanChecks: none,
			},
			{ // one of them changes
				Config: cluster(`"b", "a"`, old+`, { key = "dedicated", value = "web", effect = "NoSelect" }`),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(east, plancheck.ResourceActionUpdate)},
					PostApplyPostRefresh: emptyPlan(),
				},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownOutputValue("effects", knownvalue.MapExact(map[string]knownvalue.Check{
						"dedicated": knownvalue.StringExact("NoSelect"), "old": knownvalue.StringExact("PreferNoSelect"),
					})),
				},
			},
		},
	})
}
