package provider_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

var webKey = api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}

// clusters checks the decision in state.
func clusters(names ...string) statecheck.StateCheck {
	checks := make([]knownvalue.Check, len(names))
	for i, name := range names {
		checks[i] = knownvalue.StringExact(name)
	}
	return statecheck.ExpectKnownValue("scheduler_placement.web", tfjsonpath.New("clusters"), knownvalue.ListExact(checks))
}

func emptyPlan() []plancheck.PlanCheck { return []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()} }

func TestAccPlacementLifecycle(t *testing.T) {
	f := newFleet(t)
	f.cluster("berlin", "location", "DE")
	f.cluster("paris", "location", "FR")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy:             func(*terraform.State) error { return f.gone(webKey) },
		Steps: []resource.TestStep{
			{
				Config: f.config(`
					resource "scheduler_placement" "web" {
					  name               = "web"
					  namespace          = "shop"
					  number_of_clusters = 1
					  label_constraints  = ["location is DE"]
					}`),
				ConfigStateChecks: []statecheck.StateCheck{clusters("berlin")},
				ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{
				ResourceName: "scheduler_placement.web", ImportState: true, ImportStateId: "shop/web",
				ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
			},
			{ // another constraint: the decision is unknown in the plan, and moves
				Config: f.config(`
					resource "scheduler_placement" "web" {
					  name               = "web"
					  namespace          = "shop"
					  number_of_clusters = 1
					  label_constraints  = ["location is FR"]
					}`),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction("scheduler_placement.web", plancheck.ResourceActionUpdate),
					plancheck.ExpectUnknownValue("scheduler_placement.web", tfjsonpath.New("clusters")),
				}, PostApplyPostRefresh: emptyPlan()},
				ConfigStateChecks: []statecheck.StateCheck{clusters("paris")},
			},
			{ // a label: the decision stays known
				Config: f.config(`
					resource "scheduler_placement" "web" {
					  name               = "web"
					  namespace          = "shop"
					  labels             = { team = "a" }
					  number_of_clusters = 1
					  label_constraints  = ["location is FR"]
					}`),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction("scheduler_placement.web", plancheck.ResourceActionUpdate),
					plancheck.ExpectKnownValue("scheduler_placement.web", tfjsonpath.New("clusters"), knownvalue.ListExact([]knownvalue.Check{knownvalue.StringExact("paris")})),
				}, PostApplyPostRefresh: emptyPlan()},
			},
		},
	})
}
