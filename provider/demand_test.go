package provider_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/config"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
)

// A placement lacks clusters, the next apply makes them, they stay, and one that is no longer used goes.
func TestAccStoryDemand(t *testing.T) {
	f, step := story(t, "demand")
	wanted := func(n int) config.Variables {
		return config.Variables{"number_of_clusters": config.IntegerVariable(n)}
	}
	made := func(n int64) map[string]knownvalue.Check {
		return map[string]knownvalue.Check{"made": knownvalue.Int64Exact(n)}
	}
	first := step
	first.ConfigPlanChecks, first.ExpectNonEmptyPlan = resource.ConfigPlanChecks{}, true
	first.ConfigVariables = wanted(2)
	shop := api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "shop"}
	demanded := func() *api.Demand {
		object, err := f.client.Get(f.ctx(), shop)
		if err != nil {
			t.Fatal(err)
		}
		return object.(*api.Placement).Status.Demand
	}
	more := step
	more.ConfigPlanChecks, more.ExpectNonEmptyPlan = resource.ConfigPlanChecks{}, true
	resource.Test(t, resource.TestCase{
		Steps: []resource.TestStep{
			first,
			then(step, func() {
				if d := demanded(); d == nil || d.Clusters != 2 || d.Labels["location"] != "DE" || d.Resources["cpu"] != "4" {
					t.Errorf("demand %+v", d)
				}
			}, wanted(2), made(2)),
			then(step, func() {
				if d := demanded(); d != nil {
					t.Errorf("still demands %s", d.Sentence())
				}
			}, wanted(2), made(2)),
			then(more, nil, wanted(1), nil),
			then(step, nil, wanted(1), made(1)),
			{ProtoV6ProviderFactories: step.ProtoV6ProviderFactories, ConfigFile: step.ConfigFile, Destroy: true},
		},
	})
}

// The server declares a cluster for a placement. A scheduler_cluster of its name adopts it.
func TestAccAutoCluster(t *testing.T) {
	f := newFleet(t)
	placement := `
resource "scheduler_placement" "web" {
  name               = "web"
  namespace          = "shop"
  number_of_clusters = 1
  label_constraints  = ["location is DE"]

  auto_cluster = {
    template          = { labels = { team = "shop" } }
    label_constraints = ["location is DE"]
  }
}

data "scheduler_placement_decisions" "web" {
  name       = "web"
  namespace  = "shop"
  depends_on = [scheduler_placement.web]
}
`
	var declared *api.Cluster
	find := func() bool {
		list, err := f.client.Demand(f.ctx(), "shop")
		if err != nil || len(list.Items) != 1 || list.Items[0].State != api.DemandPending {
			return false
		}
		object, err := f.client.Get(f.ctx(), api.Key{Kind: api.KindCluster, Name: list.Items[0].Cluster})
		if err != nil {
			return false
		}
		declared, _ = object.(*api.Cluster)
		return declared != nil
	}
	adopted := placement + `
data "scheduler_demand" "web" {
  namespace = "shop"
}

resource "scheduler_cluster" "web" {
  for_each = data.scheduler_demand.web.clusters

  name        = each.key
  namespace   = "shop"
  labels      = each.value.labels
  allocatable = { cpu = "4" }
  demand      = each.value
}
`
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{
				Config: f.config(placement),
				Check:  resource.TestCheckResourceAttr("data.scheduler_placement_decisions.web", "demand.labels.location", "DE"),
			},
			{
				PreConfig: func() {
					eventually.True(t, "a cluster is declared", find)
					if declared.Spec.Namespace != "shop" || declared.Metadata.Labels["team"] != "shop" || declared.Status.State != api.StatePending {
						t.Errorf("declared %+v", declared)
					}
				},
				Config: f.config(adopted),
			},
			{
				PreConfig: func() {
					object, err := f.client.Get(f.ctx(), api.KeyOf(declared))
					if err != nil {
						t.Fatal(err)
					}
					if object.Meta().Declared || object.Meta().UID != declared.Metadata.UID {
						t.Errorf("not adopted: %+v", object.Meta())
					}
					f.until(api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}, declared.Metadata.Name)
				},
				Config:           f.config(adopted),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			},
			{Config: f.config(adopted), Destroy: true},
		},
	})
}

func TestAccAutoClusterInvalid(t *testing.T) {
	f := newFleet(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{{
			Config: f.config(`
resource "scheduler_placement" "web" {
  name         = "web"
  auto_cluster = { max = 0, label_constraints = ["location <"] }
}
`),
			PlanOnly:    true,
			ExpectError: regexp.MustCompile(`auto_cluster`),
		}},
	})
}
