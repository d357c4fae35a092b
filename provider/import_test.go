package provider_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// required declares the provider's source. The library adds it to the configuration of every step, except for an import
// in the first step.
const required = `
	terraform {
	  required_providers {
	    scheduler = { source = "scheduler/scheduler" }
	  }
	}`

func TestAccImportBadID(t *testing.T) {
	f := newFleet(t)
	for _, test := range []struct{ resource, id, want string }{
		{"scheduler_cluster", "shop/east", `does not have the form\s+<name>`},
		{"scheduler_metric", "/heat", `does not have the form\s+<namespace>/<name>,\s+or\s+<name>`},
		{"scheduler_metrics_provider", "a/b/c", `does not have the form`},
		{"scheduler_cluster_set", "shop/eu", `does not have the form\s+<name>`},
		{"scheduler_placement_score", "load", `does not have the form\s+<cluster>/<name>`},
		{"scheduler_placement_score", "/load", `does not have the form`},
		{"scheduler_placement", "shop/", `does not have the form`},
		{"scheduler_workload", "a/b/c", `does not have the form`},
		{"scheduler_workload", "shop/nobody", `(?s)Cannot import non-existent remote object`},
		{"scheduler_propagation_policy", "shop/", `does not have the form\s+<namespace>/<name>,\s+or\s+<name>`},
		{"scheduler_propagation_policy", "nobody", `(?s)Cannot import non-existent remote object`},
		{"scheduler_cloud", "shop/de", `does not have the form\s+<name>`},
		{"scheduler_cloud", "nowhere", `(?s)Cannot import non-existent remote object`},
		{"scheduler_openstack_project", "a/b/c", `does not have the form\s+<namespace>/<name>,\s+or\s+<name>`},
		{"scheduler_openstack_project", "shop/nobody", `(?s)Cannot import non-existent remote object`},
		{"scheduler_magnum_cluster", "/k", `does not have the form`},
		{"scheduler_magnum_cluster", "shop/nobody", `(?s)Cannot import non-existent remote object`},
		{"scheduler_placement", "shop/nobody", `(?s)Cannot import non-existent remote object`},
	} {
		t.Run(test.resource+" "+test.id, func(t *testing.T) {
			t.Parallel() // nothing is imported
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: factories,
				Steps: []resource.TestStep{{
					Config:       f.config(required, `resource "`+test.resource+`" "x" {`+"\n"+minimal[test.resource]+"\n}"),
					ResourceName: test.resource + ".x", ImportState: true, ImportStateId: test.id,
					ExpectError: regexp.MustCompile(test.want),
				}},
			})
		})
	}
}

// minimal is the smallest valid configuration of each resource.
var minimal = map[string]string{
	"scheduler_cluster":          `name = "x"`,
	"scheduler_metrics_provider": "name = \"x\"\n type = \"static\"\n static = {}",
	"scheduler_metric":           "name = \"x\"\n min = 0\n max = 1\n metrics_provider = { name = \"p\", metric = \"m\" }",
	"scheduler_cluster_set":      "name = \"x\"\n selector = {}",
	"scheduler_placement_score":  "name = \"x\"\n cluster = \"x\"\n scores = {}",
	"scheduler_placement":        `name = "x"`,
	"scheduler_role":             "name = \"x\"\n rules = [{ verbs = [\"read\"] }]",
	"scheduler_role_binding":     "name = \"x\"\n role = \"viewer\"\n token_ids = [\"0123456789abcdef\"]",
	"scheduler_move_window":      `name = "x"`,
	"scheduler_workload":         "name = \"x\"\n api_version = \"v1\"\n kind = \"Pod\"",

	"scheduler_cloud":             `name = "x"`,
	"scheduler_openstack_project": `name = "x"`,
	"scheduler_magnum_cluster":    `name = "x"`,

	"scheduler_propagation_policy": "name = \"x\"\n resource_selectors = [{ api_version = \"v1\", kind = \"Pod\" }]",
}

func TestAccIdentity(t *testing.T) {
	f := newFleet(t)
	f.put(&api.Metric{Metadata: api.Metadata{Name: "there"}, Spec: api.MetricSpec{
		Min: new(0.0), Max: new(1.0), MetricsProvider: api.MetricProviderRef{Name: "p", Metric: "m"},
	}})
	name := knownvalue.StringExact("x")
	resource.Test(t, resource.TestCase{
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{tfversion.SkipBelow(tfversion.Version1_12_0)},
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{
				Config: f.config(
					`resource "scheduler_cluster" "x" {`+"\n"+minimal["scheduler_cluster"]+"\n}",
					`resource "scheduler_metric" "x" {`+"\n"+minimal["scheduler_metric"]+"\n}",
					`resource "scheduler_placement_score" "x" {`+"\n"+minimal["scheduler_placement_score"]+"\n depends_on = [scheduler_cluster.x]\n}",
					`resource "scheduler_placement" "x" {`+"\n"+minimal["scheduler_placement"]+"\n}",
					`resource "scheduler_cloud" "x" {`+"\n"+minimal["scheduler_cloud"]+"\n}",
					`resource "scheduler_openstack_project" "x" {`+"\n"+minimal["scheduler_openstack_project"]+"\n}",
					`resource "scheduler_magnum_cluster" "x" {`+"\n"+minimal["scheduler_magnum_cluster"]+"\n}",
					`resource "scheduler_workload" "x" {`+"\n"+minimal["scheduler_workload"]+"\n}",
					`resource "scheduler_propagation_policy" "x" {`+"\n"+minimal["scheduler_propagation_policy"]+"\n}",
				),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectIdentity("scheduler_cluster.x", map[string]knownvalue.Check{"name": name}),
					statecheck.ExpectIdentity("scheduler_metric.x", map[string]knownvalue.Check{"name": name, "namespace": knownvalue.Null()}),
					statecheck.ExpectIdentity("scheduler_placement_score.x", map[string]knownvalue.Check{"name": name, "cluster": name}),
					statecheck.ExpectIdentity("scheduler_cloud.x", map[string]knownvalue.Check{"name": name}),
					statecheck.ExpectIdentity("scheduler_magnum_cluster.x", map[string]knownvalue.Check{"name": name, "namespace": knownvalue.StringExact("default")}),
					statecheck.ExpectIdentity("scheduler_workload.x", map[string]knownvalue.Check{"name": name, "namespace": knownvalue.StringExact("default")}),
					statecheck.ExpectIdentity("scheduler_propagation_policy.x", map[string]knownvalue.Check{"name": name, "namespace": knownvalue.Null()}),
					statecheck.ExpectIdentity("scheduler_placement.x", map[string]knownvalue.Check{"name": name, "namespace": knownvalue.StringExact("default")}),
				},
			},
			{
				ResourceName: "scheduler_placement.x", ImportState: true, ImportStateKind: resource.ImportBlockWithResourceIdentity,
				ImportPlanChecks: resource.ImportPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			},
			{
				ResourceName: "scheduler_metric.x", ImportState: true, ImportStateKind: resource.ImportBlockWithResourceIdentity,
			},
			{
				ResourceName: "scheduler_magnum_cluster.x", ImportState: true, ImportStateKind: resource.ImportBlockWithResourceIdentity,
				ImportPlanChecks: resource.ImportPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			},
		},
	})
}
