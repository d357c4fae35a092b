package provider_test

import (
	"fmt"
	"strings"
	"testing"
)

// Placements and workloads that do not say that they depend on the clusters of their
// configuration have a decision over all of them when the apply ends.
func TestAccForgottenDependsOn(t *testing.T) {
	for run := range 4 {
		f := newFleet(t)
		w := newWorkspace(t, fmt.Sprintf(`
			provider "scheduler" { endpoint = %q }
			resource "scheduler_placement" "all" { name = "all" }
			resource "scheduler_workload" "web" {
			  name        = "web"
			  api_version = "v1"
			  kind        = "Pod"
			}
			resource "scheduler_propagation_policy" "web" {
			  name               = "web"
			  resource_selectors = [{ api_version = "v1", kind = "Pod" }]
			}
			resource "scheduler_cluster" "many" {
			  count = 20
			  name  = "c${count.index}"
			}
			output "clusters" { value = length(scheduler_placement.all.clusters) }
			output "bound" { value = length(scheduler_workload.web.clusters) }`, f.endpoint))
		applied := w.ok("apply", "-auto-approve")
		for _, message := range applied.warnings {
			t.Errorf("run %d warns: %s: %s", run, message.Summary, message.Detail)
		}
		if plan := w.ok("plan", "-detailed-exitcode"); plan.code != 0 {
			t.Fatalf("run %d: the plan after the apply is not empty:\n%s", run, plan.output)
		}
		if !strings.Contains(applied.output, `"clusters":{"sensitive":false,"type":"number","value":20}`) {
			t.Errorf("run %d: the decision is made over fewer clusters:\n%s", run, applied.output)
		}
	}
}

// A placement that asks for nothing is warned of.
func TestAccNoClusterWanted(t *testing.T) {
	f := newFleet(t)
	w := newWorkspace(t, f.config(`resource "scheduler_placement" "none" {
		name               = "none"
		number_of_clusters = 0
	}`))
	if result := w.ok("plan"); len(result.warnings) == 0 || !strings.Contains(result.warnings[0].Detail, "number_of_clusters = 0") {
		t.Errorf("the warnings are %v", result.warnings)
	}
}

// Pods are not waited for where nobody splits them.
func TestAccSplitWhereSpotIsOff(t *testing.T) {
	f := newFleet(t)
	f.cluster("east")
	config := func(replicas int) string {
		return f.config(fmt.Sprintf(`
			resource "scheduler_propagation_policy" "web" {
			  name               = "web"
			  resource_selectors = [{ api_version = "apps/v1", kind = "Deployment" }]
			}
			resource "scheduler_workload" "web" {
			  name         = "web"
			  api_version  = "apps/v1"
			  kind         = "Deployment"
			  replicas     = %d
			  distribution = {}
			  wait         = { "for" = "distributed" }
			  timeouts     = { create = "10m", update = "10m" }
			  depends_on   = [scheduler_propagation_policy.web]
			}`, replicas))
	}
	w := newWorkspace(t, config(2))
	check := func(messages []message) {
		t.Helper()
		if len(messages) != 1 || !strings.Contains(messages[0].Detail, `Cluster "east" does not have spot enabled`) {
			t.Errorf("the messages are %v", messages)
		}
	}
	check(w.ok("apply", "-auto-approve").warnings)
	w.file("main.tf", config(3))
	check(w.run("apply", "-auto-approve").errors)
}
