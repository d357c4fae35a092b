package provider_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestAccDanglingReferencesWarn checks that an object that refers to something that is missing, or does not respond, is
// created with a warning that says what is missing and why.
func TestAccDanglingReferencesWarn(t *testing.T) {
	f := newFleet(t)
	w := newWorkspace(t, f.config(`
		resource "scheduler_metric" "orphan" {
		  name = "orphan"
		  min  = 0
		  max  = 1
		  metrics_provider = { name = "nowhere", metric = "x" }
		}
		resource "scheduler_metrics_provider" "down" {
		  name       = "down"
		  type       = "prometheus"
		  prometheus = { url = "http://127.0.0.1:9" }
		}
		resource "scheduler_metric" "silent" {
		  name = "silent"
		  min  = 0
		  max  = 1
		  metrics_provider = { name = scheduler_metrics_provider.down.name, metric = "x" }
		}
		resource "scheduler_cluster" "rated" {
		  name    = "rated"
		  metrics = [{ name = "absent", weight = 1 }, { name = scheduler_metric.silent.name, weight = 1 }]
		}
		resource "scheduler_cluster" "zone" {
		  name      = "zone"
		  openstack = { cloud = "gone", region = "r", availability_zone = "z" }
		}
		resource "scheduler_cluster_set" "set" {
		  name     = "set"
		  clusters = [scheduler_cluster.rated.name, "missing"]
		}
		resource "scheduler_placement" "web" {
		  name         = "web"
		  cluster_sets = [scheduler_cluster_set.set.name, "no-such-set"]
		}
		resource "scheduler_propagation_policy" "idle" {
		  name               = "idle"
		  resource_selectors = [{ api_version = "apps/v1", kind = "Deployment" }]
		  placement          = { cluster_affinity = { cluster_names = ["nobody"] } }
		}`))
	applied := w.run("apply", "-auto-approve")
	var all strings.Builder
	for _, warning := range applied.warnings {
		fmt.Fprintf(&all, "%s: %s\n", warning.Summary, warning.Detail)
	}
	for _, want := range []string{
		`No value for metric "orphan": metrics_provider "nowhere" does not exist`,
		`No response from metrics_provider "down": `,
		"connection refused",
		`A metric of cluster "rated" has no value: Metric "absent" is not available: UnknownMetric`,
		`metric "silent" is not available: UnreachableMetricsProvider`,
		`cluster "zone" refers to a missing object: openstack.cloud names cloud "gone", which does not exist`,
		`cluster_set "set" refers to a missing object: clusters[1] names cluster "missing", which does not exist`,
		`placement "default/web" refers to a missing object: cluster_sets[1] names cluster_set "no-such-set", which does not exist`,
		`placement.cluster_affinity.cluster_names[0] names cluster "nobody", which does not exist`,
	} {
		if !strings.Contains(strings.ToLower(all.String()), strings.ToLower(want)) {
			t.Errorf("no warning has %q", want)
		}
	}
	if t.Failed() {
		t.Logf("the warnings:\n%s\nthe errors: %v", &all, applied.errors)
	}
}
