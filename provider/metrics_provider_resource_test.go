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

// A provider becomes one of another type in place, with the time limit of the type.
func TestAccMetricsProviderTypes(t *testing.T) {
	f := newFleet(t)
	const address = "scheduler_metrics_provider.figures"
	key := api.Key{Kind: api.KindMetricsProvider, Namespace: "shop", Name: "figures"}
	config := func(attributes string) string {
		return f.config("resource \"scheduler_metrics_provider\" \"figures\" {\n name = \"figures\"\n namespace = \"shop\"\n" + attributes + "\n}")
	}
	updates := resource.ConfigPlanChecks{
		PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, plancheck.ResourceActionUpdate)},
		PostApplyPostRefresh: emptyPlan(),
	}
	limit := func(text string) []statecheck.StateCheck {
		return []statecheck.StateCheck{statecheck.ExpectKnownValue(address, tfjsonpath.New("timeout"), knownvalue.StringExact(text))}
	}
	imports := resource.TestStep{
		ResourceName: address, ImportState: true, ImportStateId: "shop/figures", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
	}
	kafka := `
		type  = "kafka"
		kafka = { url = "http://127.0.0.1:1", table = "figures", comparison_column = "name", value_column = "latest" }`
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy:             func(*terraform.State) error { return f.gone(key) },
		Steps: []resource.TestStep{
			{
				Config:            config(kafka),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
				ConfigStateChecks: limit("20s"),
			},
			imports,
			{
				Config: config(`
					type   = "influx"
					influx = { url = "http://127.0.0.1:1", org = "shop", bucket = "racks", token = "secret" }`),
				ConfigPlanChecks: updates, ConfigStateChecks: limit("10s"),
			},
			imports,
			{ // changed behind Terraform's back: the plan puts it right
				PreConfig: func() {
					edit(f, key, func(p *api.MetricsProvider) { p.Spec.Influx.Bucket, p.Spec.Timeout = "other", "1s" })
				},
				Config: config(`
					type   = "influx"
					influx = { url = "http://127.0.0.1:1", bucket = "db/week" }`),
				ConfigPlanChecks: updates, ConfigStateChecks: limit("10s"),
			},
			{
				Config: config(`
					type   = "static"
					static = { metrics = { load = 0.5 } }`),
				ConfigPlanChecks: updates, ConfigStateChecks: limit("20s"),
			},
		},
	})
}
