package provider_test

import (
	"context"
	"fmt"
	"regexp"
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

var webKey = api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}

// clusters checks the decision in the state.
func clusters(names ...string) statecheck.StateCheck {
	checks := make([]knownvalue.Check, len(names))
	for i, name := range names {
		checks[i] = knownvalue.StringExact(name)
	}
	return statecheck.ExpectKnownValue("scheduler_placement.web", tfjsonpath.New("clusters"), knownvalue.ListExact(checks))
}

func emptyPlan() []plancheck.PlanCheck { return []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()} }

func TestAccPlacementLifecycle(t *testing.T) {
	f := newFleet(t)
	f.cluster("berlin", "location", "DE")
	f.cluster("paris", "location", "FR")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy:             func(*terraform.State) error { return f.gone(webKey) },
		Steps: []resource.TestStep{
			{
				Config: f.config(`
					resource "scheduler_placement" "web" {
					  name               = "web"
					  namespace          = "shop"
					  number_of_clusters = 1
					  label_constraints  = ["location is DE"]
					}`),
				ConfigStateChecks: []statecheck.StateCheck{clusters("berlin")},
				ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{
				ResourceName: "scheduler_placement.web", ImportState: true, ImportStateId: "shop/web",
				ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
			},
			{ // another constraint: the decision is unknown in the plan, and moves
				Config: f.config(`
					resource "scheduler_placement" "web" {
					  name               = "web"
					  namespace          = "shop"
					  number_of_clusters = 1
					  label_constraints  = ["location is FR"]
					}`),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction("scheduler_placement.web", plancheck.ResourceActionUpdate),
					plancheck.ExpectUnknownValue("scheduler_placement.web", tfjsonpath.New("clusters")),
				}, PostApplyPostRefresh: emptyPlan()},
				ConfigStateChecks: []statecheck.StateCheck{clusters("paris")},
			},
			{ // a label: the decision stays known
				Config: f.config(`
					resource "scheduler_placement" "web" {
					  name               = "web"
					  namespace          = "shop"
					  labels             = { team = "a" }
					  number_of_clusters = 1
					  label_constraints  = ["location is FR"]
					}`),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction("scheduler_placement.web", plancheck.ResourceActionUpdate),
					plancheck.ExpectKnownValue("scheduler_placement.web", tfjsonpath.New("clusters"), knownvalue.ListExact([]knownvalue.Check{knownvalue.StringExact("paris")})),
				}, PostApplyPostRefresh: emptyPlan()},
			},
		},
	})
}

// web returns a placement of one cluster, selected by a label, with additional attributes.
func web(location string, more ...string) string {
	return fmt.Sprintf(`
		resource "scheduler_placement" "web" {
		  name               = "web"
		  namespace          = "shop"
		  number_of_clusters = 1
		  label_constraints  = ["location is %s"]
		  %s
		}`, location, strings.Join(more, "\n"))
}

// TestAccPlacementClusterNames checks that a placement only goes to the named clusters, and not to excluded ones, and
// says why the others were rejected.
func TestAccPlacementClusterNames(t *testing.T) {
	f := newFleet(t)
	for _, name := range []string{"berlin", "munich", "paris"} {
		f.cluster(name)
	}
	named := func(attributes string) string {
		return f.config(`
			resource "scheduler_placement" "web" {
			  name      = "web"
			  namespace = "shop"
			  ` + attributes + `
			}
			data "scheduler_placement_explanation" "web" {
			  name       = "web"
			  namespace  = "shop"
			  depends_on = [scheduler_placement.web]
			}`)
	}
	miss := func(key string, check knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("data.scheduler_placement_explanation.web", tfjsonpath.New("nearest_miss").AtMapKey(key), check)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{
				Config:      named(`cluster_names = ["Berlin"]`),
				ExpectError: regexp.MustCompile(`(?s)cluster_names\[0\].*"Berlin"`),
			},
			{
				Config: named(`cluster_names = ["munich", "berlin", "nowhere"]
				               exclude_clusters = ["berlin"]`),
				ConfigStateChecks: []statecheck.StateCheck{
					clusters("munich"), miss("filter", knownvalue.StringExact("cluster_names")),
					miss("on", knownvalue.StringExact("cluster_names")), miss("count", knownvalue.Int64Exact(1)),
				},
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{
				ResourceName: "scheduler_placement.web", ImportState: true, ImportStateId: "shop/web",
				ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
			},
			{
				Config:            named(`exclude_clusters = ["berlin", "munich"]`),
				ConfigStateChecks: []statecheck.StateCheck{clusters("paris"), miss("on", knownvalue.StringExact("exclude_clusters")), miss("count", knownvalue.Int64Exact(2))},
				ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{ // empty lists restrict nothing
				Config:           named("exclude_clusters = []\nnumber_of_clusters = 3"),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue("scheduler_placement.web", tfjsonpath.New("clusters"), knownvalue.ListSizeExact(3)),
				},
			},
		},
	})
}

// TestAccPlacementKubernetesVersion checks that a placement goes to clusters of the requested versions, and says why
// the others were rejected. The version of an unobserved cluster is unknown; a simulation can set it.
func TestAccPlacementKubernetesVersion(t *testing.T) {
	f := newFleet(t)
	f.cluster("berlin")
	f.cluster("munich")
	asks := func(version string, more ...string) string {
		return f.config(append(more, fmt.Sprintf(`
			resource "scheduler_placement" "web" {
			  name               = "web"
			  namespace          = "shop"
			  kubernetes_version = %q
			  wait               = { on_timeout = "warning" }
			}
			data "scheduler_placement_explanation" "web" {
			  name       = "web"
			  namespace  = "shop"
			  depends_on = [scheduler_placement.web]
			}`, version))...)
	}
	miss := func(key string, check knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("data.scheduler_placement_explanation.web", tfjsonpath.New("nearest_miss").AtMapKey(key), check)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{
				Config:      asks(">= 1.33 < 2"),
				ExpectError: regexp.MustCompile(`(?s)kubernetes_version.*is\s+not\s+a\s+condition\s+on\s+a\s+version`),
			},
			{
				Config: asks(">= 1.33, < 2", `
					data "scheduler_simulation" "upgraded" {
					  base = "empty"
					  objects = [
					    jsonencode({ kind = "cluster", metadata = { name = "berlin" }, spec = {}, status = { kubernetes_version = "v1.32.4-eks-4f2e1a" } }),
					    jsonencode({ kind = "cluster", metadata = { name = "munich" }, spec = {}, status = { kubernetes_version = "v1.33.2+k3s1" } }),
					    jsonencode({ kind = "placement", metadata = { name = "web", namespace = "shop" }, spec = { kubernetes_version = ">= 1.33, < 2" } }),
					  ]
					}`),
				ConfigStateChecks: []statecheck.StateCheck{
					clusters(), miss("filter", knownvalue.StringExact("kubernetes_version")),
					miss("on", knownvalue.StringExact(">= 1.33, < 2")), miss("count", knownvalue.Int64Exact(2)),
					statecheck.ExpectKnownValue("data.scheduler_simulation.upgraded", tfjsonpath.New("result").AtMapKey("objects"),
						knownvalue.ListPartial(map[int]knownvalue.Check{2: simulated("munich")})),
				},
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{
				ResourceName: "scheduler_placement.web", ImportState: true, ImportStateId: "shop/web",
				ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name", ImportStateVerifyIgnore: []string{"wait"},
			},
		},
	})
}

// A decision that moves on its own leaves nothing to apply for the placement, and resources that depend on it follow.
func TestAccPlacementMoves(t *testing.T) {
	f := newFleet(t)
	f.cluster("berlin", "location", "DE")
	config := f.config(web("DE"), `
		resource "terraform_data" "release" {
		  input = scheduler_placement.web.clusters
		}`)
	move := func() {
		f.cluster("munich", "location", "DE")
		f.delete(api.Key{Kind: api.KindCluster, Name: "berlin"})
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: config, ConfigStateChecks: []statecheck.StateCheck{clusters("berlin")}},
			{
				PreConfig: move,
				Config:    config,
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply: []plancheck.PlanCheck{
						plancheck.ExpectResourceAction("scheduler_placement.web", plancheck.ResourceActionNoop),
						plancheck.ExpectResourceAction("terraform_data.release", plancheck.ResourceActionUpdate),
					},
					PostApplyPostRefresh: emptyPlan(),
				},
				ConfigStateChecks: []statecheck.StateCheck{
					clusters("munich"),
					statecheck.ExpectKnownValue("terraform_data.release", tfjsonpath.New("output"), knownvalue.ListExact([]knownvalue.Check{knownvalue.StringExact("munich")})),
				},
			},
		},
	})
}

func TestAccPlacementDrift(t *testing.T) {
	f := newFleet(t)
	f.cluster("berlin", "location", "DE")
	f.cluster("paris", "location", "FR")
	placement := "scheduler_placement.web"
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: f.config(web("DE"))},
			{
				PreConfig: func() {
					edit(f, webKey, func(p *api.Placement) { p.Spec.LabelConstraints = []string{"location is FR"} })
				},
				Config: f.config(web("DE")),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply: []plancheck.PlanCheck{
						plancheck.ExpectResourceAction(placement, plancheck.ResourceActionUpdate),
						plancheck.ExpectUnknownValue(placement, tfjsonpath.New("clusters")),
					},
					PostApplyPostRefresh: emptyPlan(),
				},
				ConfigStateChecks: []statecheck.StateCheck{clusters("berlin")},
			},
			{
				PreConfig: func() { f.delete(webKey) },
				Config:    f.config(web("DE")),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(placement, plancheck.ResourceActionCreate)},
					PostApplyPostRefresh: emptyPlan(),
				},
			},
			{ // requesting a new decision is not a change of the spec
				PreConfig: func() {
					if _, err := f.client.Reschedule(f.ctx(), webKey); err != nil {
						t.Fatal(err)
					}
				},
				Config:           f.config(web("DE", `labels = { team = "a" }`)),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
		},
	})
}

// A concurrent change between plan and apply is not overwritten.
func TestAccPlacementChangedSincePlan(t *testing.T) {
	f := newFleet(t)
	f.cluster("berlin", "location", "DE")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: f.config(web("DE"))},
			{
				Config: f.config(web("DE", `migration = false`)),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{meanwhile(func() {
					edit(f, webKey, func(p *api.Placement) { p.Spec.MinImprovement = 0.5 })
				})}},
				ExpectError: regexp.MustCompile(`(?s)Cannot update placement "shop/web".*plan\s+again`),
			},
			{ // deleted in the meantime: it is created again
				Config: f.config(web("DE", `migration = false`)),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{meanwhile(func() { f.delete(webKey) })},
					PostApplyPostRefresh: emptyPlan(),
				},
				ConfigStateChecks: []statecheck.StateCheck{clusters("berlin")},
			},
		},
	})
}

// meanwhile is a change between plan and apply.
type meanwhile func()

func (m meanwhile) CheckPlan(context.Context, plancheck.CheckPlanRequest, *plancheck.CheckPlanResponse) {
	m()
}

func TestAccPlacementExists(t *testing.T) {
	f := newFleet(t)
	f.put(&api.Placement{Metadata: api.Metadata{Name: "web", Namespace: "shop"}})
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{{
			Config:      f.config(web("DE")),
			ExpectError: regexp.MustCompile(`(?s)Already exists: placement "shop/web".*terraform import\s+scheduler_placement\.<name>\s+shop/web`),
		}},
	})
}

func TestAccPlacementNoClusterFits(t *testing.T) {
	f := newFleet(t)
	f.cluster("berlin", "location", "DE")
	placement := "scheduler_placement.web"
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{ // a create only warns, and does not taint the resource
				Config:            f.config(web("FR")),
				ConfigStateChecks: []statecheck.StateCheck{clusters()},
				ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{ // an update fails, with the message that explains why
				Config:      f.config(web("SK")),
				ExpectError: regexp.MustCompile(`(?s)No cluster for placement "shop/web".*0 of 1.*The\s+nearest\s+miss:\s+without\s+"location is SK"\s+1\s+more\s+cluster\s+would\s+fit`),
			},
			{
				Config: f.config(web("PL", `wait = { on_timeout = "warning" }`)),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(placement, plancheck.ResourceActionUpdate)},
					PostApplyPostRefresh: emptyPlan(),
				},
			},
			{
				Config:           f.config(web("CZ", `wait = { "for" = "none" }`)),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{
				Config:            f.config(web("DE")),
				ConfigStateChecks: []statecheck.StateCheck{clusters("berlin")},
			},
		},
	})
}

func TestAccPlacementNamespaceOfProvider(t *testing.T) {
	f := newFleet(t)
	config := func(namespace string) string {
		return fmt.Sprintf(`
			provider "scheduler" {
			  endpoint  = %q
			  namespace = %q
			}
			resource "scheduler_placement" "web" { name = "web" }
			data "scheduler_placement_decisions" "web" { name = scheduler_placement.web.name }
			data "scheduler_placement_explanation" "web" { name = scheduler_placement.web.name }`, f.endpoint, namespace)
	}
	namespace := func(name string) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("scheduler_placement.web", tfjsonpath.New("namespace"), knownvalue.StringExact(name))
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: config("shop"), ConfigStateChecks: []statecheck.StateCheck{
				namespace("shop"),
				statecheck.ExpectKnownValue("data.scheduler_placement_decisions.web", tfjsonpath.New("namespace"), knownvalue.StringExact("shop")),
				statecheck.ExpectKnownValue("data.scheduler_placement_explanation.web", tfjsonpath.New("namespace"), knownvalue.StringExact("shop")),
			}},
			{
				ResourceName: "scheduler_placement.web", ImportState: true, ImportStateId: "web",
				ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
			},
			{
				Config: config("office"),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction("scheduler_placement.web", plancheck.ResourceActionReplace)},
					PostApplyPostRefresh: emptyPlan(),
				},
				ConfigStateChecks: []statecheck.StateCheck{namespace("office")},
			},
		},
	})
}

// Values that are known only after apply are validated then.
func TestAccUnknownValues(t *testing.T) {
	f := newFleet(t)
	config := func(location, weight string) string {
		return f.config(fmt.Sprintf(`
			resource "terraform_data" "later" {
			  input = { location = %q, weight = %s, key = "k" }
			}
			resource "scheduler_cluster" "east" {
			  name     = "east"
			  labels   = { location = terraform_data.later.output.location }
			  zones    = [terraform_data.later.output.key]
			  capacity = { cpu = terraform_data.later.output.weight }
			  metrics  = [{ name = "load", weight = terraform_data.later.output.weight }]
			}
			resource "scheduler_placement" "web" {
			  name               = "web"
			  namespace          = "shop"
			  number_of_clusters = terraform_data.later.output.weight
			  label_constraints  = ["location is ${terraform_data.later.output.location}"]
			  metrics            = { stickiness = terraform_data.later.output.weight }
			  depends_on         = [scheduler_cluster.east]
			}`, location, weight))
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: config("DE", "1"), PlanOnly: true, ExpectNonEmptyPlan: true},
			{
				Config:           config("DE", "1"),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{Config: config("no label value!", "1"), ExpectError: regexp.MustCompile(`(?s)Invalid\s+labels\["location"\]`)},
		},
	})
}

// Attributes in lifecycle.ignore_changes are not overwritten.
func TestAccIgnoreChanges(t *testing.T) {
	f := newFleet(t)
	f.cluster("berlin", "location", "DE")
	config := func(team string, paused string) string {
		return f.config(fmt.Sprintf(`
			resource "scheduler_cluster" "east" {
			  name       = "east"
			  labels     = { team = %q }
			  paused     = %s
			  kubernetes = { kubeconfig_wo_version = 1, kubeconfig_wo = `+kubeconfigHCL+` }
			  lifecycle { ignore_changes = [labels] }
			}`, team, paused))
	}
	labels := func(team string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			object, err := f.client.Get(f.ctx(), eastKey)
			if err != nil {
				return err
			}
			if got := object.Meta().Labels["team"]; got != team {
				return fmt.Errorf("the label is %q, expected %q", got, team)
			}
			return nil
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: config("a", "false"), Check: labels("a")},
			{
				PreConfig: func() {
					edit(f, eastKey, func(c *api.Cluster) { c.Metadata.Labels = map[string]string{"team": "theirs"} })
				},
				Config:           config("b", "true"),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
				Check:            labels("theirs"),
			},
		},
	})
}

// A provider whose configuration depends on another resource can plan without a server.
func TestAccProviderConfiguredLater(t *testing.T) {
	f := newFleet(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{{
			Config: fmt.Sprintf(`
				resource "terraform_data" "server" { input = %q }
				provider "scheduler" { endpoint = terraform_data.server.output }
				resource "scheduler_placement" "web" { name = "web" }`, f.endpoint),
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply:             []plancheck.PlanCheck{plancheck.ExpectUnknownValue("scheduler_placement.web", tfjsonpath.New("namespace"))},
				PostApplyPostRefresh: emptyPlan(),
			},
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue("scheduler_placement.web", tfjsonpath.New("namespace"), knownvalue.StringExact("default")),
			},
		}},
	})
}
