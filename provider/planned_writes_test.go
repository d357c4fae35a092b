package provider_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

// A plan counts what it changes itself: a decision that the other writes of the run move is unknown in the plan, what
// follows it is applied with it, and the next plan is empty. Every other decision keeps its value.
func TestAccPlanCountsItsOwnWrites(t *testing.T) {
	f := newFleet(t)
	const placement, workload, policy, cluster = "scheduler_placement.x", "scheduler_workload.x", "scheduler_propagation_policy.x", "scheduler_cluster.x"
	clusters := func(name string, labels ...string) string {
		var b strings.Builder
		for i, id := range []string{"a", "b", "c"} {
			if i < len(labels) && labels[i] != "" {
				fmt.Fprintf(&b, "resource \"scheduler_cluster\" %q {\n name = \"%s-%s\"\n labels = { %s = %s }\n}\n", id, id, name, name, labels[i])
			}
		}
		return b.String()
	}
	onClusters := func(name, more string) string {
		return fmt.Sprintf(`
			resource "scheduler_placement" "x" {
			  name               = "x"
			  namespace          = %[1]q
			  number_of_clusters = 1
			  strategy           = "prioritizers"
			  label_constraints  = ["%[1]s is on"]
			  depends_on         = [scheduler_cluster.a, scheduler_cluster.b]
			  %[2]s
			}
			resource "terraform_data" "follows" { input = scheduler_placement.x.clusters }
			output "x" { value = terraform_data.follows.output }`, name, more)
	}
	released := "\nresource \"terraform_data\" \"release\" {\n for_each = toset(scheduler_placement.x.clusters)\n}\n"
	score := func(name, id string, value int) string {
		return fmt.Sprintf(`
			resource "scheduler_placement_score" %[2]q {
			  cluster = "%[2]s-%[1]s"
			  name    = "s"
			  scores  = { v = %[3]d }
			  depends_on = [scheduler_cluster.a, scheduler_cluster.b]
			}`, name, id, value)
	}
	byScore := `
		prioritizer_policy = { mode = "exact", configurations = [{ type = "addon", resource_name = "s", score_name = "v" }] }
		depends_on         = [scheduler_placement_score.a, scheduler_placement_score.b]`
	scored := func(name string, a, b int) string {
		return clusters(name, `"on"`, `"on"`) + score(name, "a", a) + score(name, "b", b) +
			strings.Replace(onClusters(name, byScore), "depends_on         = [scheduler_cluster.a, scheduler_cluster.b]", "", 1)
	}
	window := func(name string) string {
		return fmt.Sprintf("resource \"scheduler_move_window\" \"x\" {\n name = \"x\"\n namespace = %q\n}\n", name)
	}
	running := func(name, order, replicas string) string {
		return clusters(name, `"on"`, `"on"`) + fmt.Sprintf(`
			resource "scheduler_propagation_policy" "x" {
			  name               = "p"
			  namespace          = %[1]q
			  resource_selectors = [{ api_version = "apps/v1", kind = "Deployment" }]
			  placement = {
			    cluster_affinities = [for name in %[2]s : { affinity_name = name, cluster_names = ["${name}-%[1]s"] }]
			  }
			  depends_on = [scheduler_cluster.a, scheduler_cluster.b]
			}
			resource "scheduler_workload" "x" {
			  name        = "w"
			  namespace   = %[1]q
			  api_version = "apps/v1"
			  kind        = "Deployment"
			  replicas    = %[3]s
			  depends_on  = [scheduler_propagation_policy.x]
			}
			output "x" { value = keys(scheduler_workload.x.clusters) }`, name, order, replicas)
	}
	onCloud := func(name, first string) string {
		return fmt.Sprintf(`
			resource "scheduler_cloud" "a" {
			  name   = "a-%[1]s"
			  labels = { %[1]s = %[2]q }
			}
			resource "scheduler_cloud" "b" {
			  name   = "b-%[1]s"
			  labels = { %[1]s = "on" }
			}
			resource "scheduler_cluster" "x" {
			  name              = "x-%[1]s"
			  cloud_constraints = { label_constraints = ["%[1]s is on"] }
			  depends_on        = [scheduler_cloud.a, scheduler_cloud.b]
			}
			output "x" { value = scheduler_cluster.x.cloud }`, name, first)
	}
	computed := "resource \"terraform_data\" \"label\" { input = %q }\n"

	for _, test := range []struct {
		name          string
		before, after func(name string) string
		unknown       []string // "address.attribute" that the plan does not know
		known         []string // those that it does
		then          []string // clusters of the output x after the apply
	}{
		{
			name:    "the labels of the cluster",
			before:  func(n string) string { return clusters(n, `"on"`, `"on"`) + onClusters(n, "") },
			after:   func(n string) string { return clusters(n, `"off"`, `"on"`) + onClusters(n, "") },
			unknown: []string{placement + ".clusters"}, then: []string{"b"},
		},
		{
			name:   "the labels of another cluster",
			before: func(n string) string { return clusters(n, `"on"`, `"on"`) + onClusters(n, "") + released },
			after:  func(n string) string { return clusters(n, `"on"`, `"off"`) + onClusters(n, "") + released },
			known:  []string{placement + ".clusters"}, then: []string{"a"},
		},
		{ // that is no error of the apply: nothing was asked of the placement
			name:    "the labels of all clusters",
			before:  func(n string) string { return clusters(n, `"on"`, `"on"`) + onClusters(n, "") },
			after:   func(n string) string { return clusters(n, `"off"`, `"off"`) + onClusters(n, "") },
			unknown: []string{placement + ".clusters"}, then: []string{},
		},
		{
			name: "a label that is not known yet",
			before: func(n string) string {
				return fmt.Sprintf(computed, "on") + clusters(n, `terraform_data.label.output`, `"on"`) + onClusters(n, "")
			},
			after: func(n string) string {
				return fmt.Sprintf(computed, "off") + clusters(n, `terraform_data.label.output`, `"on"`) + onClusters(n, "")
			},
			unknown: []string{placement + ".clusters"}, then: []string{"b"},
		},
		{
			name:   "a cluster is deleted, and the dependency with it",
			before: func(n string) string { return clusters(n, `"on"`, `"on"`) + onClusters(n, "") },
			after: func(n string) string {
				return clusters(n, `"off"`, "", `"on"`) + strings.Replace(onClusters(n, ""), "cluster.b]", "cluster.c]", 1)
			},
			unknown: []string{placement + ".clusters"}, then: []string{"c"},
		},
		{
			name:    "scores",
			before:  func(n string) string { return scored(n, 50, 10) },
			after:   func(n string) string { return scored(n, 10, 50) },
			unknown: []string{placement + ".clusters"}, then: []string{"b"},
		},
		{
			name:   "scores that keep their order",
			before: func(n string) string { return scored(n, 50, 10) },
			after:  func(n string) string { return scored(n, 60, 20) },
			known:  []string{placement + ".clusters"}, then: []string{"a"},
		},
		{
			name:   "scores, while a window holds the decision",
			before: func(n string) string { return window(n) + scored(n, 50, 10) },
			after:  func(n string) string { return window(n) + scored(n, 10, 50) },
			known:  []string{placement + ".clusters"}, then: []string{"a"},
		},
		{
			name:    "scores, and the window goes",
			before:  func(n string) string { return window(n) + scored(n, 50, 10) },
			after:   func(n string) string { return scored(n, 10, 50) },
			unknown: []string{placement + ".clusters"}, then: []string{"b"},
		},
		{
			name:    "a policy",
			before:  func(n string) string { return running(n, `["a", "b"]`, "2") },
			after:   func(n string) string { return running(n, `["b"]`, "2") },
			unknown: []string{workload + ".clusters", policy + ".bindings"}, then: []string{"b"},
		},
		{
			name:   "a policy that moves nothing",
			before: func(n string) string { return running(n, `["a", "b"]`, "2") },
			after:  func(n string) string { return running(n, `["a"]`, "2") },
			known:  []string{workload + ".clusters"}, unknown: []string{policy + ".bindings"}, then: []string{"a"},
		},
		{
			name:   "the clusters of a policy",
			before: func(n string) string { return running(n, `["a", "b"]`, "2") },
			after: func(n string) string {
				return strings.Replace(running(n, `["a", "b"]`, "2"), `name = "a-`, "taints = [{ key = \"k\", effect = \"NoSelect\" }]\n name = \"a-", 1)
			},
			unknown: []string{workload + ".clusters", policy + ".bindings"}, then: []string{"b"},
		},
		{
			name:   "another cluster of a policy",
			before: func(n string) string { return running(n, `["a", "b"]`, "2") },
			after: func(n string) string {
				return strings.Replace(running(n, `["a", "b"]`, "2"), `name = "b-`, "taints = [{ key = \"k\", effect = \"NoSelect\" }]\n name = \"b-", 1)
			},
			known: []string{workload + ".clusters", policy + ".bindings"}, then: []string{"a"},
		},
		{
			name:   "the labels of a cloud",
			before: func(n string) string { return onCloud(n, "on") },
			after:  func(n string) string { return onCloud(n, "off") },
			known:  []string{cluster + ".cloud"}, // it stays on the cloud that it is created on
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			name := strings.NewReplacer(",", "", " ", "-").Replace(test.name)
			var checks []plancheck.PlanCheck
			at := func(attribute string) (string, tfjsonpath.Path) {
				i := strings.LastIndex(attribute, ".")
				return attribute[:i], tfjsonpath.New(attribute[i+1:])
			}
			for _, attribute := range test.unknown {
				address, path := at(attribute)
				checks = append(checks, plancheck.ExpectUnknownValue(address, path))
			}
			for _, attribute := range test.known {
				address, path := at(attribute)
				checks = append(checks, plancheck.ExpectKnownValue(address, path, knownvalue.NotNull()))
			}
			last := resource.TestStep{
				Config:           f.config(test.after(name)),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: checks, PostApplyPostRefresh: emptyPlan()},
			}
			if test.then != nil {
				want := make([]string, len(test.then))
				for i, id := range test.then {
					want[i] = id + "-" + name
				}
				last.ConfigStateChecks = []statecheck.StateCheck{statecheck.ExpectKnownOutputValue("x", names(want...))}
			}
			first := f.config(test.before(name))
			steps := []resource.TestStep{{Config: first}, last}
			if strings.Contains(first, released) { // it can be made only after the decision, and the library cannot clean it up
				bare := strings.Replace(first, released, "", 1)
				steps = []resource.TestStep{{Config: bare}, {Config: first}, last, {Config: bare, Destroy: true}}
			}
			resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: factories, Steps: steps})
		})
	}
}

// A server that does not simulate costs the plan the values of the decisions, and the user a warning, not the plan.
func TestAccPlanWithoutSimulations(t *testing.T) {
	f := newFleet(t)
	wire := f.recorder()
	wire.refuse = func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/simulations") }
	config := func(label string) string {
		return strings.Replace(f.config(fmt.Sprintf(`
			resource "scheduler_cluster" "a" {
			  name   = "a"
			  labels = { tier = %q }
			}
			resource "scheduler_placement" "x" {
			  name       = "x"
			  depends_on = [scheduler_cluster.a]
			}`, label)), f.endpoint, wire.endpoint, 1)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: config("gold")},
			{
				Config: config("iron"),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectUnknownValue("scheduler_placement.x", tfjsonpath.New("clusters"))},
					PostApplyPostRefresh: emptyPlan(),
				},
			},
		},
	})
}
