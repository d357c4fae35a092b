package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// If the elements of a list move, the instances of a count exchange their names. Terraform does not order the deletion
// of a name before its creation, so the create waits for it.
func TestAccNamesMoveBetweenInstances(t *testing.T) {
	for name, lifecycle := range map[string]string{"destroyed first": "", "created first": "lifecycle { create_before_destroy = true }"} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			config := func(names string) string {
				return f.config(fmt.Sprintf(`
					locals { names = split("", %q) }
					resource "scheduler_cluster" "c" {
					  count = length(local.names)
					  name  = local.names[count.index]
					  %s
					}`, names, lifecycle))
			}
			w := newWorkspace(t, config("abcdefgh"))
			w.ok("apply", "-auto-approve")
			for _, names := range []string{"bcdefgh", "cdefgh", "efgh"} {
				w.file("main.tf", config(names))
				w.ok("apply", "-auto-approve")
				if result := w.ok("plan", "-detailed-exitcode"); result.code != 0 {
					t.Errorf("after %s, the next plan changes something:\n%s", names, result.output)
				}
			}
		})
	}
}

// An object that exists is explained with what may have created it; one that an interrupted apply created is recognized.
func TestAccInterruptedApply(t *testing.T) {
	f := newFleet(t)
	w := newWorkspace(t, f.config(`resource "scheduler_cluster" "c" { name = "c" }`))
	w.ok("apply", "-auto-approve")
	for _, name := range []string{"d", "e", "f"} {
		f.cluster(name)
	}
	w.file("terraform.tfstate", "")
	result := w.run("apply", "-auto-approve")
	if len(result.errors) != 1 {
		t.Fatalf("%d errors:\n%s", len(result.errors), result.output)
	}
	for _, want := range []string{"exactly this object", "to = scheduler_cluster.<name>\n        id = \"c\"", "moved", "create_before_destroy"} {
		if !strings.Contains(result.errors[0].Detail, want) {
			t.Errorf("the error does not say %q:\n%s", want, result.errors[0].Detail)
		}
	}
	w.file("main.tf", f.config(`
		resource "scheduler_cluster" "more" {
		  for_each = toset(["d", "e", "f"])
		  name     = each.key
		}`))
	long := 0
	result = w.run("apply", "-auto-approve")
	for _, e := range result.errors {
		if strings.Contains(e.Detail, "create_before_destroy") {
			long++
		}
		if !strings.Contains(e.Detail, "terraform import scheduler_cluster.<name> ") {
			t.Errorf("an error does not say how to import:\n%s", e.Detail)
		}
	}
	if long != 1 || len(result.errors) != 3 {
		t.Errorf("%d of %d errors have a long text:\n%s", long, len(result.errors), result.output)
	}
}

// What a token does not allow is explained once, whatever the number of resources.
func TestAccForbiddenOnce(t *testing.T) {
	f := newFleet(t)
	viewer := createToken(t, f.endpoint, `{"role":"viewer"}`)
	w := newWorkspace(t, fmt.Sprintf(`
		provider "scheduler" {
		  endpoint = %q
		  token    = %q
		}
		resource "scheduler_cluster" "c" {
		  count = 20
		  name  = "c${count.index}"
		}
		resource "scheduler_placement" "web" { name = "web" }`, f.endpoint, viewer))
	result := w.run("apply", "-auto-approve")
	explained := 0
	for _, e := range result.errors {
		if e.Detail != "" {
			explained++
		}
		if e.Detail != "" && !strings.Contains(e.Detail, "role viewer") {
			t.Errorf("the error says %q", e.Detail)
		}
	}
	if explained != 1 || len(result.errors) != 21 {
		t.Errorf("%d of %d errors have a text:\n%s", explained, len(result.errors), result.output)
	}
}

// A metrics provider that does not respond is one warning, whatever depends on it.
func TestAccOneWarningForAMetricsProvider(t *testing.T) {
	f := newFleet(t)
	w := newWorkspace(t, f.config(`
		resource "scheduler_metrics_provider" "down" {
		  name       = "down"
		  type       = "prometheus"
		  prometheus = { url = "http://127.0.0.1:9" }
		}
		resource "scheduler_metric" "m" {
		  count = 3
		  name  = "m${count.index}"
		  min   = 0
		  max   = 1
		  metrics_provider = { name = scheduler_metrics_provider.down.name, metric = "x" }
		}
		resource "scheduler_cluster" "c" {
		  count   = 3
		  name    = "c${count.index}"
		  metrics = [for m in scheduler_metric.m : { name = m.name, weight = 1 }]
		}`))
	result := w.run("apply", "-auto-approve")
	if len(result.warnings) != 1 || !strings.Contains(result.warnings[0].Summary, `metrics_provider "down"`) {
		t.Errorf("%d warnings:\n%s", len(result.warnings), result.output)
	}
}

// The apply that creates a policy may create its workloads after it, so only a later refresh says that there are none.
func TestAccWorkloadsAfterTheirPolicy(t *testing.T) {
	f := newFleet(t)
	f.cluster("one")
	policy := `
		resource "scheduler_propagation_policy" "all" {
		  name               = "all"
		  resource_selectors = [{ api_version = "apps/v1", kind = "Deployment" }]
		  placement          = { cluster_affinity = { cluster_names = ["one"] } }
		}`
	workload := `
		resource "scheduler_workload" "web" {
		  name        = "web"
		  api_version = "apps/v1"
		  kind        = "Deployment"
		  replicas    = 1
		  depends_on  = [scheduler_propagation_policy.all]
		}`
	w := newWorkspace(t, f.config(policy, workload))
	if result := w.ok("apply", "-auto-approve"); len(result.warnings) != 0 {
		t.Errorf("%d warnings:\n%s", len(result.warnings), result.output)
	}
	w.file("main.tf", f.config(policy))
	w.ok("apply", "-auto-approve")
	if err := f.gone(api.Key{Kind: api.KindWorkload, Namespace: "default", Name: "web"}); err != nil {
		t.Fatal(err)
	}
	if result := w.ok("plan"); len(result.warnings) != 1 || !strings.Contains(result.warnings[0].Detail, `propagation_policy "all": `) {
		t.Errorf("%d warnings:\n%s", len(result.warnings), result.output)
	}
}
