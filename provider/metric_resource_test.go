package provider_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func TestAccMetricLifecycle(t *testing.T) {
	for _, namespace := range []string{"", "shop"} {
		t.Run("namespace "+namespace, func(t *testing.T) {
			f := newFleet(t)
			id, attribute := "heat", ""
			if namespace != "" {
				id, attribute = namespace+"/heat", fmt.Sprintf("namespace = %q", namespace)
			}
			providerKey := api.Key{Kind: api.KindMetricsProvider, Namespace: namespace, Name: "table"}
			metricKey := api.Key{Kind: api.KindMetric, Namespace: namespace, Name: "heat"}
			table := fmt.Sprintf(`
				resource "scheduler_metrics_provider" "table" {
				  name = "table"
				  %s
				  type     = "static"
				  interval = "200ms"
				  static   = { metrics = { heat_demand_zone_1 = 0.25, odd = 0.1 } }
				}`, attribute)
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: factories,
				CheckDestroy:             func(*terraform.State) error { return f.gone(providerKey, metricKey) },
				Steps: []resource.TestStep{
					{
						Config: f.config(table, fmt.Sprintf(`
							resource "scheduler_metric" "heat" {
							  name = "heat"
							  %s
							  min  = 0
							  max  = 0.7
							  metrics_provider = { name = scheduler_metrics_provider.table.name, metric = "heat_demand_zone_1" }
							}`, attribute)),
						ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
						ConfigStateChecks: []statecheck.StateCheck{
							statecheck.ExpectKnownValue("scheduler_metric.heat", tfjsonpath.New("direction"), knownvalue.StringExact("ascending")),
							statecheck.ExpectKnownValue("scheduler_metric.heat", tfjsonpath.New("on_failure"), knownvalue.StringExact("exclude")),
						},
					},
					{
						Config: f.config(table, fmt.Sprintf(`
							resource "scheduler_metric" "heat" {
							  name = "heat"
							  %s
							  labels         = { unit = "ratio" }
							  min            = -1.5
							  max            = 1e3
							  allowed_values = [0.1, 0.25, 1]
							  direction      = "descending"
							  on_failure     = "last_value"
							  max_age        = "90s"
							  metrics_provider = { name = scheduler_metrics_provider.table.name, metric = "odd" }
							}`, attribute)),
						ConfigPlanChecks: resource.ConfigPlanChecks{
							PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction("scheduler_metric.heat", plancheck.ResourceActionUpdate)},
							PostApplyPostRefresh: emptyPlan(),
						},
					},
					{
						ResourceName: "scheduler_metric.heat", ImportState: true, ImportStateId: id,
						ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
					},
					{
						ResourceName: "scheduler_metrics_provider.table", ImportState: true, ImportStateId: id[:strings.LastIndex(id, "heat")] + "table",
						ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
					},
					{
						PreConfig: func() {
							edit(f, metricKey, func(m *api.Metric) { m.Spec.MaxAge, m.Spec.AllowedValues = "", nil })
							f.delete(providerKey)
						},
						RefreshState:       true,
						ExpectNonEmptyPlan: true,
						RefreshPlanChecks: resource.RefreshPlanChecks{PostRefresh: []plancheck.PlanCheck{
							plancheck.ExpectResourceAction("scheduler_metric.heat", plancheck.ResourceActionUpdate),
							plancheck.ExpectResourceAction("scheduler_metrics_provider.table", plancheck.ResourceActionCreate),
						}},
					},
				},
			})
		})
	}
}

func TestAccMetricsProviderSecrets(t *testing.T) {
	f := newFleet(t)
	config := func(secret string, version int) string {
		return f.config(fmt.Sprintf(`
			resource "scheduler_metrics_provider" "prom" {
			  name                    = "prom"
			  type                    = "prometheus"
			  prometheus              = { url = "http://127.0.0.1:1" }
			  timeout                 = "1s"
			  bearer_token_wo         = %[1]q
			  bearer_token_wo_version = %[2]d
			  headers_wo              = { X-Scope-OrgID = %[1]q }
			  headers_wo_version      = %[2]d
			}`, secret, version))
	}
	prom := "scheduler_metrics_provider.prom"
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{
				Config: config("hush-1", 1),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(prom, tfjsonpath.New("bearer_token_wo"), knownvalue.Null()),
					statecheck.ExpectKnownValue(prom, tfjsonpath.New("headers_wo"), knownvalue.Null()),
				},
				Check: func(s *terraform.State) error {
					data, err := json.Marshal(s)
					if err == nil && strings.Contains(string(data), "hush") {
						err = fmt.Errorf("the state has a secret: %s", data)
					}
					return err
				},
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{
				Config: config("hush-2", 2),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(prom, plancheck.ResourceActionUpdate)},
					PostApplyPostRefresh: emptyPlan(),
				},
				Check: func(*terraform.State) error {
					object, err := f.client.Get(f.ctx(), api.Key{Kind: api.KindMetricsProvider, Name: "prom"})
					if err == nil && object.Meta().Generation != 2 {
						err = fmt.Errorf("generation is %d: the new secrets did not arrive", object.Meta().Generation)
					}
					return err
				},
			},
		},
	})
}
