package provider_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func TestAccClusterNamespaces(t *testing.T) {
	f := newFleet(t)
	owned := func(owners string) string {
		return f.config(`
			resource "scheduler_cluster" "vault" {
			  name = "vault"
			  ` + owners + `
			}
			resource "scheduler_placement" "mine" {
			  name       = "web"
			  namespace  = "shop"
			  depends_on = [scheduler_cluster.vault]
			}
			resource "scheduler_placement" "foreign" {
			  name       = "web"
			  namespace  = "thief"
			  depends_on = [scheduler_cluster.vault]
			}
			data "scheduler_cluster" "vault" {
			  name = scheduler_cluster.vault.name
			}`)
	}
	strings := func(values ...string) []knownvalue.Check {
		checks := make([]knownvalue.Check, len(values))
		for i, v := range values {
			checks[i] = knownvalue.StringExact(v)
		}
		return checks
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: owned(`namespaces = []`), ExpectError: regexp.MustCompile(`(?s)namespaces.*must\s+not\s+be\s+empty`)},
			{Config: owned("namespace = \"shop\"\nnamespaces = [\"shop\", \"bank\"]"), ExpectError: regexp.MustCompile(`(?s)namespaces.*must\s+be\s+absent`)},
			{Config: owned(`namespaces = ["Not a name"]`), ExpectError: regexp.MustCompile(`(?s)namespaces.*lowercase`)},
			{
				Config: owned(`namespaces = ["shop", "bank", "shop"]`),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue("scheduler_cluster.vault", tfjsonpath.New("namespaces"), knownvalue.SetExact(strings("bank", "shop"))),
					statecheck.ExpectKnownValue("data.scheduler_cluster.vault", tfjsonpath.New("namespaces"), knownvalue.ListSizeExact(2)),
					statecheck.ExpectKnownValue("scheduler_placement.mine", tfjsonpath.New("clusters"), knownvalue.ListExact(strings("vault"))),
					statecheck.ExpectKnownValue("scheduler_placement.foreign", tfjsonpath.New("clusters"), knownvalue.ListExact(nil)),
				},
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{ // the order of a set does not matter
				PreConfig: func() {
					edit(f, api.Key{Kind: api.KindCluster, Name: "vault"}, func(c *api.Cluster) { c.Spec.Namespaces = []string{"shop", "bank"} })
				},
				Config:           owned(`namespaces = ["bank", "shop"]`),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction("scheduler_cluster.vault", plancheck.ResourceActionNoop)}},
			},
			{ResourceName: "scheduler_cluster.vault", ImportState: true, ImportStateId: "vault", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name"},
			{
				Config: owned(`namespaces = ["bank"]`),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue("scheduler_cluster.vault", tfjsonpath.New("namespaces"), knownvalue.SetExact(strings("bank"))),
				},
			},
			{
				Config: owned(``),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue("scheduler_cluster.vault", tfjsonpath.New("namespaces"), knownvalue.Null()),
				},
			},
		},
	})
}
