package provider_test

import (
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

const policyAddress = "scheduler_propagation_policy.web"

var webPolicy = api.Key{Kind: api.KindPropagationPolicy, Namespace: "shop", Name: "web"}

// policy returns a policy for the Deployments of the namespace shop, with additional attributes.
func policy(more ...string) string {
	return `
		resource "scheduler_propagation_policy" "web" {
		  name               = "web"
		  namespace          = "shop"
		  resource_selectors = [{ api_version = "apps/v1", kind = "Deployment" }]
		  ` + strings.Join(more, "\n") + `
		}`
}

// fullPolicy sets every attribute.
const fullPolicy = `
	resource "scheduler_propagation_policy" "web" {
	  name      = "web"
	  namespace = "shop"
	  labels    = { team = "a" }
	  resource_selectors = [
	    { api_version = "apps/v1", kind = "Deployment", namespace = "shop", name = "web" },
	    { api_version = "apps/v1", kind = "Deployment", name = "api", label_selector = { match_labels = { tier = "web" } } },
	  ]
	  placement = {
	    cluster_affinities = [
	      {
	        affinity_name    = "private"
	        cluster_names    = ["member1", "member2"]
	        exclude_clusters = ["member2"]
	        label_selector   = { match_expressions = [{ key = "lab", operator = "DoesNotExist" }] }
	        field_selector   = [{ key = "zone", operator = "NotIn", values = ["z"] }]
	        overflow_affinities = [
	          { affinity_name = "managed", field_selector = [{ key = "provider", operator = "In", values = ["aws"] }] },
	          { affinity_name = "rest" },
	        ]
	      },
	      { affinity_name = "all" },
	    ]
	    cluster_tolerations = [{ key = "dedicated", value = "web", toleration_seconds = 60 }]
	    spread_constraints  = [{}, { spread_by_label = "rack", min_groups = 1, max_groups = 0 }, { spread_by_field = "region", max_groups = 2 }]
	    replica_scheduling = {
	      weight_preference = {
	        dynamic_weight = "AvailableReplicas"
	        static_weights = [{ weight = 2, affinity = { exclude_clusters = ["member9"] } }, { weight = 3 }]
	      }
	      cluster_limits = [{ min_replicas = 0 }, { affinity = { cluster_names = ["member1"] }, min_replicas = 1, max_replicas = 3 }]
	    }
	    empty_clusters = true
	  }
	  priority            = -5
	  preemption          = "Always"
	  workload_preemption = "LowerPriority"
	  failover = {
	    cluster     = { purge_mode = "Directly" }
	    application = { toleration = "0s", grace_period = "1m30s" }
	  }
	  fail_back = { mode = "never", stabilization = "1h" }
	}`

func TestAccPropagationPolicyLifecycle(t *testing.T) {
	f := newFleet(t)
	f.member("member1", "4")
	f.member("member2", "4")
	f.put(&api.Workload{Metadata: webMetadata(), Spec: api.WorkloadSpec{APIVersion: "apps/v1", Kind: "Deployment", Replicas: new(int64(4))}})
	bound := func(bindings map[string]counts) statecheck.StateCheck {
		checks := map[string]knownvalue.Check{}
		for name, clusters := range bindings {
			checks[name] = clusters.check()
		}
		return statecheck.ExpectKnownValue(policyAddress, tfjsonpath.New("bindings"), knownvalue.MapExact(checks))
	}
	verify := resource.TestStep{
		ResourceName: policyAddress, ImportState: true, ImportStateId: "shop/web",
		ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy:             func(*terraform.State) error { return f.gone(webPolicy) },
		Steps: []resource.TestStep{
			{ // every cluster has all replicas
				Config:            f.config(policy()),
				ConfigStateChecks: []statecheck.StateCheck{bound(map[string]counts{"shop/web": {"member1": 4, "member2": 4}})},
				ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			verify,
			{ // a label of the policy moves nothing
				Config: f.config(policy(`labels = { team = "a" }`)),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply: []plancheck.PlanCheck{
						plancheck.ExpectResourceAction(policyAddress, plancheck.ResourceActionUpdate),
						plancheck.ExpectKnownValue(policyAddress, tfjsonpath.New("bindings").AtMapKey("shop/web").AtMapKey("member2"), knownvalue.Int64Exact(4)),
					},
					PostApplyPostRefresh: emptyPlan(),
				},
			},
			{ // selecting fewer clusters does
				Config: f.config(policy(`placement = { cluster_affinity = { cluster_names = ["member2"] } }`)),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectUnknownValue(policyAddress, tfjsonpath.New("bindings"))},
					PostApplyPostRefresh: emptyPlan(),
				},
				ConfigStateChecks: []statecheck.StateCheck{bound(map[string]counts{"shop/web": {"member2": 4}})},
			},
			{
				Config:           f.config(fullPolicy),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			verify,
			{ // all optional attributes are removed
				Config: f.config(policy()),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(policyAddress, plancheck.ResourceActionUpdate)},
					PostApplyPostRefresh: emptyPlan(),
				},
			},
			{ // it no longer selects the workload
				Config:            f.config(strings.Replace(policy(), "Deployment", "Job", 1)),
				ConfigStateChecks: []statecheck.StateCheck{bound(nil)},
				ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{ // a global policy is another object
				Config: f.config(strings.Replace(policy(), `"shop"`, "null", 1)),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(policyAddress, plancheck.ResourceActionReplace)},
					PostApplyPostRefresh: emptyPlan(),
				},
				ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(policyAddress, tfjsonpath.New("namespace"), knownvalue.Null())},
			},
			{
				ResourceName: policyAddress, ImportState: true, ImportStateId: "web",
				ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
			},
		},
	})
}

// Empty lists and objects stay in the state as configured.
func TestAccPropagationPolicyEmptyCollections(t *testing.T) {
	f := newFleet(t)
	for _, empty := range []string{
		`placement = {}`,
		`placement = { cluster_affinity = {}, cluster_tolerations = [], spread_constraints = [], replica_scheduling = {} }`,
		`placement = { cluster_affinity = { exclude_clusters = [], label_selector = {}, field_selector = [] } }`,
		`placement = { replica_scheduling = { weight_preference = {}, cluster_limits = [] }, empty_clusters = false }`,
		`placement = { replica_scheduling = { weight_preference = { static_weights = [{ affinity = {}, weight = 1 }] } } }`,
		`placement = { replica_scheduling = { type = "Duplicated" } }`,
		"failover = {}\n fail_back = {}\n labels = {}",
		`failover = { cluster = {}, application = {} }`,
	} {
		t.Run(empty, func(t *testing.T) {
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: factories,
				Steps: []resource.TestStep{{
					Config:           f.config(policy(empty)),
					ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
				}},
			})
		})
	}
}

func TestAccPropagationPolicyDrift(t *testing.T) {
	f := newFleet(t)
	f.member("member1", "4")
	update := resource.ConfigPlanChecks{
		PreApply: []plancheck.PlanCheck{
			plancheck.ExpectResourceAction(policyAddress, plancheck.ResourceActionUpdate),
			plancheck.ExpectUnknownValue(policyAddress, tfjsonpath.New("bindings")),
		},
		PostApplyPostRefresh: emptyPlan(),
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: f.config(policy())},
			{ // a workload is added, which leaves nothing to apply
				PreConfig: func() {
					f.put(&api.Workload{Metadata: webMetadata(), Spec: api.WorkloadSpec{APIVersion: "apps/v1", Kind: "Deployment", Replicas: new(int64(1))}})
					f.untilBound(webWorkload, counts{"member1": 1}, nil)
				},
				Config: f.config(policy()),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(policyAddress, plancheck.ResourceActionNoop)},
				},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(policyAddress, tfjsonpath.New("bindings").AtMapKey("shop/web"), counts{"member1": 1}.check()),
				},
			},
			{
				PreConfig: func() {
					edit(f, webPolicy, func(p *api.PropagationPolicy) {
						p.Spec.Priority, p.Spec.FailBack = 8, &api.FailBack{}
						p.Spec.Placement.ReplicaScheduling = &api.ReplicaScheduling{Type: api.Divided}
					})
				},
				Config: f.config(policy()), ConfigPlanChecks: update,
			},
			{
				PreConfig: func() { f.delete(webPolicy) },
				Config:    f.config(policy()),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(policyAddress, plancheck.ResourceActionCreate)},
					PostApplyPostRefresh: emptyPlan(),
				},
			},
			{ // a concurrent change between plan and apply is not overwritten
				Config: f.config(policy(`priority = 1`)),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{meanwhile(func() {
					edit(f, webPolicy, func(p *api.PropagationPolicy) { p.Spec.Priority = 9 })
				})}},
				ExpectError: regexp.MustCompile(`(?s)Cannot update propagation_policy "shop/web".*plan\s+again`),
			},
		},
	})
}

func TestAccPropagationPolicyExists(t *testing.T) {
	f := newFleet(t)
	f.put(&api.PropagationPolicy{Metadata: webMetadata(), Spec: api.PropagationPolicySpec{ResourceSelectors: []api.ResourceSelector{{APIVersion: "v1", Kind: "Pod"}}}})
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{{
			Config:      f.config(policy()),
			ExpectError: regexp.MustCompile(`(?s)Already exists: propagation_policy "shop/web".*terraform import\s+scheduler_propagation_policy\.<name>\s+shop/web`),
		}},
	})
}
