package provider_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestAccDecisionHistory checks that the data source has the changes of decisions with their causes.
func TestAccDecisionHistory(t *testing.T) {
	f := ratedFleet(t)
	f.put(&api.Placement{Metadata: webMetadata(), Spec: api.PlacementSpec{NumberOfClusters: new(int64(1)), LabelConstraints: []string{"location is DE"}}})
	edit(f, api.Key{Kind: api.KindCluster, Name: "munich"}, func(c *api.Cluster) {
		c.Spec.Taints = []api.Taint{{Key: "maintenance", Effect: api.EffectNoExecute}}
	})
	entry := func(i int, attribute string) tfjsonpath.Path {
		return tfjsonpath.New("entries").AtSliceIndex(i).AtMapKey(attribute)
	}
	text := knownvalue.StringExact
	const all, some = "data.scheduler_decision_history.all", "data.scheduler_decision_history.some"
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{{
			Config: f.config(`
				data "scheduler_decision_history" "all" {
				  kind      = "placement"
				  namespace = "shop"
				  name      = "web"
				}
				data "scheduler_decision_history" "some" {
				  cluster = "berlin"
				  cause   = "taint"
				  since   = "2020-01-01T00:00:00Z"
				  limit   = 1
				}`),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(all, tfjsonpath.New("entries"), knownvalue.ListSizeExact(2)),
				statecheck.ExpectKnownValue(all, entry(0, "before").AtMapKey("clusters"), names("munich")),
				statecheck.ExpectKnownValue(all, entry(0, "after").AtMapKey("clusters"), names("berlin")),
				statecheck.ExpectKnownValue(all, entry(0, "moved").AtSliceIndex(0).AtMapKey("to"), text("berlin")),
				statecheck.ExpectKnownValue(all, entry(0, "cause").AtMapKey("type"), text("taint")),
				statecheck.ExpectKnownValue(all, entry(0, "cause").AtMapKey("object").AtMapKey("name"), text("munich")),
				statecheck.ExpectKnownValue(all, entry(0, "cause").AtMapKey("new"), text("maintenance:NoSelect")),
				statecheck.ExpectKnownValue(all, entry(0, "actor").AtMapKey("request_id"), knownvalue.NotNull()),
				statecheck.ExpectKnownValue(all, entry(1, "cause").AtMapKey("type"), text("spec")),
				statecheck.ExpectKnownValue(some, tfjsonpath.New("entries"), knownvalue.ListSizeExact(1)),
			},
		}, {
			Config:      f.config(`data "scheduler_decision_history" "wrong" { kind = "metric" }`),
			ExpectError: regexp.MustCompile(`has no decisions`),
		}, {
			Config:      f.config(`data "scheduler_decision_history" "wrong" { since = "yesterday" }`),
			ExpectError: regexp.MustCompile(`must be a time`),
		}, {
			Config:      f.config(`data "scheduler_decision_history" "wrong" { limit = 0 }`),
			ExpectError: regexp.MustCompile(`from 1 to 1000`),
		}},
	})
}
