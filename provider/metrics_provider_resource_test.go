package provider_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// The type of a provider can be changed in place, and the default timeout follows the type.
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
					influx = { url = "http://127.0.0.1:1", org = "shop", bucket = "racks", token_wo = "secret" }`),
				ConfigPlanChecks: updates, ConfigStateChecks: limit("10s"),
			},
			imports,
			{ // changed outside of Terraform: the plan reverts it
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

// Each cluster has the value from the document that its labels select. Templates that could change the host are
// rejected in the plan.
func TestAccMetricsProviderHTTPJSON(t *testing.T) {
	f := newFleet(t)
	prices := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		price, ok := map[string]string{"/zones/de": "0.9", "/zones/fr": `"0.2"`}[r.URL.Path]
		if !ok || r.Header.Get("Authorization") != "Bearer hunter2" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = fmt.Fprintf(w, `{"prices":[{"cpu":%s}]}`, price)
	}))
	defer prices.Close()
	const address = "scheduler_metrics_provider.prices"
	key := api.Key{Kind: api.KindMetricsProvider, Name: "prices"}
	provider := func(url, value string) string {
		return fmt.Sprintf(`
			resource "scheduler_metrics_provider" "prices" {
			  name      = "prices"
			  type      = "http_json"
			  interval  = "200ms"
			  http_json = { url = %q, value = %q }
			  bearer_token_wo         = "hunter2"
			  bearer_token_wo_version = 1
			}`, url, value)
	}
	const rest = `
		resource "scheduler_metric" "cpu" {
		  name             = "cpu-price"
		  min              = 0
		  max              = 1
		  direction        = "descending"
		  metrics_provider = { name = scheduler_metrics_provider.prices.name, metric = "cpu" }
		}
		resource "scheduler_cluster" "berlin" {
		  name    = "berlin"
		  labels  = { zone = "de" }
		  metrics = [{ name = scheduler_metric.cpu.name }]
		}
		resource "scheduler_cluster" "paris" {
		  name    = "paris"
		  labels  = { zone = "fr" }
		  metrics = [{ name = scheduler_metric.cpu.name }]
		}
		resource "scheduler_cluster" "oslo" {
		  name    = "oslo"
		  metrics = [{ name = scheduler_metric.cpu.name }]
		}
		resource "scheduler_placement" "web" {
		  name               = "web"
		  namespace          = "shop"
		  metric_constraints = ["cpu-price < 1"]
		  depends_on         = [scheduler_cluster.berlin, scheduler_cluster.paris, scheduler_cluster.oslo]
		}
		data "scheduler_placement_explanation" "web" {
		  name      = "web"
		  namespace = "shop"
		  depends_on = [scheduler_placement.web]
		}
		output "oslo" {
		  value = one([for c in data.scheduler_placement_explanation.web.candidates : c.reason if c.cluster == "oslo"])
		}`
	refused := func(url, value, message string) resource.TestStep {
		return resource.TestStep{Config: f.config(provider(url, value)), PlanOnly: true, ExpectError: regexp.MustCompile(message)}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy:             func(*terraform.State) error { return f.gone(key) },
		Steps: []resource.TestStep{
			refused("http://$${labels.zone}.example.com/", "/a", `(?s)http_json.url.*only\s+have\s+placeholders\s+in\s+the\s+path\s+and\s+the\s+query`),
			refused("http://example.com/$${zone}", "/a", `(?s)http_json.url.*is\s+not\s+one\s+of`),
			refused("http://example.com/", "a", `(?s)http_json.value.*JSON\s+pointer`),
			{
				Config:           f.config(provider(prices.URL+"/zones/$${labels.zone}", "/prices/0/$${metric}"), rest),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue("scheduler_placement.web", tfjsonpath.New("clusters"),
						knownvalue.ListExact([]knownvalue.Check{knownvalue.StringExact("paris"), knownvalue.StringExact("berlin")})),
					statecheck.ExpectKnownOutputValue("oslo", knownvalue.StringRegexp(regexp.MustCompile(`cluster "oslo" has no label "zone"`))),
				},
			},
			{
				ResourceName: address, ImportState: true, ImportStateId: "prices", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
				ImportStateVerifyIgnore: []string{"bearer_token_wo_version"},
			},
		},
	})
}
