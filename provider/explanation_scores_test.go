package provider_test

import (
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestAccExplanationOfScores checks that the data source distinguishes expired from absent scores, and says when the
// next one expires.
func TestAccExplanationOfScores(t *testing.T) {
	f := ratedFleet(t)
	past, later := time.Now().Add(-time.Hour).UTC().Truncate(time.Second), time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	f.put(&api.PlacementScore{Metadata: api.Metadata{Name: "load", Cluster: "berlin"}, Spec: api.PlacementScoreSpec{Scores: map[string]int64{"cpu": 40}, ValidUntil: &later}})
	f.put(&api.PlacementScore{Metadata: api.Metadata{Name: "load", Cluster: "munich"}, Spec: api.PlacementScoreSpec{Scores: map[string]int64{"cpu": 70}, ValidUntil: &past}})
	f.put(&api.Placement{Metadata: webMetadata(), Spec: api.PlacementSpec{
		Strategy: api.StrategyPrioritizers,
		PrioritizerPolicy: &api.PrioritizerPolicy{Mode: api.ModeExact, Configurations: []api.PrioritizerConfig{
			{Type: api.PrioritizerAddon, ResourceName: "load", ScoreName: "cpu"},
		}},
		Tolerations: []api.Toleration{{Operator: api.TolerationExists}},
	}})
	x := "data.scheduler_placement_explanation.web"
	at := func(candidate int, attribute string) tfjsonpath.Path {
		return tfjsonpath.New("candidates").AtSliceIndex(candidate).AtMapKey("scores").AtSliceIndex(0).AtMapKey(attribute)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{{
			Config: f.config(`data "scheduler_placement_explanation" "web" {
			  name      = "web"
			  namespace = "shop"
			}`),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(x, tfjsonpath.New("next_at"), knownvalue.StringExact(later.Add(1).Format(time.RFC3339Nano))),
				statecheck.ExpectKnownValue(x, tfjsonpath.New("candidates").AtSliceIndex(0).AtMapKey("cluster"), knownvalue.StringExact("berlin")),
				statecheck.ExpectKnownValue(x, at(0, "raw"), knownvalue.Int64Exact(40)),
				statecheck.ExpectKnownValue(x, at(0, "expired_at"), knownvalue.Null()),
				statecheck.ExpectKnownValue(x, tfjsonpath.New("candidates").AtSliceIndex(1).AtMapKey("cluster"), knownvalue.StringExact("munich")),
				statecheck.ExpectKnownValue(x, at(1, "raw"), knownvalue.Int64Exact(70)),
				statecheck.ExpectKnownValue(x, at(1, "value"), knownvalue.Int64Exact(0)),
				statecheck.ExpectKnownValue(x, at(1, "expired_at"), knownvalue.StringExact(past.Format(time.RFC3339))),
				statecheck.ExpectKnownValue(x, at(1, "reason"), knownvalue.StringExact("expired since "+past.Format(time.RFC3339)+"; counts as 0")),
				statecheck.ExpectKnownValue(x, tfjsonpath.New("candidates").AtSliceIndex(2).AtMapKey("cluster"), knownvalue.StringExact("paris")),
				statecheck.ExpectKnownValue(x, at(2, "raw"), knownvalue.Null()),
				statecheck.ExpectKnownValue(x, at(2, "reason"), knownvalue.StringExact(`absent: the cluster has no placement score "load"; counts as 0`)),
			},
		}},
	})
}
