package provider_test

import (
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func TestAccMoveWindowLifecycle(t *testing.T) {
	for _, namespace := range []string{"", "shop"} {
		t.Run("namespace "+namespace, func(t *testing.T) {
			f := newFleet(t)
			id, attribute := "nights", ""
			if namespace != "" {
				id, attribute = namespace+"/nights", fmt.Sprintf("namespace = %q", namespace)
			}
			key := api.Key{Kind: api.KindMoveWindow, Namespace: namespace, Name: "nights"}
			const nights = "scheduler_move_window.nights"
			config := func(more string) string {
				return f.config(fmt.Sprintf("resource \"scheduler_move_window\" \"nights\" {\n name = \"nights\"\n%s\n%s\n}", attribute, more))
			}
			settled := resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()}
			updated := resource.ConfigPlanChecks{
				PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(nights, plancheck.ResourceActionUpdate)},
				PostApplyPostRefresh: emptyPlan(),
			}
			full := `
				schedule       = "0 22 * * *"
				duration       = "6h"
				effect         = "allow"
				time_zone      = "Europe/Berlin"
				ends_at        = "2199-01-01T00:00:00+01:00"
				label_selector = { match_labels = { tier = "critical" } }
				description    = "nights"
				labels         = { team = "night" }`
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: factories,
				CheckDestroy:             func(*terraform.State) error { return f.gone(key) },
				Steps: []resource.TestStep{
					{
						Config: config(""), ConfigPlanChecks: settled,
						ConfigStateChecks: []statecheck.StateCheck{
							statecheck.ExpectKnownValue(nights, tfjsonpath.New("effect"), knownvalue.StringExact("deny")),
							statecheck.ExpectKnownValue(nights, tfjsonpath.New("time_zone"), knownvalue.StringExact("UTC")),
						},
					},
					{Config: config(full), ConfigPlanChecks: updated},
					{ResourceName: nights, ImportState: true, ImportStateId: id, ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name"},
					{ // drift: the plan reverts it
						PreConfig: func() { edit(f, key, func(w *api.MoveWindow) { w.Spec.Duration, w.Spec.LabelSelector = "1h", nil }) },
						Config:    config(full), ConfigPlanChecks: updated,
					},
				},
			})
		})
	}
}

// A window holds a decision that another cluster has become better for. When the window goes, the decision is known after
// apply, and moves in the same apply.
func TestAccMoveWindowHoldsADecision(t *testing.T) {
	f := newFleet(t)
	f.cluster("a")
	f.cluster("b")
	config := func(windows, a int) string {
		return f.config(fmt.Sprintf(`
			resource "scheduler_move_window" "freeze" {
			  count       = %d
			  name        = "freeze"
			  namespace   = "shop"
			  description = "incident 42"
			}
			resource "scheduler_placement_score" "a" {
			  cluster = "a"
			  name    = "s"
			  scores  = { v = %d }
			}
			resource "scheduler_placement_score" "b" {
			  cluster = "b"
			  name    = "s"
			  scores  = { v = 50 }
			}
			resource "scheduler_placement" "web" {
			  name               = "web"
			  namespace          = "shop"
			  number_of_clusters = 1
			  strategy           = "prioritizers"
			  prioritizer_policy = { mode = "exact", configurations = [{ type = "addon", resource_name = "s", score_name = "v" }] }
			  depends_on         = [scheduler_move_window.freeze, scheduler_placement_score.a, scheduler_placement_score.b]
			}`, windows, a))
	}
	settled := []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}
	unknown := plancheck.ExpectUnknownValue("scheduler_placement.web", tfjsonpath.New("clusters"))
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: config(1, 90), ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: settled}, ConfigStateChecks: []statecheck.StateCheck{clusters("a")}},
			{Config: config(1, 10), ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: settled}, ConfigStateChecks: []statecheck.StateCheck{clusters("a")}},
			{
				Config:            config(0, 10),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{unknown}, PostApplyPostRefresh: settled},
				ConfigStateChecks: []statecheck.StateCheck{clusters("b")},
			},
		},
	})
}
