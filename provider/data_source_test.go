package provider_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// ratedFleet has two clusters, rated by a static metric: berlin 0.2, munich 0.8.
func ratedFleet(t *testing.T) *fleet {
	f := newFleet(t)
	f.put(&api.MetricsProvider{Metadata: api.Metadata{Name: "table"}, Spec: api.MetricsProviderSpec{
		Type: api.ProviderStatic, Static: &api.StaticSpec{Metrics: map[string]float64{"green_berlin": 2, "green_munich": 8}},
	}})
	for name, location := range map[string]string{"berlin": "DE", "munich": "DE", "paris": "FR"} {
		cluster := &api.Cluster{Metadata: api.Metadata{Name: name, Labels: map[string]string{"location": location}}}
		if location == "DE" {
			f.put(&api.Metric{Metadata: api.Metadata{Name: "green-" + name}, Spec: api.MetricSpec{
				Min: new(0.0), Max: new(10.0), MetricsProvider: api.MetricProviderRef{Name: "table", Metric: "green_" + name},
			}})
			cluster.Spec.Metrics = []api.MetricRef{{Name: "green-" + name}}
		}
		f.put(cluster)
	}
	return f
}

func TestAccDataSources(t *testing.T) {
	f := ratedFleet(t)
	f.put(&api.Placement{Metadata: webMetadata(), Spec: api.PlacementSpec{
		NumberOfClusters: new(int64(1)), LabelConstraints: []string{"location is DE"},
		Tolerations: []api.Toleration{{Operator: api.TolerationExists}},
	}})
	edit(f, api.Key{Kind: api.KindCluster, Name: "paris"}, func(c *api.Cluster) {
		c.Spec.Claims = map[string]string{"gpu": "h100"}
		c.Spec.Taints = []api.Taint{{Key: "dedicated", Value: "web", Effect: api.EffectNoExecute}}
	})
	at := tfjsonpath.New[string]
	text, number := knownvalue.StringExact, knownvalue.Float64Exact
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{{
			Config: f.config(`
				data "scheduler_cluster" "berlin" { name = "berlin" }
				data "scheduler_cluster" "paris" { name = "paris" }
				data "scheduler_clusters" "all" {}
				data "scheduler_clusters" "selected" { label_selector = "location=DE,location!=FR" }
				data "scheduler_clusters" "constrained" { label_constraints = ["location not in (DE)"] }
				data "scheduler_metric" "green" { name = "green-munich" }
				data "scheduler_placement_decisions" "web" {
				  name      = "web"
				  namespace = "shop"
				}
				data "scheduler_placement_explanation" "web" {
				  name      = "web"
				  namespace = "shop"
				}
				data "scheduler_server" "it" {}`),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue("data.scheduler_cluster.berlin", at("labels").AtMapKey("location"), text("DE")),
				statecheck.ExpectKnownValue("data.scheduler_cluster.berlin", at("status").AtMapKey("state"), text("online")),
				statecheck.ExpectKnownValue("data.scheduler_cluster.berlin", at("status").AtMapKey("metrics").AtSliceIndex(0).AtMapKey("normalized"), number(0.2)),
				statecheck.ExpectKnownValue("data.scheduler_cluster.berlin", at("generation"), knownvalue.Int64Exact(1)),
				statecheck.ExpectKnownValue("data.scheduler_cluster.paris", at("claims").AtMapKey("gpu"), text("h100")),
				statecheck.ExpectKnownValue("data.scheduler_cluster.paris", at("taints").AtSliceIndex(0).AtMapKey("effect"), text("NoExecute")),
				statecheck.ExpectKnownValue("data.scheduler_cluster.paris", at("status").AtMapKey("taints").AtSliceIndex(0).AtMapKey("value"), text("web")),
				statecheck.ExpectKnownValue("data.scheduler_cluster.paris", at("status").AtMapKey("taints").AtSliceIndex(0).AtMapKey("time_added"), knownvalue.NotNull()),
				statecheck.ExpectKnownValue("data.scheduler_clusters.all", at("names"), names("berlin", "munich", "paris")),
				statecheck.ExpectKnownValue("data.scheduler_clusters.selected", at("names"), names("berlin", "munich")),
				statecheck.ExpectKnownValue("data.scheduler_clusters.constrained", at("names"), names("paris")),
				statecheck.ExpectKnownValue("data.scheduler_clusters.constrained", at("clusters").AtSliceIndex(0).AtMapKey("name"), text("paris")),
				// Absent lists can be iterated over.
				statecheck.ExpectKnownValue("data.scheduler_clusters.constrained", at("clusters").AtSliceIndex(0).AtMapKey("status").AtMapKey("metrics"), knownvalue.ListSizeExact(0)),
				statecheck.ExpectKnownValue("data.scheduler_clusters.constrained", at("clusters").AtSliceIndex(0).AtMapKey("zones"), knownvalue.ListSizeExact(0)),
				statecheck.ExpectKnownValue("data.scheduler_clusters.constrained", at("clusters").AtSliceIndex(0).AtMapKey("allocatable"), knownvalue.MapSizeExact(0)),
				statecheck.ExpectKnownValue("data.scheduler_metric.green", at("metrics_provider").AtMapKey("metric"), text("green_munich")),
				statecheck.ExpectKnownValue("data.scheduler_metric.green", at("status").AtMapKey("value"), number(8)),
				statecheck.ExpectKnownValue("data.scheduler_metric.green", at("status").AtMapKey("conditions").AtSliceIndex(0).AtMapKey("reason"), text(api.ReasonAvailable)),
				statecheck.ExpectKnownValue("data.scheduler_placement_decisions.web", at("clusters"), names("munich")),
				statecheck.ExpectKnownValue("data.scheduler_placement_decisions.web", at("decisions").AtSliceIndex(0).AtMapKey("score"), number(0.8)),
				statecheck.ExpectKnownValue("data.scheduler_placement_decisions.web", at("decision_revision"), knownvalue.Int64Exact(1)),
				statecheck.ExpectKnownValue("data.scheduler_placement_decisions.web", at("scheduled_at"), knownvalue.NotNull()),
				statecheck.ExpectKnownValue("data.scheduler_placement_decisions.web", at("cause").AtMapKey("type"), text("spec")),
				statecheck.ExpectKnownValue("data.scheduler_placement_decisions.web", at("cause").AtMapKey("object").AtMapKey("name"), text("web")),
				statecheck.ExpectKnownValue("data.scheduler_placement_explanation.web", at("summary"), knownvalue.StringRegexp(regexp.MustCompile(`^munich chosen; 2 of 3 clusters fit`))),
				statecheck.ExpectKnownValue("data.scheduler_placement_explanation.web", at("total"), knownvalue.Int64Exact(3)),
				statecheck.ExpectKnownValue("data.scheduler_placement_explanation.web", at("candidates"), knownvalue.ListSizeExact(3)),
				statecheck.ExpectKnownValue("data.scheduler_placement_explanation.web", at("rejections").AtSliceIndex(0).AtMapKey("count"), knownvalue.Int64Exact(1)),
				statecheck.ExpectKnownValue("data.scheduler_placement_explanation.web", at("nearest_miss").AtMapKey("on"), text("location is DE")),
				statecheck.ExpectKnownValue("data.scheduler_placement_explanation.web", at("nearest_miss").AtMapKey("count"), knownvalue.Int64Exact(1)),
				statecheck.ExpectKnownValue("data.scheduler_placement_explanation.web", at("margin").AtMapKey("to"), text("berlin")),
				statecheck.ExpectKnownValue("data.scheduler_server.it", at("store").AtMapKey("mode"), text("embedded")),
				statecheck.ExpectKnownValue("data.scheduler_server.it", at("leader"), knownvalue.Bool(true)),
			},
		}},
	})
}

func webMetadata() api.Metadata { return api.Metadata{Name: webKey.Name, Namespace: webKey.Namespace} }

func names(list ...string) knownvalue.Check {
	checks := make([]knownvalue.Check, len(list))
	for i, name := range list {
		checks[i] = knownvalue.StringExact(name)
	}
	return knownvalue.ListExact(checks)
}

func TestAccSimulation(t *testing.T) {
	f := ratedFleet(t)
	f.put(&api.Placement{Metadata: webMetadata(), Spec: api.PlacementSpec{
		NumberOfClusters: new(int64(1)), LabelConstraints: []string{"location is DE"},
	}})
	simulation := "data.scheduler_simulation.s"
	result := tfjsonpath.New("result")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{ // without munich the placement goes to berlin
				Config: f.config(`
					data "scheduler_simulation" "s" {
					  delete = [{ kind = "cluster", name = "munich" }]
					}`),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(simulation, result.AtMapKey("changes").AtSliceIndex(0).AtMapKey("name"), knownvalue.StringExact("web")),
					statecheck.ExpectKnownValue(simulation, result.AtMapKey("changes").AtSliceIndex(0).AtMapKey("from"), names("munich")),
					statecheck.ExpectKnownValue(simulation, result.AtMapKey("changes").AtSliceIndex(0).AtMapKey("to"), names("berlin")),
				},
			},
			{
				Config:      f.config(`data "scheduler_simulation" "s" { now = "yesterday" }`),
				ExpectError: regexp.MustCompile(`(?s)now.*RFC\s*3339`),
			},
			{
				Config:      f.config(`data "scheduler_simulation" "s" { objects = [jsonencode({ kind = "cluster", metadata = { name = "No" }, spec = {} })] }`),
				ExpectError: regexp.MustCompile(`(?s)objects\[0\].*lowercase`),
			},
			{ // its own fleet
				Config: f.config(`
					data "scheduler_simulation" "s" {
					  base = "empty"
					  now  = "2026-01-31T12:00:00Z"
					  objects = [
					    jsonencode({ kind = "cluster", metadata = { name = "oslo" }, spec = {} }),
					    jsonencode({ kind = "placement", metadata = { name = "api", namespace = "shop" }, spec = { number_of_clusters = 1 } }),
					  ]
					}`),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(simulation, result.AtMapKey("explanations").AtSliceIndex(0).AtMapKey("candidates").AtSliceIndex(0).AtMapKey("cluster"), knownvalue.StringExact("oslo")),
					statecheck.ExpectKnownValue(simulation, result.AtMapKey("objects"), knownvalue.ListPartial(map[int]knownvalue.Check{1: simulated("oslo")})),
				},
			},
		},
	})
}

// simulated checks the clusters in the status of a simulated placement.
func simulated(clusters ...string) knownvalue.Check {
	return knownvalue.StringFunc(func(text string) error {
		var placement api.Placement
		if err := json.Unmarshal([]byte(text), &placement); err != nil {
			return err
		}
		if fmt.Sprint(placement.Status.Clusters) != fmt.Sprint(clusters) {
			return fmt.Errorf("clusters are %v, expected %v", placement.Status.Clusters, clusters)
		}
		return nil
	})
}

func TestAccDataSourceErrors(t *testing.T) {
	f := newFleet(t)
	for _, test := range []struct{ name, config, want string }{
		{"absent cluster", `data "scheduler_cluster" "x" { name = "nowhere" }`, `(?s)Cannot read cluster nowhere.*does not\s+exist`},
		{"distributions of an absent cluster", `data "scheduler_cluster_distributions" "x" { cluster = "nowhere" }`, `(?s)Cannot read the distributions in a cluster.*nowhere.*does\s+not\s+exist`},
		{"absent metric", `data "scheduler_metric" "x" { name = "nothing" }`, `(?s)Cannot read metric nothing`},
		{"absent placement", `data "scheduler_placement_decisions" "x" { name = "web" }`, `(?s)Cannot read the decisions of placement web.*default/web`},
		{"absent explanation", `data "scheduler_placement_explanation" "x" { name = "web" }`, `(?s)Cannot read the explanation of placement web.*default/web`},
		{"constraint", `data "scheduler_clusters" "x" { label_constraints = ["location is"] }`, `(?s)Invalid label_constraints\[0\]`},
		{"no name", `data "scheduler_cluster" "x" { name = "" }`, `name:\s+is\s+required`},
		{"another path", `data "scheduler_cluster" "x" { name = "../metrics" }`, `(?s)Invalid name.*"../metrics"\s+must\s+consist`},
		{"namespace", `data "scheduler_placement_explanation" "x" {
			name      = "web"
			namespace = "My Shop"
		}`, `(?s)Invalid namespace`},
		{"no JSON", `data "scheduler_simulation" "x" { objects = ["{"] }`, `(?s)Invalid objects\[0\].*is\s+not\s+JSON`},
		{"object", `data "scheduler_simulation" "x" { objects = [jsonencode({ kind = "placement", metadata = { name = "x" }, spec = { number_of_clusters = -1 } })] }`,
			`(?s)Invalid objects\[0\].*objects\[0\].spec.number_of_clusters:\s+-1`},
		{"selector", `data "scheduler_clusters" "x" { label_selector = "=(" }`, `(?s)Invalid label_selector`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // they are read-only
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: factories,
				Steps:                    []resource.TestStep{{Config: f.config(test.config), ExpectError: regexp.MustCompile(test.want)}},
			})
		})
	}
}
