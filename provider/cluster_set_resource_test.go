package provider_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

var euKey = api.Key{Kind: api.KindClusterSet, Name: "eu"}

// clusterSet checks a set on the server.
func (f *fleet) clusterSet(check func(*api.ClusterSet) bool) resource.TestCheckFunc {
	return func(*terraform.State) error {
		object, err := f.client.Get(f.ctx(), euKey)
		if err != nil {
			return err
		}
		if set, ok := object.(*api.ClusterSet); !ok || !check(set) {
			f.t.Errorf("the server has %+v", object.SpecPart())
		}
		return nil
	}
}

func TestAccClusterSetLifecycle(t *testing.T) {
	f := newFleet(t)
	f.cluster("berlin", "location", "DE")
	eu := "scheduler_cluster_set.eu"
	placed := `
		resource "scheduler_placement" "web" {
		  name         = "web"
		  namespace    = "shop"
		  cluster_sets = [scheduler_cluster_set.eu.name]
		  wait         = { on_timeout = "warning" }
		}`
	settled := resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy:             func(*terraform.State) error { return f.gone(euKey) },
		Steps: []resource.TestStep{
			{ // an empty selector is not an absent one: it matches every cluster
				Config:           f.config("resource \"scheduler_cluster_set\" \"eu\" {\n name = \"eu\"\n selector = {}\n}", placed),
				ConfigPlanChecks: settled,
				Check:            f.clusterSet(func(s *api.ClusterSet) bool { return s.Spec.Selector != nil && s.Admits("shop") }),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(eu, tfjsonpath.New("namespaces"), names("*")),
					statecheck.ExpectKnownValue(eu, tfjsonpath.New("selector"), knownvalue.NotNull()),
					clusters("berlin"),
				},
			},
			{ResourceName: eu, ImportState: true, ImportStateId: "eu", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name"},
			{
				Config: f.config(`
					resource "scheduler_cluster_set" "eu" {
					  name       = "eu"
					  namespaces = ["shop"]
					  selector = {
					    match_labels      = { location = "DE" }
					    match_expressions = [{ key = "tier", operator = "NotIn", values = ["edge"] }, { key = "old", operator = "DoesNotExist" }]
					  }
					}`, placed),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(eu, plancheck.ResourceActionUpdate)},
					PostApplyPostRefresh: emptyPlan(),
				},
				ConfigStateChecks: []statecheck.StateCheck{clusters("berlin")},
			},
			{ // drift: the plan reverts it
				PreConfig: func() { edit(f, euKey, func(s *api.ClusterSet) { s.Spec.Selector = &api.LabelSelector{} }) },
				Config:    f.config("resource \"scheduler_cluster_set\" \"eu\" {\n name = \"eu\"\n clusters = [\"berlin\", \"paris\"]\n}"),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(eu, plancheck.ResourceActionUpdate)},
					PostApplyPostRefresh: emptyPlan(),
				},
				Check: f.clusterSet(func(s *api.ClusterSet) bool { return s.Spec.Selector == nil && len(s.Spec.Clusters) == 2 }),
			},
			{ // empty lists of namespaces and clusters are not defaults
				Config:           f.config("resource \"scheduler_cluster_set\" \"eu\" {\n name = \"eu\"\n clusters = []\n namespaces = []\n}"),
				ConfigPlanChecks: settled,
				Check:            f.clusterSet(func(s *api.ClusterSet) bool { return !s.Admits("shop") && s.Spec.Clusters != nil }),
			},
		},
	})
}
