package provider_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A placement without depends_on on the clusters in its configuration has a decision that includes them at the end of
// the apply, even if it was decided before.
func TestAccMissingDependsOn(t *testing.T) {
	f := newFleet(t)
	d := newDoor(t, f.endpoint)
	clusterComes, placed := make(chan struct{}), make(chan struct{})
	await := func(what chan struct{}, r *http.Request) {
		select {
		case <-what:
		case <-r.Context().Done():
		}
	}
	d.let(func(_ int64, w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method != http.MethodPut:
		case strings.Contains(r.URL.Path, "/clusters/"):
			close(clusterComes)
			await(placed, r)
		case strings.Contains(r.URL.Path, "/placements/"):
			await(clusterComes, r)
			d.proxy.ServeHTTP(w, r)
			close(placed)
			return false
		}
		return true
	})
	w := newWorkspace(t, fmt.Sprintf(`
		provider "scheduler" { endpoint = %q }
		resource "scheduler_placement" "all" { name = "all" }
		resource "scheduler_cluster" "late" { name = "late" }
		output "clusters" { value = scheduler_placement.all.clusters }`, d.URL))
	applied := w.ok("apply", "-auto-approve")
	if len(applied.warnings) > 0 {
		t.Errorf("the apply warns: %v", applied.warnings)
	}
	if plan := w.ok("plan", "-detailed-exitcode"); plan.code != 0 {
		t.Errorf("the plan after the apply is not empty:\n%s", plan.output)
	}
}

// A placement that requests no clusters causes a warning.
func TestAccZeroClustersRequested(t *testing.T) {
	f := newFleet(t)
	w := newWorkspace(t, f.config(`resource "scheduler_placement" "none" {
		name               = "none"
		number_of_clusters = 0
	}`))
	if result := w.ok("plan"); len(result.warnings) == 0 || !strings.Contains(result.warnings[0].Detail, "number_of_clusters = 0") {
		t.Errorf("the warnings are %v", result.warnings)
	}
}

// The provider does not wait for a split where spot is disabled.
func TestAccSplitWithSpotDisabled(t *testing.T) {
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
		if !slices.ContainsFunc(messages, func(m message) bool { return strings.Contains(m.Detail, `Cluster "east" does not have spot enabled`) }) {
			t.Errorf("the messages are %v", messages)
		}
	}
	check(w.ok("apply", "-auto-approve").warnings)
	w.file("main.tf", config(3))
	check(w.run("apply", "-auto-approve").errors)
}
