package provider_test

import (
	"encoding/json"
	"fmt"
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

var eastKey = api.Key{Kind: api.KindCluster, Name: "east"}

const fullCluster = `
	resource "scheduler_cluster" "east" {
	  name             = "east"
	  namespace        = "shop"
	  labels           = { location = "DE", "team/tier" = "prod" }
	  cloud_provider   = "aws"
	  region           = "eu-central-1"
	  zones            = ["a", "b"]
	  custom_resources = ["crontabs.stable.example.com"]
	  metrics          = [{ name = "load", weight = 0.1 }, { name = "cost", namespace = "shop" }]
	  capacity         = { cpu = "64", memory = "256Gi" }
	  allocatable      = { cpu = "60", memory = "250Gi" }
	  allocated        = { cpu = "1500m" }
	  paused           = true
	  claims           = { gpu = "h100", empty = "" }
	  taints           = [{ key = "dedicated", value = "web", effect = "NoSchedule" }, { key = "old", effect = "PreferNoSelect" }]
	  health           = { url = "http://127.0.0.1:1/healthz", interval = "1m0s", failure_threshold = 5, success_threshold = 1 }
	  kubernetes       = { kubeconfig_wo_version = %d, kubeconfig_wo = ` + kubeconfigHCL + ` }
	  spot             = { enabled = true, node_type_key = "karpenter.sh/capacity-type", on_disable = "recreate" }
	}`

func TestAccClusterLifecycle(t *testing.T) {
	f := newFleet(t)
	east := "scheduler_cluster.east"
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy:             func(*terraform.State) error { return f.gone(eastKey) },
		Steps: []resource.TestStep{
			{
				Config:           f.config(`resource "scheduler_cluster" "east" { name = "east" }`),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{
				Config: f.config(fmt.Sprintf(fullCluster, 1)),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(east, plancheck.ResourceActionUpdate)},
					PostApplyPostRefresh: emptyPlan(),
				},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(east, tfjsonpath.New("metrics").AtSliceIndex(1).AtMapKey("weight"), knownvalue.Float64Exact(1)),
					statecheck.ExpectKnownValue(east, tfjsonpath.New("health").AtMapKey("interval"), knownvalue.StringExact("1m0s")),
				},
			},
			{
				ResourceName: east, ImportState: true, ImportStateId: "east",
				ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name", ImportStateVerifyIgnore: []string{"kubernetes.kubeconfig_wo_version"},
			},
			{ // all optional attributes are removed
				Config: f.config(`resource "scheduler_cluster" "east" { name = "east" }`),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(east, plancheck.ResourceActionUpdate)},
					PostApplyPostRefresh: emptyPlan(),
				},
			},
			{ // another name means another cluster
				Config: f.config(`resource "scheduler_cluster" "east" { name = "west" }`),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(east, plancheck.ResourceActionReplace)},
				},
			},
		},
	})
}

// The server does not return empty lists and maps. They stay in the state as configured.
func TestAccClusterEmptyCollections(t *testing.T) {
	f := newFleet(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{{
			Config: f.config(`
				resource "scheduler_cluster" "east" {
				  name             = "east"
				  labels           = {}
				  region           = ""
				  zones            = []
				  custom_resources = []
				  metrics          = []
				  capacity         = {}
				  claims           = {}
				  taints           = []
				  kubernetes       = {}
				  health           = {}
				  spot             = {}
				}
				resource "scheduler_metrics_provider" "table" {
				  name   = "table"
				  type   = "static"
				  static = { metrics = {} }
				}
				resource "scheduler_placement" "web" {
				  name               = "web"
				  number_of_clusters = 0
				  label_constraints  = []
				  resource_requests  = {}
				  tolerations        = []
				  spread_constraints = []
				  metrics            = {}
				}`),
			ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue("scheduler_cluster.east", tfjsonpath.New("zones"), knownvalue.SetSizeExact(0)),
				statecheck.ExpectKnownValue("scheduler_cluster.east", tfjsonpath.New("spot"), knownvalue.ObjectExact(map[string]knownvalue.Check{
					"enabled": knownvalue.Bool(false), "node_type_key": knownvalue.StringExact(api.DefaultNodeTypeKey), "on_disable": knownvalue.StringExact("keep"),
				})),
				statecheck.ExpectKnownValue("scheduler_placement.web", tfjsonpath.New("metrics").AtMapKey("stickiness"), knownvalue.Float64Exact(0.1)),
			},
		}},
	})
}

func TestAccClusterDrift(t *testing.T) {
	f := newFleet(t)
	config := f.config(`
		resource "scheduler_cluster" "east" {
		  name   = "east"
		  labels = { location = "DE" }
		  zones  = ["a"]
		  spot   = { enabled = true }
		}`)
	east := "scheduler_cluster.east"
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: config},
			{ // changed outside of Terraform: the plan reverts it
				PreConfig: func() {
					edit(f, eastKey, func(c *api.Cluster) {
						c.Metadata.Labels = map[string]string{"location": "FR", "extra": "yes"}
						c.Spec.Zones, c.Spec.Paused = nil, true
						c.Spec.Spot = &api.SpotSpec{NodeTypeKey: "eks.amazonaws.com/capacityType"}
					})
				},
				Config: config,
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(east, plancheck.ResourceActionUpdate)},
					PostApplyPostRefresh: emptyPlan(),
				},
				Check: func(*terraform.State) error {
					object, err := f.client.Get(f.ctx(), eastKey)
					if err != nil {
						return err
					}
					want := api.SpotSpec{Enabled: true, NodeTypeKey: api.DefaultNodeTypeKey, OnDisable: api.OnDisableKeep}
					if c, ok := object.(*api.Cluster); !ok || c.Spec.Spot == nil || *c.Spec.Spot != want {
						return fmt.Errorf("the cluster is %+v", object)
					}
					return nil
				},
			},
			{ // deleted outside of Terraform: the plan creates it again
				PreConfig: func() { f.delete(eastKey) },
				Config:    config,
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(east, plancheck.ResourceActionCreate)},
					PostApplyPostRefresh: emptyPlan(),
				},
			},
			{ // deleted and destroyed: nothing is left to do
				PreConfig: func() { f.delete(eastKey) },
				Config:    config,
				Destroy:   true,
			},
		},
	})
}

// The secret reaches the server and is not in the state.
func TestAccClusterSecret(t *testing.T) {
	f := newFleet(t)
	noSecret := func(s *terraform.State) error {
		data, err := json.Marshal(s)
		if err != nil {
			return err
		}
		if strings.Contains(string(data), "the first secret") {
			return fmt.Errorf("the state has the secret: %s", data)
		}
		return nil
	}
	before := int64(0)
	generation := func(more int64) resource.TestCheckFunc {
		return func(*terraform.State) error {
			object, err := f.client.Get(f.ctx(), eastKey)
			if err != nil {
				return err
			}
			if got := object.Meta().Generation; got != before+more {
				return fmt.Errorf("generation is %d, expected %d", got, before+more)
			}
			before = object.Meta().Generation
			return nil
		}
	}
	changed := strings.Replace(fullCluster, "the first secret", "another secret", 1)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{
				Config: f.config(fmt.Sprintf(fullCluster, 1)),
				Check:  resource.ComposeTestCheckFunc(noSecret, generation(1)),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue("scheduler_cluster.east", tfjsonpath.New("kubernetes").AtMapKey("kubeconfig_wo"), knownvalue.Null()),
				},
			},
			{ // Terraform cannot see that the secret has changed
				Config:           f.config(fmt.Sprintf(changed, 1)),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: emptyPlan()},
				Check:            generation(0),
			},
			{ // the new version shows it
				Config: f.config(fmt.Sprintf(changed, 2)),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction("scheduler_cluster.east", plancheck.ResourceActionUpdate)},
				},
				Check: resource.ComposeTestCheckFunc(noSecret, generation(1)),
			},
			{ // sending the same secret again changes nothing on the server
				Config: f.config(fmt.Sprintf(changed, 3)),
				Check:  generation(0),
			},
		},
	})
}
