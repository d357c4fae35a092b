package provider_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// The order of zones and taints does not matter, in the configuration and in the server's responses.
func TestAccClusterOrderDoesNotMatter(t *testing.T) {
	f := newFleet(t)
	east := "scheduler_cluster.east"
	cluster := func(zones, taints string) string {
		return f.config(`
			resource "scheduler_cluster" "east" {
			  name   = "east"
			  zones  = [` + zones + `]
			  taints = [` + taints + `]
			}
			output "effects" { value = { for taint in scheduler_cluster.east.taints : taint.key => taint.effect } }`)
	}
	const (
		dedicated = `{ key = "dedicated", value = "web", effect = "NoSchedule" }`
		old       = `{ key = "old", value = "", effect = "PreferNoSelect" }`
	)
	none := resource.ConfigPlanChecks{PreApply: emptyPlan(), PostApplyPostRefresh: emptyPlan()}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{
				Config:           cluster(`"b", "a", "c"`, old+","+dedicated),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{Config: cluster(`"c", "b", "a"`, dedicated+","+old), ConfigPlanChecks: none},
			{ // the server returns them in another order
				PreConfig: func() {
					edit(f, eastKey, func(c *api.Cluster) {
						slices.Reverse(c.Spec.Zones)
						slices.Reverse(c.Spec.Taints)
					})
				},
				Config: cluster(`"b", "a", "c"`, old+","+dedicated), ConfigPlanChecks: none,
			},
			{ // one of them changes
				Config: cluster(`"b", "a"`, old+`, { key = "dedicated", value = "web", effect = "NoSelect" }`),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(east, plancheck.ResourceActionUpdate)},
					PostApplyPostRefresh: emptyPlan(),
				},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownOutputValue("effects", knownvalue.MapExact(map[string]knownvalue.Check{
						"dedicated": knownvalue.StringExact("NoSelect"), "old": knownvalue.StringExact("PreferNoSelect"),
					})),
				},
			},
		},
	})
}

// A list in the state of an earlier provider version is read as a set.
func TestAccStateWithLists(t *testing.T) {
	f := newFleet(t)
	w := newWorkspace(t, f.config(`
		resource "scheduler_cluster" "east" {
		  name   = "east"
		  zones  = ["c", "a", "b"]
		  taints = [
		    { key = "old", value = "", effect = "PreferNoSelect" },
		    { key = "dedicated", value = "web", effect = "NoSchedule" },
		    { key = "draining", effect = "NoExecute" },
		  ]
		}`))
	w.ok("apply", "-auto-approve")
	file := filepath.Join(w.dir, "terraform.tfstate")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var state map[string]any
	if err := json.Unmarshal(data, &state); err != nil {
		t.Fatal(err)
	}
	instance := state["resources"].([]any)[0].(map[string]any)["instances"].([]any)[0].(map[string]any)
	attributes := instance["attributes"].(map[string]any)
	// Lists are in the order of the configuration, which a set is not.
	taint := func(key string, value any, effect string) any {
		return map[string]any{"key": key, "value": value, "effect": effect}
	}
	for _, order := range [][3]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		zones := []any{"c", "a", "b"}
		taints := []any{taint("old", "", "PreferNoSelect"), taint("dedicated", "web", "NoSchedule"), taint("draining", nil, "NoExecute")}
		attributes["zones"] = []any{zones[order[0]], zones[order[1]], zones[order[2]]}
		attributes["taints"] = []any{taints[order[0]], taints[order[1]], taints[order[2]]}
		written, err := json.Marshal(state)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(written, data) {
			t.Fatal("the state is as it was")
		}
		w.file("terraform.tfstate", string(written))
		for _, refresh := range []string{"-refresh=true", "-refresh=false"} {
			if plan := w.ok("plan", "-detailed-exitcode", refresh); plan.code != 0 {
				t.Errorf("%v %s: the plan is not empty:\n%s", order, refresh, plan.output)
			}
		}
	}
}
