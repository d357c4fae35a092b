package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Every refresh gives one warning that lists everything in the state that is not satisfied, whatever the cause.
func TestAccUnsatisfiedAtRefresh(t *testing.T) {
	f := newFleet(t)
	f.cluster("east", "location", "DE")
	f.put(&api.Placement{Metadata: api.Metadata{Name: "foreign", Namespace: "shop"}, Spec: api.PlacementSpec{LabelConstraints: []string{"location is MARS"}}})
	provider := func(settings string) string {
		return fmt.Sprintf("provider \"scheduler\" {\n  endpoint = %q\n  namespace = \"shop\"\n%s\n}\n", f.endpoint, settings)
	}
	resources := `
		resource "scheduler_placement" "nowhere" {
		  count             = 30
		  name              = "nowhere${count.index}"
		  label_constraints = ["location is FR"]
		}
		resource "scheduler_placement" "two" {
		  name               = "two"
		  number_of_clusters = 2
		}
		resource "scheduler_placement" "fine" { name = "fine" }
		resource "scheduler_workload" "orphan" {
		  name        = "orphan"
		  api_version = "v1"
		  kind        = "Pod"
		}
		resource "scheduler_workload" "web" {
		  name        = "web"
		  api_version = "apps/v1"
		  kind        = "Deployment"
		  replicas    = 2
		  depends_on  = [scheduler_propagation_policy.mars]
		}
		resource "scheduler_propagation_policy" "mars" {
		  name               = "mars"
		  resource_selectors = [{ api_version = "apps/v1", kind = "Deployment" }]
		  placement = {
		    cluster_affinity = { label_selector = { match_labels = { location = "MARS" } } }
		  }
		}`
	w := newWorkspace(t, provider("")+resources)
	w.ok("apply", "-auto-approve")
	for _, args := range [][]string{{"plan"}, {"plan", "-refresh-only"}} {
		result := w.ok(args...)
		// The workload that depends on a policy is read after it. If the policy is the first finding, it is reported
		// before the workload is read. Terraform merges both, because they have the same summary.
		var details []string
		for _, warning := range result.warnings {
			if details = append(details, warning.Detail); warning.Summary != result.warnings[0].Summary {
				t.Errorf("%v warns %q", args, warning.Summary)
			}
		}
		if len(details) == 0 || len(details) > 2 {
			t.Fatalf("%v gives %d warnings", args, len(details))
		}
		detail := strings.Join(details, "\n")
		for _, want := range []string{
			`placement "shop/nowhere0": `, `placement "shop/nowhere29": `, "0 of 1 cluster fit",
			`placement "shop/two": `, `workload "shop/orphan": `, `workload "shop/web": `, `propagation_policy "mars": shop/web: `,
			"SCHEDULER_WARN_UNSATISFIED",
		} {
			if !strings.Contains(detail, want) {
				t.Errorf("%v does not say %q:\n%s", args, want, detail)
			}
		}
		for _, unwanted := range []string{"foreign", `"shop/fine"`} {
			if strings.Contains(detail, unwanted) {
				t.Errorf("%v names %q:\n%s", args, unwanted, detail)
			}
		}
	}
	w.env = append(w.env, "SCHEDULER_WARN_UNSATISFIED=false")
	if result := w.ok("plan"); len(result.warnings) != 0 {
		t.Errorf("with the variable there are warnings: %v", result.warnings)
	}
	w.file("main.tf", provider("warn_unsatisfied = true")+resources)
	if result := w.ok("plan", "-parallelism=1"); len(result.warnings) == 0 {
		t.Error("the provider block does not go before the environment")
	}
	w.file("main.tf", provider("warn_unsatisfied = false")+resources)
	if result := w.ok("plan"); len(result.warnings) != 0 {
		t.Errorf("with the setting there are warnings: %v", result.warnings)
	}
}

// An update that failed for lack of a decision is planned again until there is one, so that a second run does not
// succeed.
func TestAccFailedUpdateIsPlannedAgain(t *testing.T) {
	f := newFleet(t)
	f.cluster("east", "location", "DE")
	config := func(location string) string {
		return f.config(fmt.Sprintf(`
			resource "scheduler_placement" "web" {
			  name              = "web"
			  label_constraints = ["location is %s"]
			  wait              = { on_timeout = "error" }
			}
			resource "scheduler_workload" "web" {
			  name        = "web"
			  api_version = "v1"
			  kind        = "Pod"
			  replicas    = 1
			  labels      = { location = %q }
			  depends_on  = [scheduler_propagation_policy.web]
			}
			resource "scheduler_propagation_policy" "web" {
			  name               = "web"
			  resource_selectors = [{ api_version = "v1", kind = "Pod" }]
			  placement = {
			    cluster_affinity = { label_selector = { match_labels = { location = %q } } }
			  }
			}`, location, location, location))
	}
	w := newWorkspace(t, config("DE"))
	w.ok("apply", "-auto-approve")
	w.file("main.tf", config("FR"))
	for range 2 {
		result := w.run("apply", "-auto-approve")
		if len(result.errors) != 2 {
			t.Fatalf("%d errors:\n%s", len(result.errors), result.output)
		}
		if result := w.ok("plan", "-detailed-exitcode"); result.code != 2 {
			t.Fatalf("the plan after the failed update is empty:\n%s", result.output)
		}
	}
	f.cluster("west", "location", "FR")
	f.until(api.Key{Kind: api.KindPlacement, Namespace: "default", Name: "web"}, "west")
	f.untilBound(api.Key{Kind: api.KindWorkload, Namespace: "default", Name: "web"}, counts{"west": 1}, nil)
	if result := w.ok("plan", "-detailed-exitcode"); result.code != 0 {
		t.Fatalf("the plan is not empty once the decision is there:\n%s", result.output)
	}
	w.ok("apply", "-auto-approve")
	if result := w.ok("plan", "-detailed-exitcode"); result.code != 0 {
		t.Fatalf("the plan is not empty after that:\n%s", result.output)
	}
}
