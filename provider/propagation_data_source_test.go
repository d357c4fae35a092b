package provider_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// boundFleet has a workload of three replicas that has just moved from member1 to member2, and one that waits for
// capacity. The policy is in the namespace shop.
func boundFleet(t *testing.T) *fleet {
	f := newPropagationFleet(t)
	deployment := func(name string, replicas int64, priority int64) {
		f.put(&api.Workload{
			Metadata: api.Metadata{Name: name, Namespace: "shop", Labels: map[string]string{"team": "a"}},
			Spec: api.WorkloadSpec{
				APIVersion: "apps/v1", Kind: "Deployment", Replicas: &replicas, Priority: priority,
				ReplicaRequests: api.Quantities{"cpu": "1"},
			},
		})
	}
	deployment("web", 3, 2)
	f.untilBound(webWorkload, counts{"member1": 3}, nil)
	f.taint("member1", api.EffectNoExecute)
	f.untilBound(webWorkload, counts{"member2": 3}, counts{"member1": 3})
	deployment("api", 9, 0)
	return f
}

func TestAccPropagationDataSources(t *testing.T) {
	f := boundFleet(t)
	f.healthy(api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"}, "member1")
	at, text := tfjsonpath.New[string], knownvalue.StringExact
	web, waiting := "data.scheduler_workload.web", "data.scheduler_workload.api"
	bindings := "data.scheduler_propagation_bindings.deployments"
	of := func(workload, attribute string) tfjsonpath.Path {
		return at("bindings").AtMapKey(workload).AtMapKey(attribute)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{{
			Config: f.config(`
				data "scheduler_workload" "web" {
				  name      = "web"
				  namespace = "shop"
				  explain   = true
				}
				data "scheduler_workload" "api" {
				  name      = "api"
				  namespace = "shop"
				}
				data "scheduler_propagation_bindings" "deployments" {
				  name      = "deployments"
				  namespace = "shop"
				}`),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(web, at("clusters"), counts{"member2": 3}.check()),
				statecheck.ExpectKnownValue(web, at("evicting"), counts{"member1": 3}.check()),
				statecheck.ExpectKnownValue(web, at("binding").AtSliceIndex(0).AtMapKey("since"), knownvalue.NotNull()),
				statecheck.ExpectKnownValue(web, at("evictions").AtSliceIndex(0).AtMapKey("reason"), text(api.EvictedClusterLost)),
				statecheck.ExpectKnownValue(web, at("evictions").AtSliceIndex(0).AtMapKey("until"), knownvalue.NotNull()),
				statecheck.ExpectKnownValue(web, at("policy"), text("shop/deployments")),
				statecheck.ExpectKnownValue(web, at("health").AtSliceIndex(0).AtMapKey("status"), text("healthy")),
				statecheck.ExpectKnownValue(web, at("labels").AtMapKey("team"), text("a")),
				statecheck.ExpectKnownValue(web, at("replicas"), knownvalue.Int64Exact(3)),
				statecheck.ExpectKnownValue(web, at("priority"), knownvalue.Int64Exact(2)),
				statecheck.ExpectKnownValue(web, at("conditions").AtSliceIndex(0).AtMapKey("status"), text("True")),
				statecheck.ExpectKnownValue(web, at("summary"), knownvalue.StringRegexp(regexp.MustCompile("member2"))),
				statecheck.ExpectKnownValue(web, at("explanation").AtMapKey("policy"), text("shop/deployments")),
				statecheck.ExpectKnownValue(web, at("explanation").AtMapKey("candidates"), knownvalue.ListSizeExact(2)),
				statecheck.ExpectKnownValue(web, at("explanation").AtMapKey("candidates"), knownvalue.ListPartial(map[int]knownvalue.Check{
					0: knownvalue.ObjectPartial(map[string]knownvalue.Check{"replicas": knownvalue.Int64Exact(3), "cluster": text("member2")}),
				})),
				statecheck.ExpectKnownValue(waiting, at("clusters"), counts(nil).check()),
				statecheck.ExpectKnownValue(waiting, at("explanation"), knownvalue.Null()),
				statecheck.ExpectKnownValue(waiting, at("summary"), knownvalue.StringRegexp(regexp.MustCompile(`.`))),
				statecheck.ExpectKnownValue(bindings, at("bindings"), knownvalue.MapSizeExact(2)),
				statecheck.ExpectKnownValue(bindings, of("shop/web", "clusters"), counts{"member2": 3}.check()),
				statecheck.ExpectKnownValue(bindings, of("shop/web", "scheduled"), knownvalue.Bool(true)),
				statecheck.ExpectKnownValue(bindings, of("shop/api", "clusters"), counts(nil).check()),
				statecheck.ExpectKnownValue(bindings, of("shop/api", "scheduled"), knownvalue.Bool(false)),
				statecheck.ExpectKnownValue(bindings, of("shop/api", "message"), knownvalue.StringRegexp(regexp.MustCompile(`9`))),
			},
		}},
	})
}

// A preview says what a workload would get, or what a policy would move, and changes nothing.
func TestAccPropagationPreviewDataSource(t *testing.T) {
	f := newPropagationFleet(t)
	f.put(&api.Workload{Metadata: webMetadata(), Spec: api.WorkloadSpec{
		APIVersion: "apps/v1", Kind: "Deployment", Replicas: new(int64(3)), ReplicaRequests: api.Quantities{"cpu": "1"},
	}})
	f.untilBound(webWorkload, counts{"member1": 3}, nil)
	preview := func(arguments string) string {
		return f.config("data \"scheduler_propagation_preview\" \"p\" {\n" + arguments + "\n}")
	}
	web := func(replicas int) string {
		return preview(fmt.Sprintf(`workload = { name = "web", namespace = "shop", api_version = "apps/v1", kind = "Deployment", replicas = %d, replica_requests = { cpu = "1" } }`, replicas))
	}
	deployments := func(more string) string {
		return preview(`policy = { name = "deployments", namespace = "shop", resource_selectors = [{ api_version = "apps/v1", kind = "Deployment" }], ` + more + ` }`)
	}
	of := func(attribute string, want knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("data.scheduler_propagation_preview.p", tfjsonpath.New(attribute), want)
	}
	none := knownvalue.MapSizeExact(0)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: preview(""), ExpectError: regexp.MustCompile(`(?s)Missing Attribute Configuration.*workload.*policy`)},
			{
				Config:      preview("workload = { name = \"w\", api_version = \"v1\", kind = \"Pod\" }\n policy = { name = \"p\", resource_selectors = [] }"),
				ExpectError: regexp.MustCompile(`(?s)Invalid Attribute Combination`),
			},
			{Config: web(-1), ExpectError: regexp.MustCompile(`(?s)Invalid workload.replicas.*workload.replicas:\s+-1`)},
			{Config: deployments(`labels = { "a b" = "c" }`), ExpectError: regexp.MustCompile(`(?s)Invalid policy.labels\["a b"\]`)},
			{Config: deployments(`placement = { spread_constraints = [{ spread_by_field = "zone" }] }`), ExpectError: regexp.MustCompile(`(?s)Invalid policy.placement.spread_constraints`)},
			{Config: deployments(`priority = 1.5`), ExpectError: regexp.MustCompile(`(?s)Invalid policy.priority`)},

			{
				Config: web(6),
				ConfigStateChecks: []statecheck.StateCheck{
					of("clusters", counts{"member1": 4, "member2": 2}.check()), of("current", counts{"member1": 3}.check()), of("evicting", none),
					of("policy_name", knownvalue.StringExact("shop/deployments")), of("satisfied", knownvalue.Bool(true)),
					of("summary", knownvalue.StringRegexp(regexp.MustCompile("member2"))), of("token", knownvalue.NotNull()), of("bindings", none),
				},
			},
			{
				Config:            web(60),
				ConfigStateChecks: []statecheck.StateCheck{of("clusters", counts{"member1": 3}.check()), of("satisfied", knownvalue.Bool(false))},
			},
			{
				Config: deployments(`placement = { cluster_affinity = { cluster_names = ["member2"] }, replica_scheduling = {} }`),
				ConfigStateChecks: []statecheck.StateCheck{
					of("clusters", none), of("policy_name", knownvalue.Null()), of("token", knownvalue.NotNull()),
					of("bindings", knownvalue.MapExact(map[string]knownvalue.Check{"shop/web": counts{"member2": 3}.check()})),
					of("workloads", knownvalue.ListExact([]knownvalue.Check{knownvalue.ObjectPartial(map[string]knownvalue.Check{
						"workload": knownvalue.StringExact("shop/web"), "claimed": knownvalue.Bool(true),
						"current_replicas": counts{"member1": 3}.check(), "replicas": counts{"member2": 3}.check(),
					})})),
				},
			},
			{ // a global one does not take workloads from it
				Config:            preview(`policy = { name = "all", resource_selectors = [{ api_version = "apps/v1", kind = "Deployment", namespace = "shop" }] }`),
				ConfigStateChecks: []statecheck.StateCheck{of("bindings", none)},
			},
		},
	})
}

// Errors that only the server detects are reported at the argument, too.
func TestAccPropagationDataSourceErrors(t *testing.T) {
	f := newFleet(t)
	for _, test := range []struct{ name, config, want string }{
		{"absent workload", `data "scheduler_workload" "x" { name = "web" }`, `(?s)Cannot read workload web.*default/web`},
		{"absent policy", `data "scheduler_propagation_bindings" "x" { name = "web" }`, `(?s)Cannot read the bindings of propagation policy web`},
		{"name", `data "scheduler_propagation_bindings" "x" { name = "Web" }`, `(?s)Invalid name`},
		{"namespace", "data \"scheduler_workload\" \"x\" {\n name = \"web\"\n namespace = \"My Shop\"\n}", `(?s)Invalid namespace`},
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

// What moves if a cluster is lost, and if there are more replicas.
func TestAccSimulationOfWorkloads(t *testing.T) {
	f := newPropagationFleet(t)
	spec := api.WorkloadSpec{APIVersion: "apps/v1", Kind: "Deployment", Replicas: new(int64(3)), ReplicaRequests: api.Quantities{"cpu": "1"}}
	f.put(&api.Workload{Metadata: webMetadata(), Spec: spec})
	f.untilBound(webWorkload, counts{"member1": 3}, nil)
	change := func(to counts) []statecheck.StateCheck {
		return []statecheck.StateCheck{statecheck.ExpectKnownValue("data.scheduler_simulation.s", tfjsonpath.New("result").AtMapKey("changes"),
			knownvalue.ListExact([]knownvalue.Check{knownvalue.ObjectPartial(map[string]knownvalue.Check{
				"kind": knownvalue.StringExact("workload"), "from_replicas": counts{"member1": 3}.check(), "to_replicas": to.check(),
			})}),
		)}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{
				Config: f.config(`
					data "scheduler_simulation" "s" {
					  delete = [{ kind = "cluster", name = "member1" }]
					}`),
				ConfigStateChecks: change(counts{"member2": 3}),
			},
			{
				Config: f.config(`
					data "scheduler_simulation" "s" {
					  objects = [jsonencode({
					    kind     = "workload"
					    metadata = { name = "web", namespace = "shop" }
					    spec     = { api_version = "apps/v1", kind = "Deployment", replicas = 6, replica_requests = { cpu = "1" } }
					  })]
					}`),
				ConfigStateChecks: change(counts{"member1": 4, "member2": 2}),
			},
		},
	})
}

// The numbers in the guide are those of the server.
func TestAccNumbersOfTheGuide(t *testing.T) {
	f := newFleet(t)
	for cluster, cpu := range map[string]string{"east": "30", "north": "15", "west": "15"} {
		f.member(cluster, cpu)
	}
	east := api.ClusterAffinity{ClusterNames: []string{"east"}}
	weights := &api.WeightPreference{StaticWeights: []api.StaticWeight{
		{Affinity: east, Weight: 3},
		{Affinity: api.ClusterAffinity{ClusterNames: []string{"north"}}, Weight: 2},
		{Affinity: api.ClusterAffinity{ClusterNames: []string{"west"}}, Weight: 1},
	}}
	for _, test := range []struct {
		name       string
		replicas   int64
		scheduling *api.ReplicaScheduling
		want       counts
	}{
		{"none", 12, nil, counts{"east": 12, "north": 12, "west": 12}},
		{"equal weights", 12, &api.ReplicaScheduling{}, counts{"east": 4, "north": 4, "west": 4}},
		{"static weights", 12, &api.ReplicaScheduling{WeightPreference: weights}, counts{"east": 6, "north": 4, "west": 2}},
		{"by room", 12, &api.ReplicaScheduling{WeightPreference: &api.WeightPreference{DynamicWeight: api.DynamicWeightAvailable}}, counts{"east": 6, "north": 3, "west": 3}},
		{"aggregated", 12, &api.ReplicaScheduling{DivisionPreference: api.Aggregated}, counts{"east": 12}},
		{"aggregated on two", 36, &api.ReplicaScheduling{DivisionPreference: api.Aggregated}, counts{"east": 24, "north": 12}},
		{"a limit", 12, &api.ReplicaScheduling{WeightPreference: weights, ClusterLimits: []api.ClusterLimit{{Affinity: east, MaxReplicas: new(int64(5))}}}, counts{"east": 5, "north": 5, "west": 2}},
		{"two more by static weights", 14, &api.ReplicaScheduling{WeightPreference: weights}, counts{"east": 7, "north": 5, "west": 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			objects := []api.Object{
				&api.PropagationPolicy{Metadata: webMetadata(), Spec: api.PropagationPolicySpec{
					ResourceSelectors: []api.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
					Placement:         api.PropagationPlacement{ReplicaScheduling: test.scheduling},
				}},
				&api.Workload{Metadata: webMetadata(), Spec: api.WorkloadSpec{
					APIVersion: "apps/v1", Kind: "Deployment", Replicas: &test.replicas, ReplicaRequests: api.Quantities{"cpu": "1"},
				}},
			}
			var simulation api.Simulation
			for _, object := range objects {
				object.SetDefaults()
				data, err := json.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				simulation.Objects = append(simulation.Objects, data)
			}
			result, err := f.client.Simulate(t.Context(), simulation)
			if err != nil {
				t.Fatal(err)
			}
			if len(result.Changes) != 1 || !maps.Equal(result.Changes[0].ToReplicas, test.want) {
				t.Errorf("the changes are %+v, expected %v", result.Changes, test.want)
			}
		})
	}
}
