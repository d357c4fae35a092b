package provider_test

import (
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

const workloadAddress = "scheduler_workload.web"

// workload returns a Deployment "web" whose replicas need one CPU each, with additional attributes.
func workload(replicas int, more ...string) string {
	return fmt.Sprintf(`
		resource "scheduler_workload" "web" {
		  name             = "web"
		  namespace        = "shop"
		  api_version      = "apps/v1"
		  kind             = "Deployment"
		  replicas         = %d
		  replica_requests = { cpu = "1" }
		  %s
		}`, replicas, strings.Join(more, "\n"))
}

// planned checks attributes of a workload in a plan that updates it.
func planned(clusters counts) []plancheck.PlanCheck {
	checks := []plancheck.PlanCheck{plancheck.ExpectResourceAction(workloadAddress, plancheck.ResourceActionUpdate)}
	if clusters == nil {
		return append(checks,
			plancheck.ExpectUnknownValue(workloadAddress, tfjsonpath.New("clusters")),
			plancheck.ExpectUnknownValue(workloadAddress, tfjsonpath.New("evicting")))
	}
	return append(checks, plancheck.ExpectKnownValue(workloadAddress, tfjsonpath.New("clusters"), clusters.check()))
}

func TestAccWorkloadLifecycle(t *testing.T) {
	f := newPropagationFleet(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy:             func(*terraform.State) error { return f.gone(webWorkload) },
		Steps: []resource.TestStep{
			{
				Config:            f.config(workload(3)),
				ConfigStateChecks: binding(workloadAddress, counts{"member1": 3}, nil),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{
				ResourceName: workloadAddress, ImportState: true, ImportStateId: "shop/web",
				ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
			},
			{ // more replicas: running ones stay
				Config:            f.config(workload(6)),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PreApply: planned(nil), PostApplyPostRefresh: emptyPlan()},
				ConfigStateChecks: binding(workloadAddress, counts{"member1": 4, "member2": 2}, nil),
			},
			{ // the time to wait does not affect it
				Config:            f.config(workload(6, `wait = { on_timeout = "error" }`)),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PreApply: planned(counts{"member1": 4, "member2": 2}), PostApplyPostRefresh: emptyPlan()},
				ConfigStateChecks: binding(workloadAddress, counts{"member1": 4, "member2": 2}, nil),
			},
			{ // labels do: policies select by them
				Config:            f.config(workload(6, `labels = { team = "a" }`, `priority = 3`)),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PreApply: planned(nil), PostApplyPostRefresh: emptyPlan()},
				ConfigStateChecks: binding(workloadAddress, counts{"member1": 4, "member2": 2}, nil),
			},
			{ // none: it keeps its clusters, with 0
				Config:            f.config(workload(0)),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
				ConfigStateChecks: binding(workloadAddress, counts{"member1": 0, "member2": 0}, nil),
			},
		},
	})
}

// A binding that moves on its own leaves nothing to apply for the workload, and resources that depend on it follow.
// Replicas on the clusters that the workload is leaving stay in the meantime.
func TestAccWorkloadMoves(t *testing.T) {
	f := newPropagationFleet(t)
	config := f.config(workload(3), `
		resource "terraform_data" "deployment" {
		  input = merge(scheduler_workload.web.evicting, scheduler_workload.web.clusters)
		}`)
	runs := func(on counts) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("terraform_data.deployment", tfjsonpath.New("output"), on.check())
	}
	follows := resource.ConfigPlanChecks{
		PreApply: []plancheck.PlanCheck{
			plancheck.ExpectResourceAction(workloadAddress, plancheck.ResourceActionNoop),
			plancheck.ExpectResourceAction("terraform_data.deployment", plancheck.ResourceActionUpdate),
		},
		PostApplyPostRefresh: emptyPlan(),
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: config, ConfigStateChecks: []statecheck.StateCheck{runs(counts{"member1": 3})}},
			{
				PreConfig: func() {
					f.taint("member1", api.EffectNoExecute)
					f.untilBound(webWorkload, counts{"member2": 3}, counts{"member1": 3})
				},
				Config: config, ConfigPlanChecks: follows,
				ConfigStateChecks: append(binding(workloadAddress, counts{"member2": 3}, counts{"member1": 3}), runs(counts{"member1": 3, "member2": 3})),
			},
			{
				PreConfig: func() {
					f.healthy(webWorkload, "member2")
					f.untilBound(webWorkload, counts{"member2": 3}, nil)
				},
				Config: config, ConfigPlanChecks: follows,
				ConfigStateChecks: append(binding(workloadAddress, counts{"member2": 3}, nil), runs(counts{"member2": 3})),
			},
		},
	})
}

func TestAccWorkloadDrift(t *testing.T) {
	f := newPropagationFleet(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: f.config(workload(3))},
			{ // changed outside of Terraform: the plan reverts it
				PreConfig: func() {
					edit(f, webWorkload, func(w *api.Workload) { w.Spec.Replicas, w.Spec.Priority = new(int64(5)), 7 })
				},
				Config:            f.config(workload(3)),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PreApply: planned(nil), PostApplyPostRefresh: emptyPlan()},
				ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(workloadAddress, tfjsonpath.New("priority"), knownvalue.Int64Exact(0))},
			},
			{
				PreConfig: func() { f.delete(webWorkload) },
				Config:    f.config(workload(3)),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(workloadAddress, plancheck.ResourceActionCreate)},
					PostApplyPostRefresh: emptyPlan(),
				},
			},
			{ // requesting a new decision is not a change of the spec
				PreConfig: func() {
					if _, err := f.client.Reschedule(f.ctx(), webWorkload); err != nil {
						t.Fatal(err)
					}
				},
				Config:           f.config(workload(3, `priority = 1`)),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{ // a concurrent change between plan and apply is not overwritten
				Config: f.config(workload(4)),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{meanwhile(func() {
					edit(f, webWorkload, func(w *api.Workload) { w.Spec.Priority = 9 })
				})}},
				ExpectError: regexp.MustCompile(`(?s)Cannot update workload "shop/web".*plan\s+again`),
			},
		},
	})
}

// Integers are exact to the last digit in both directions.
func TestAccWorkloadLargeNumber(t *testing.T) {
	const priority = 9007199254740993 // a float64 can represent …992 and …994
	f := newPropagationFleet(t)
	stored := func(want int64) resource.TestCheckFunc {
		return func(*terraform.State) error {
			object, err := f.client.Get(f.ctx(), webWorkload)
			if err != nil {
				return err
			}
			if w, ok := object.(*api.Workload); !ok || w.Spec.Priority != want {
				return fmt.Errorf("the server has %+v, want the priority %d", object.SpecPart(), want)
			}
			return nil
		}
	}
	config := f.config(workload(3, fmt.Sprintf("priority = %d", int64(priority))))
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{
				Config:           config,
				Check:            stored(priority),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{ // a change in digits beyond the precision of a float64 is a change
				PreConfig: func() {
					edit(f, webWorkload, func(w *api.Workload) { w.Spec.Priority = priority - 1 })
				},
				Config:           config,
				Check:            stored(priority),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(workloadAddress, plancheck.ResourceActionUpdate)}},
			},
		},
	})
}

func TestAccWorkloadExists(t *testing.T) {
	f := newPropagationFleet(t)
	f.put(&api.Workload{Metadata: webMetadata(), Spec: api.WorkloadSpec{APIVersion: "apps/v1", Kind: "Deployment"}})
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{{
			Config:      f.config(workload(3)),
			ExpectError: regexp.MustCompile(`(?s)Already exists: workload "shop/web".*terraform import\s+scheduler_workload\.<name>\s+shop/web`),
		}},
	})
}

// A workload that no cluster can take causes a warning on create and an error on update, which says why.
func TestAccWorkloadUnscheduled(t *testing.T) {
	f := newPropagationFleet(t)
	secret := func(replicas int, more ...string) string {
		return strings.Replace(f.config(workload(replicas, more...)), "Deployment", "StatefulSet", 1)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{ // a create only warns, and does not taint the resource
				Config:            secret(1),
				ConfigStateChecks: binding(workloadAddress, nil, nil),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{Config: secret(2), ExpectError: regexp.MustCompile(`(?s)No propagation policy for workload "shop/web".*policy`)},
			{
				Config:            f.config(workload(4)),
				ConfigStateChecks: binding(workloadAddress, counts{"member1": 4}, nil),
			},
			{ // running replicas stay
				Config:      f.config(workload(9)),
				ExpectError: regexp.MustCompile(`(?s)No room for workload "shop/web".*4.*9`),
			},
			{
				Config:            f.config(workload(10, `wait = { on_timeout = "warning" }`)),
				ConfigStateChecks: binding(workloadAddress, counts{"member1": 4}, nil),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{
				Config:           f.config(workload(11, `wait = { "for" = "none" }`)),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{ // capacity is added
				PreConfig: func() {
					f.member("member3", "40")
					f.untilBound(webWorkload, counts{"member1": 4, "member3": 7}, nil)
				},
				Config:            f.config(workload(11)),
				ConfigStateChecks: binding(workloadAddress, counts{"member1": 4, "member3": 7}, nil),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
		},
	})
}

// A workload without replicas has 0 on every chosen cluster.
func TestAccWorkloadNotReplicated(t *testing.T) {
	f := newPropagationFleet(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{{
			Config: f.config(`
				resource "scheduler_propagation_policy" "settings" {
				  name               = "settings"
				  resource_selectors = [{ api_version = "v1", kind = "ConfigMap" }]
				}
				resource "scheduler_workload" "web" {
				  name        = "web"
				  namespace   = "shop"
				  labels      = {}
				  api_version = "v1"
				  kind        = "ConfigMap"
				  replica_requests = {}
				  depends_on  = [scheduler_propagation_policy.settings]
				}`),
			ConfigStateChecks: binding(workloadAddress, counts{"member1": 0, "member2": 0}, nil),
			ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
		}},
	})
}

// Only clusters that support the resource's API are chosen, and this can change.
func TestAccClusterAPIResources(t *testing.T) {
	f := newFleet(t)
	f.aggregate()
	config := func(types string) string {
		return f.config(fmt.Sprintf(`
			resource "scheduler_cluster" "east" {
			  name          = "east"
			  api_resources = %s
			}`, types), workload(2, `depends_on = [scheduler_cluster.east]`))
	}
	east := "scheduler_cluster.east"
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{
				Config:            config(`["v1/ConfigMap", "batch/v1/Job"]`),
				ConfigStateChecks: binding(workloadAddress, nil, nil),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{
				ResourceName: east, ImportState: true, ImportStateId: "east",
				ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
			},
			{
				PreConfig: func() {
					edit(f, eastKey, func(c *api.Cluster) { c.Spec.APIResources = []string{"v1/ConfigMap", "apps/v1/Deployment"} })
					f.untilBound(webWorkload, counts{"east": 2}, nil)
				},
				Config:            config(`["apps/v1/Deployment"]`),
				ConfigStateChecks: binding(workloadAddress, counts{"east": 2}, nil),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{ // absent: all types
				Config:           config(`null`),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
		},
	})
}

// A workload without a namespace uses the provider's, also in previews and data sources.
func TestAccWorkloadNamespaceOfProvider(t *testing.T) {
	f := newPropagationFleet(t)
	config := func(namespace string) string {
		return fmt.Sprintf(`
			provider "scheduler" {
			  endpoint  = %q
			  namespace = %q
			}
			locals {
			  web = { name = "web", api_version = "apps/v1", kind = "Deployment" }
			}
			data "scheduler_propagation_preview" "web" { workload = local.web }
			resource "scheduler_workload" "web" {
			  name             = local.web.name
			  api_version      = local.web.api_version
			  kind             = local.web.kind
			  preview_token_wo = data.scheduler_propagation_preview.web.token
			}
			data "scheduler_workload" "web" { name = scheduler_workload.web.name }`, f.endpoint, namespace)
	}
	in := func(address, namespace string) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(address, tfjsonpath.New("namespace"), knownvalue.StringExact(namespace))
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{
				Config:            config("shop"),
				ConfigStateChecks: []statecheck.StateCheck{in(workloadAddress, "shop"), in("data.scheduler_workload.web", "shop")},
			},
			{
				Config: config("office"),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(workloadAddress, plancheck.ResourceActionReplace)},
					PostApplyPostRefresh: emptyPlan(),
				},
				ConfigStateChecks: []statecheck.StateCheck{in(workloadAddress, "office")},
			},
		},
	})
}

// A workload leaves a cluster on which it is reported unhealthy if the policy says so. With Never, it stays until a new
// decision is requested.
func TestAccWorkloadUnhealthy(t *testing.T) {
	f := newFleet(t)
	f.member("member1", "4")
	f.member("member2", "4")
	config := f.config(policy(`
		placement = { replica_scheduling = { division_preference = "Aggregated" } }
		failover  = { application = { toleration = "0s", purge_mode = "Never" } }`),
		workload(3, "depends_on = [scheduler_propagation_policy.web]"))
	seen := resource.ConfigPlanChecks{
		PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(workloadAddress, plancheck.ResourceActionNoop)},
		PostApplyPostRefresh: emptyPlan(),
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: config, ConfigStateChecks: binding(workloadAddress, counts{"member1": 3}, nil)},
			{
				PreConfig: func() {
					if _, err := f.client.ReportHealth(f.ctx(), webWorkload, api.HealthReport{Cluster: "member1", Status: api.Unhealthy, Message: "crashes"}); err != nil {
						t.Fatal(err)
					}
					f.untilBound(webWorkload, counts{"member2": 3}, counts{"member1": 3})
					f.healthy(webWorkload, "member2")
				},
				Config: config, ConfigPlanChecks: seen,
				ConfigStateChecks: binding(workloadAddress, counts{"member2": 3}, counts{"member1": 3}),
			},
			{
				PreConfig: func() {
					if _, err := f.client.Reschedule(f.ctx(), webWorkload); err != nil {
						t.Fatal(err)
					}
				},
				Config: config, ConfigPlanChecks: seen,
				ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(workloadAddress, tfjsonpath.New("evicting"), counts(nil).check())},
			},
		},
	})
}

// A workload with a higher priority preempts another one if the policy allows it, and the next plan shows the result.
func TestAccWorkloadPreemption(t *testing.T) {
	f := newFleet(t)
	f.member("member1", "4")
	urgent := `
		resource "scheduler_workload" "urgent" {
		  name             = "urgent"
		  namespace        = "shop"
		  api_version      = "apps/v1"
		  kind             = "Deployment"
		  replicas         = 3
		  replica_requests = { cpu = "1" }
		  priority         = 100
		  depends_on       = [scheduler_workload.web]
		}`
	deployments := policy(`
		placement           = { replica_scheduling = { division_preference = "Aggregated" } }
		workload_preemption = "LowerPriority"`)
	web := workload(3, "depends_on = [scheduler_propagation_policy.web]")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: f.config(deployments, web), ConfigStateChecks: binding(workloadAddress, counts{"member1": 3}, nil)},
			{ // the replicas that web has lost leave nothing to apply
				Config:            f.config(deployments, web, urgent),
				ConfigStateChecks: binding("scheduler_workload.urgent", counts{"member1": 3}, nil),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{
				Config: f.config(deployments, web, urgent, `
					data "scheduler_workload" "web" {
					  name      = "web"
					  namespace = "shop"
					}`),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue("data.scheduler_workload.web", tfjsonpath.New("preemptions").AtSliceIndex(0).AtMapKey("workload"), knownvalue.StringExact("shop/urgent")),
					statecheck.ExpectKnownValue("data.scheduler_workload.web", tfjsonpath.New("conditions").AtSliceIndex(0).AtMapKey("status"), knownvalue.StringExact("False")),
				},
			},
		},
	})
}
