package provider_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// score writes the scores of a cluster as its agent does.
func (f *fleet) score(cluster, name string, scores map[string]int64) {
	f.t.Helper()
	f.put(&api.PlacementScore{
		Metadata: api.Metadata{Cluster: cluster, Name: name},
		Spec:     api.PlacementScoreSpec{Scores: scores},
	})
}

func TestAccPlacementScoreLifecycle(t *testing.T) {
	f := newFleet(t)
	f.cluster("east")
	key := api.Key{Kind: api.KindPlacementScore, Namespace: "east", Name: "support"}
	score := func(validUntil, scores string) string {
		return f.config(fmt.Sprintf(`
			resource "scheduler_placement_score" "support" {
			  cluster     = "east"
			  name        = "support"
			  valid_until = %s
			  scores      = %s
			}`, validUntil, scores))
	}
	support := "scheduler_placement_score.support"
	update := resource.ConfigPlanChecks{
		PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(support, plancheck.ResourceActionUpdate)},
		PostApplyPostRefresh: emptyPlan(),
	}
	untouched := resource.ConfigPlanChecks{PreApply: emptyPlan()}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy:             func(*terraform.State) error { return f.gone(key) },
		Steps: []resource.TestStep{
			{ // the time zone stays as configured, although the server returns UTC
				Config:           score(`"2035-06-30T23:59:59+02:00"`, `{ grade = 80, price = -25, none = 0 }`),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(support, tfjsonpath.New("valid_until"), knownvalue.StringExact("2035-06-30T23:59:59+02:00")),
					statecheck.ExpectKnownValue(support, tfjsonpath.New("scores").AtMapKey("none"), knownvalue.Int64Exact(0)),
				},
				Check: func(*terraform.State) error {
					object, err := f.client.Get(f.ctx(), key)
					if err != nil {
						return err
					}
					stored, ok := object.(*api.PlacementScore)
					if want := time.Date(2035, 6, 30, 21, 59, 59, 0, time.UTC); !ok || !stored.Spec.ValidUntil.Equal(want) || stored.Spec.Scores["price"] != -25 {
						return fmt.Errorf("the server has %+v", object.SpecPart())
					}
					return nil
				},
			},
			{ // another spelling of the same time leaves nothing to apply
				Config:           score(`"2035-06-30T21:59:59Z"`, `{ grade = 80, price = -25, none = 0 }`),
				ConfigPlanChecks: untouched,
			},
			{
				ResourceName: support, ImportState: true, ImportStateId: "east/support",
				ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
				ImportStateVerifyIgnore: []string{"valid_until"}, // imported in UTC
			},
			{Config: score(`"2035-07-01T00:00:00Z"`, `{ grade = 81 }`), ConfigPlanChecks: update},
			{ // an agent writes the same object: the plan restores the configuration
				PreConfig:        func() { f.score("east", "support", map[string]int64{"grade": 81, "load": 3}) },
				Config:           score(`"2035-07-01T00:00:00Z"`, `{ grade = 81 }`),
				ConfigPlanChecks: update,
			},
			{Config: score(`null`, `{}`), ConfigPlanChecks: update},
			{
				PreConfig: func() { f.delete(key) },
				Config:    score(`null`, `{}`),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(support, plancheck.ResourceActionCreate)},
					PostApplyPostRefresh: emptyPlan(),
				},
			},
		},
	})
}

// A cluster that is replaced keeps its scores, both configured ones and those written by an agent.
func TestAccReplacedClusterKeepsItsScores(t *testing.T) {
	f := newFleet(t)
	config := f.config(`
		resource "scheduler_cluster" "c" {
		  name = "c"
		}
		resource "scheduler_placement_score" "s" {
		  cluster = scheduler_cluster.c.name
		  name    = "s"
		  scores  = { load = 7 }
		}`)
	agents := &api.PlacementScore{Metadata: api.Metadata{Cluster: "c", Name: "agent"}, Spec: api.PlacementScoreSpec{Scores: map[string]int64{"heat": 3}}}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: config},
			{
				PreConfig: func() { f.put(agents) },
				Config:    config,
				Taint:     []string{"scheduler_cluster.c"},
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction("scheduler_cluster.c", plancheck.ResourceActionReplace)},
					PostApplyPostRefresh: emptyPlan(),
				},
				Check: func(*terraform.State) error {
					_, err := f.client.Get(f.ctx(), api.KeyOf(agents))
					return err
				},
			},
		},
	})
}
