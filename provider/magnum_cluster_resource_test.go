package provider_test

import (
	"fmt"
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

const magnumAddress = "scheduler_magnum_cluster.shop"

var shopMagnum = api.Key{Kind: api.KindMagnumCluster, Namespace: "shop", Name: "shop"}

func TestAccOpenStackProjectLifecycle(t *testing.T) {
	f := newFleet(t)
	const address = "scheduler_openstack_project.web"
	key := api.Key{Kind: api.KindOpenStackProject, Namespace: "shop", Name: "web"}
	bare := f.config("resource \"scheduler_openstack_project\" \"web\" {\n name = \"web\"\n namespace = \"shop\"\n}")
	full := f.config(`
		resource "scheduler_openstack_project" "web" {
		  name        = "web"
		  namespace   = "shop"
		  labels      = { location = "DE" }
		  metrics     = [{ name = "price", weight = 0.1 }, { name = "green", namespace = "shop" }]
		  project_id  = "4711"
		  user_id     = "0815"
		  template_id = "k8s"
		  openstack   = { auth_url = "http://127.0.0.1:1/v3", user_id = "0815", password_wo = "secret", project_id = "4711" }
		}`)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy:             func(*terraform.State) error { return f.gone(key) },
		Steps: []resource.TestStep{
			{Config: bare, ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()}},
			{
				Config: full,
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, plancheck.ResourceActionUpdate)},
					PostApplyPostRefresh: emptyPlan(),
				},
			},
			{
				ResourceName: address, ImportState: true, ImportStateId: "shop/web",
				ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
			},
			{
				PreConfig: func() {
					edit(f, key, func(p *api.OpenStackProject) { p.Spec.TemplateID, p.Metadata.Labels = "other", nil })
				},
				Config: full,
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, plancheck.ResourceActionUpdate)},
					PostApplyPostRefresh: emptyPlan(),
				},
			},
			{Config: bare, ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()}},
			{ // another namespace means another project
				Config: f.config("resource \"scheduler_openstack_project\" \"web\" {\n name = \"web\"\n}"),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, plancheck.ResourceActionReplace)},
				},
			},
		},
	})
}

// projects adds two projects in the namespace shop, rated by a static metric: berlin 0.2, munich 0.8.
func (f *fleet) projects() {
	f.t.Helper()
	f.green(map[string]float64{"berlin": 2, "munich": 8})
	for _, name := range []string{"berlin", "munich"} {
		f.put(&api.OpenStackProject{
			Metadata: api.Metadata{Name: name, Namespace: "shop", Labels: map[string]string{"city": name, "location": "DE"}},
			Spec: api.OpenStackProjectSpec{
				ProjectID: "id-" + name, TemplateID: "template-" + name, Metrics: []api.MetricRef{{Name: "green", Namespace: name}},
			},
		})
	}
}

// magnum returns a Magnum cluster "shop" with attributes.
func magnum(attributes string) string {
	return fmt.Sprintf("resource \"scheduler_magnum_cluster\" \"shop\" {\n name = \"shop\"\n namespace = \"shop\"\n %s\n}", attributes)
}

// inProject checks the project of a Magnum cluster.
func inProject(name, template string) []statecheck.StateCheck {
	project, id, selected := knownvalue.Null(), knownvalue.Null(), knownvalue.Null()
	checks := func(project, id, selected knownvalue.Check) []statecheck.StateCheck {
		return []statecheck.StateCheck{
			statecheck.ExpectKnownValue(magnumAddress, tfjsonpath.New("project"), project),
			statecheck.ExpectKnownValue(magnumAddress, tfjsonpath.New("project_id"), id),
			statecheck.ExpectKnownValue(magnumAddress, tfjsonpath.New("selected_template_id"), selected),
		}
	}
	if name == "" {
		return checks(project, id, selected)
	}
	return checks(knownvalue.StringExact(name), knownvalue.StringExact("id-"+name), knownvalue.StringExact(template))
}

func TestAccMagnumClusterLifecycle(t *testing.T) {
	f := newFleet(t)
	f.projects()
	keeps := resource.ConfigPlanChecks{
		PreApply:             []plancheck.PlanCheck{plancheck.ExpectKnownValue(magnumAddress, tfjsonpath.New("project"), knownvalue.StringExact("munich"))},
		PostApplyPostRefresh: emptyPlan(),
	}
	asks := resource.ConfigPlanChecks{
		PreApply:             []plancheck.PlanCheck{plancheck.ExpectUnknownValue(magnumAddress, tfjsonpath.New("project"))},
		PostApplyPostRefresh: emptyPlan(),
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy:             func(*terraform.State) error { return f.gone(shopMagnum) },
		Steps: []resource.TestStep{
			{Config: f.config(magnum(`label_constraints = ["location is DE"]`)), ConfigPlanChecks: asks, ConfigStateChecks: inProject("munich", "template-munich")},
			{
				ResourceName: magnumAddress, ImportState: true, ImportStateId: "shop/shop",
				ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
			},
			{ // its own labels change nothing
				Config:           f.config(magnum("label_constraints = [\"location is DE\"]\n labels = { team = \"web\" }")),
				ConfigPlanChecks: keeps, ConfigStateChecks: inProject("munich", "template-munich"),
			},
			{ // neither does a better project: a cluster is not moved
				PreConfig:        func() { f.green(map[string]float64{"berlin": 9}) },
				Config:           f.config(magnum("label_constraints = [\"location is DE\"]\n labels = { team = \"shop\" }")),
				ConfigPlanChecks: keeps, ConfigStateChecks: inProject("munich", "template-munich"),
			},
			{ // its own template takes precedence
				Config:           f.config(magnum(`template_id = "mine"`)),
				ConfigPlanChecks: asks, ConfigStateChecks: inProject("munich", "mine"),
			},
			{ // the project no longer fits
				Config:           f.config(magnum(`label_constraints = ["city is berlin"]`)),
				ConfigPlanChecks: asks, ConfigStateChecks: inProject("berlin", "template-berlin"),
			},
			{
				Config:      f.config(magnum(`label_constraints = ["city is paris"]`)),
				ExpectError: regexp.MustCompile(`(?s)No project for magnum_cluster "shop/shop".*0 of 2 projects\s+fit.*city is paris`),
			},
			{ // a new decision can be requested nevertheless
				Config:           f.config(magnum("label_constraints = [\"city is paris\", \"location is FR\"]\n wait = { on_timeout = \"warning\" }")),
				ConfigPlanChecks: asks,
			},
			{
				PreConfig:        func() { f.delete(shopMagnum) },
				Config:           f.config(magnum(`metric_constraints = ["green > 8.5"]`)),
				ConfigPlanChecks: asks, ConfigStateChecks: inProject("berlin", "template-berlin"),
			},
		},
	})
}

// Without a project, the create returns a warning. The choice appears when there is one.
func TestAccMagnumClusterWaits(t *testing.T) {
	f := newFleet(t)
	config := f.config(magnum(`label_constraints = ["location is DE"]`))
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: config, ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()}, ConfigStateChecks: inProject("", "")},
			{
				PreConfig: func() {
					f.projects()
					f.untilChosen(shopMagnum, "munich", "berlin")
				},
				RefreshState: true,
			},
			{Config: config, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: emptyPlan()}},
		},
	})
}

func TestAccMagnumClusterDataSource(t *testing.T) {
	f := newFleet(t)
	f.projects()
	f.put(&api.MagnumCluster{
		Metadata: api.Metadata{Name: "shop", Namespace: "shop", Labels: map[string]string{"team": "web", "location": "EU"}},
		Spec:     api.MagnumClusterSpec{LabelConstraints: []string{"city is munich"}},
	})
	shown := "data.scheduler_magnum_cluster.shop"
	status := tfjsonpath.New("status")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{
				Config: f.config("data \"scheduler_magnum_cluster\" \"shop\" {\n name = \"shop\"\n namespace = \"shop\"\n}"),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(shown, status.AtMapKey("project"), knownvalue.StringExact("munich")),
					statecheck.ExpectKnownValue(shown, status.AtMapKey("score"), knownvalue.Float64Exact(0.8)),
					statecheck.ExpectKnownValue(shown, status.AtMapKey("labels"), knownvalue.MapExact(map[string]knownvalue.Check{
						"city": knownvalue.StringExact("munich"), "team": knownvalue.StringExact("web"), "location": knownvalue.StringExact("EU"),
					})),
					statecheck.ExpectKnownValue(shown, status.AtMapKey("metrics").AtSliceIndex(0).AtMapKey("name"), knownvalue.StringExact("green")),
				},
			},
			{
				Config:      f.config(`data "scheduler_magnum_cluster" "x" { name = "nobody" }`),
				ExpectError: regexp.MustCompile(`(?s)Cannot read Magnum cluster nobody.*default/nobody`),
			},
		},
	})
}
