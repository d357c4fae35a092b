package provider_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
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

// placement returns a placement "web" with the given attributes.
func placement(attributes ...string) string {
	return fmt.Sprintf("resource \"scheduler_placement\" \"web\" {\n name = \"web\"\n namespace = \"shop\"\n%s\n}", strings.Join(attributes, "\n"))
}

func TestAccPlacementByPrioritizers(t *testing.T) {
	f := newFleet(t)
	for name, grade := range map[string]int64{"berlin": 10, "madrid": 90, "paris": 50} {
		f.cluster(name, "location", name[:2])
		f.score(name, "support", map[string]int64{"grade": grade})
	}
	full := placement(`
		number_of_clusters = 2
		strategy           = "prioritizers"
		predicates = [
		  { label_selector = { match_labels = { location = "be" } } },
		  { label_selector = { match_expressions = [{ key = "location", operator = "In", values = ["ma", "pa"] }] }, claim_selector = {} },
		  {},
		]
		tolerations = [
		  { operator = "Exists", toleration_seconds = 0 },
		  { key = "dedicated", value = "web", effect = "NoExecute" },
		]
		spread_constraints = [{ topology_key = "location" }, { topology_key = "region", type = "Field", max_skew = 2, when_unsatisfiable = "ScheduleAnyway" }]
		prioritizer_policy = {
		  mode = "exact"
		  configurations = [
		    { type = "addon", resource_name = "support", score_name = "grade" },
		    { name = "steady", weight = 0 },
		  ]
		}
		decision_strategy = {
		  clusters_per_decision_group = 1
		  decision_groups             = [{ name = "canary", label_selector = { match_labels = { location = "pa" } } }]
		}`)
	web := "scheduler_placement.web"
	at := tfjsonpath.New[string]
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy:             func(*terraform.State) error { return f.gone(webKey) },
		Steps: []resource.TestStep{
			{Config: f.config(placement(`number_of_clusters = 1`))},
			{ // another strategy: its defaults are known in the plan
				Config: f.config(placement("number_of_clusters = 1", `strategy = "prioritizers"`)),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectKnownValue(web, at("reschedule_after"), knownvalue.StringExact("0s")),
					plancheck.ExpectKnownValue(web, at("metrics"), knownvalue.Null()),
					plancheck.ExpectKnownValue(web, at("prioritizer_policy").AtMapKey("mode"), knownvalue.StringExact("additive")),
					plancheck.ExpectUnknownValue(web, at("clusters")),
				}, PostApplyPostRefresh: emptyPlan()},
			},
			{
				Config:            f.config(full),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
				ConfigStateChecks: []statecheck.StateCheck{clusters("madrid", "paris")},
			},
			{
				ResourceName: web, ImportState: true, ImportStateId: "shop/web",
				ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
			},
			{ // the parts of the decision
				Config: f.config(full, `
					data "scheduler_placement_decisions" "web" {
					  name      = "web"
					  namespace = "shop"
					}`),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue("data.scheduler_placement_decisions.web", at("decisions").AtSliceIndex(0).AtMapKey("score"), knownvalue.Float64Exact(90)),
					statecheck.ExpectKnownValue("data.scheduler_placement_decisions.web", at("decisions").AtSliceIndex(1).AtMapKey("rank"), knownvalue.Int64Exact(2)),
					statecheck.ExpectKnownValue("data.scheduler_placement_decisions.web", at("decisions").AtSliceIndex(1).AtMapKey("group"), knownvalue.StringExact("canary")),
					statecheck.ExpectKnownValue("data.scheduler_placement_decisions.web", at("decision_groups").AtSliceIndex(0).AtMapKey("clusters"), names("paris")),
					statecheck.ExpectKnownValue("data.scheduler_placement_decisions.web", at("decision_groups").AtSliceIndex(1).AtMapKey("clusters"), names("madrid")),
				},
			},
			{ // an agent's score moves the decision, which leaves nothing to apply
				PreConfig:         func() { f.score("berlin", "support", map[string]int64{"grade": 100}) },
				Config:            f.config(full),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PreApply: emptyPlan()},
				ConfigStateChecks: []statecheck.StateCheck{clusters("berlin", "madrid")},
			},
			{ // drift of a default that depends on the strategy
				PreConfig:        func() { edit(f, webKey, func(p *api.Placement) { p.Spec.RescheduleAfter = "1h" }) },
				Config:           f.config(full),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectKnownValue(web, at("reschedule_after"), knownvalue.StringExact("0s"))}, PostApplyPostRefresh: emptyPlan()},
			},
			{ // and back
				Config: f.config(placement(`number_of_clusters = 2`)),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectKnownValue(web, at("reschedule_after"), knownvalue.StringExact("60s")),
					plancheck.ExpectKnownValue(web, at("metrics").AtMapKey("stickiness"), knownvalue.Float64Exact(0.1)),
					plancheck.ExpectKnownValue(web, at("prioritizer_policy"), knownvalue.Null()),
				}, PostApplyPostRefresh: emptyPlan()},
			},
		},
	})
}

// recorder forwards requests to the server, and records the bodies of writes.
type recorder struct {
	endpoint string
	bodies   [][]byte
	// refuse selects requests that are answered with 404 instead; nil = none.
	refuse func(*http.Request) bool
}

func (f *fleet) recorder() *recorder {
	f.t.Helper()
	target, err := url.Parse(f.endpoint)
	if err != nil {
		f.t.Fatal(err)
	}
	r := &recorder{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.refuse != nil && r.refuse(req) {
			http.NotFound(w, req)
			return
		}
		if req.Method == http.MethodPut {
			body, err := io.ReadAll(req.Body)
			if err != nil {
				f.t.Error(err)
			}
			r.bodies = append(r.bodies, body)
			req.Body = io.NopCloser(bytes.NewReader(body))
		}
		proxy.ServeHTTP(w, req)
	}))
	f.t.Cleanup(server.Close)
	r.endpoint = server.URL
	return r
}

// An explicit weight of 0 survives from the configuration through the plan and the API into the state, and every read.
func TestAccWeightZeroSurvives(t *testing.T) {
	f := newFleet(t)
	wire := f.recorder()
	web, weight := "scheduler_placement.web", tfjsonpath.New("prioritizer_policy").AtMapKey("configurations").AtSliceIndex(0).AtMapKey("weight")
	config := fmt.Sprintf("provider \"scheduler\" {\n endpoint = %q\n}\n", wire.endpoint) +
		placement(`strategy = "prioritizers"`, `wait = { on_timeout = "warning" }`, `prioritizer_policy = { configurations = [{ name = "balance", weight = 0 }] }`)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{
				Config: config,
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectKnownValue(web, weight, knownvalue.Int64Exact(0))},
					PostApplyPostRefresh: emptyPlan(),
				},
				ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(web, weight, knownvalue.Int64Exact(0))},
				Check: func(*terraform.State) error {
					var sent struct {
						Spec struct {
							Policy struct {
								Configurations []map[string]any `json:"configurations"`
							} `json:"prioritizer_policy"`
						} `json:"spec"`
					}
					if len(wire.bodies) != 1 {
						return fmt.Errorf("%d writes", len(wire.bodies))
					}
					if err := json.Unmarshal(wire.bodies[0], &sent); err != nil {
						return err
					}
					if c := sent.Spec.Policy.Configurations; len(c) != 1 || c[0]["weight"] != 0.0 {
						return fmt.Errorf("sent was %s", wire.bodies[0])
					}
					return nil
				},
			},
			{ResourceName: web, ImportState: true, ImportStateId: "shop/web", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name", ImportStateVerifyIgnore: []string{"wait"}},
		},
	})
}
