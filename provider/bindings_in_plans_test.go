package provider_test

import (
	"fmt"
	"net/http"
	"regexp"
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

// stage is the part of a fleet that one test uses: three clusters a, b and c, with capacity for four replicas each, and
// a policy that places workloads on as few of them as possible.
type stage struct {
	*fleet
	name string
}

func (f *fleet) stage(name string) *stage {
	s := &stage{f, name}
	for _, cluster := range []string{"a", "b", "c"} {
		f.member(s.cluster(cluster), "4", "stage", name)
	}
	f.put(&api.PropagationPolicy{
		Metadata: api.Metadata{Name: "deployments", Namespace: name},
		Spec: api.PropagationPolicySpec{
			ResourceSelectors: []api.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
			Placement: api.PropagationPlacement{
				ClusterAffinity:   &api.ClusterAffinity{LabelSelector: &api.LabelSelector{MatchLabels: map[string]string{"stage": name}}},
				ReplicaScheduling: &api.ReplicaScheduling{DivisionPreference: api.Aggregated},
			},
		},
	})
	return s
}

func (s *stage) cluster(name string) string { return name + "-" + s.name }

// on returns replicas by the stage's clusters.
func (s *stage) on(replicas counts) counts {
	full := make(counts, len(replicas))
	for name, n := range replicas {
		full[s.cluster(name)] = n
	}
	return full
}

// lose makes the workload move: the first cluster gets a taint that evicts it.
func (s *stage) lose() { s.taint(s.cluster("a"), api.EffectNoSelect) }

func (s *stage) key() api.Key {
	return api.Key{Kind: api.KindWorkload, Namespace: s.name, Name: "web"}
}

// wish is what a configuration requests.
type wish struct {
	replicas string
	labels   string
	wait     string
	preview  bool // and its token in the workload
	forEach  bool // a release for each cluster that it runs on
	more     string
}

func (s *stage) config(w wish) string {
	if w.labels == "" {
		w.labels = "null"
	}
	var b strings.Builder
	fmt.Fprintf(&b, `
		locals {
		  web = {
		    name             = "web"
		    namespace        = %q
		    labels           = %s
		    api_version      = "apps/v1"
		    kind             = "Deployment"
		    replicas         = %s
		    replica_requests = { cpu = "1" }
		  }
		}
		`, s.name, w.labels, w.replicas)
	token := ""
	if w.preview {
		b.WriteString("data \"scheduler_propagation_preview\" \"web\" { workload = local.web }\n")
		token = "preview_token_wo = data.scheduler_propagation_preview.web.token"
	}
	fmt.Fprintf(&b, `
		resource "scheduler_workload" "web" {
		  name             = local.web.name
		  namespace        = local.web.namespace
		  labels           = local.web.labels
		  api_version      = local.web.api_version
		  kind             = local.web.kind
		  replicas         = local.web.replicas
		  replica_requests = local.web.replica_requests
		  %s
		  %s
		}
		`, w.wait, token)
	if w.forEach {
		b.WriteString(`
		resource "terraform_data" "release" {
		  for_each = merge(scheduler_workload.web.evicting, scheduler_workload.web.clusters)
		  input    = each.value
		}
		`)
	}
	return s.fleet.config(b.String(), w.more)
}

// What a plan shows of a binding, and the result of its apply, with a preview and without. The workload moves before
// the plan, or between a saved plan and its apply, while nothing, a wait, a label or the request changes.
func TestAccBindingsInPlans(t *testing.T) {
	f := newFleet(t)
	two, six := wish{replicas: "2"}, wish{replicas: "6"}
	with := func(w wish, change ...func(*wish)) wish {
		for _, c := range change {
			c(&w)
		}
		return w
	}
	preview := func(w *wish) { w.preview = true }
	labelled := func(w *wish) { w.labels = `{ team = "a" }` }
	waiting := func(w *wish) { w.wait = `wait = { on_timeout = "error" }` }
	forEach := func(w *wish) { w.forEach = true }
	invalidForEach := regexp.MustCompile(`Invalid for_each argument`)
	planAgain := regexp.MustCompile(`(?s)The fleet changed since the preview: plan\s+again.*Nothing\s+was\s+changed`)
	a, b, moved := counts{"a": 2}, counts{"b": 2}, counts{"a": 3, "b": 3}

	for _, test := range []struct {
		name          string
		before, after wish   // before is applied first; replicas "" = the workload is created
		moves         string // when: "" = not, "before the plan", "before the apply"
		planned       counts
		unknown       bool           // the binding is unknown in the plan
		err           *regexp.Regexp // error of the apply or the plan
		applied       counts         // in the state after the apply
		leaving       counts
		next          counts // in the state after the next refresh; nil = as applied
	}{
		{name: "moves, same configuration", before: two, after: two, moves: "before the plan", planned: b, applied: b, leaving: a},
		{name: "moves, same configuration, preview", before: with(two, preview), after: with(two, preview), moves: "before the plan", planned: b, applied: b, leaving: a},

		{name: "a wait", before: two, after: with(two, waiting), moves: "before the apply", planned: a, applied: a, next: b},
		{name: "a wait, preview", before: with(two, preview), after: with(two, preview, waiting), moves: "before the apply", planned: a, applied: a, next: b},

		{name: "a label", before: two, after: with(two, labelled), moves: "before the apply", unknown: true, applied: b, leaving: a},
		{name: "a label, preview", before: with(two, preview), after: with(two, preview, labelled), planned: a, applied: a},
		{name: "a label, moves, preview", before: with(two, preview), after: with(two, preview, labelled), moves: "before the apply", planned: a, err: planAgain, next: b},

		{name: "more replicas", before: two, after: six, unknown: true, applied: moved},
		{name: "more replicas, moves", before: two, after: six, moves: "before the apply", unknown: true, applied: counts{"b": 3, "c": 3}, leaving: a},
		{name: "more replicas, preview", before: with(two, preview), after: with(six, preview), planned: moved, applied: moved},
		{name: "more replicas, moves, preview", before: with(two, preview), after: with(six, preview), moves: "before the apply", planned: moved, err: planAgain, next: counts{"b": 3, "c": 3}},

		{name: "for_each, moves, same configuration", before: with(two, forEach), after: with(two, forEach), moves: "before the plan", planned: b, applied: b, leaving: a},
		{name: "for_each, moves, same configuration, preview", before: with(two, forEach, preview), after: with(two, forEach, preview), moves: "before the plan", planned: b, applied: b, leaving: a},
		{name: "for_each, a wait", before: with(two, forEach), after: with(two, forEach, waiting), planned: a, applied: a},
		{name: "for_each, a label", before: with(two, forEach), after: with(two, forEach, labelled), err: invalidForEach},
		{name: "for_each, a label, preview", before: with(two, forEach, preview), after: with(two, forEach, preview, labelled), planned: a, applied: a},
		{name: "for_each, more replicas", before: with(two, forEach), after: with(six, forEach), err: invalidForEach},
		{name: "for_each, more replicas, preview", before: with(two, forEach, preview), after: with(six, forEach, preview), planned: moved, applied: moved},

		{name: "create", after: two, unknown: true, applied: a},
		{name: "create, preview", after: with(two, preview), planned: a, applied: a},
		{name: "create, for_each", after: with(two, forEach), err: invalidForEach},
		{name: "create, for_each, preview", after: with(six, forEach, preview), planned: moved, applied: moved},
		{name: "create, moves, preview", after: with(two, preview), moves: "before the apply", planned: a, err: planAgain, next: b},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // each has its own clusters and namespace
			s := f.stage(strings.NewReplacer(",", "", " ", "-", "_", "-").Replace(test.name))
			bound := func(clusters, leaving counts) []statecheck.StateCheck {
				return binding(workloadAddress, s.on(clusters), s.on(leaving))
			}
			var steps []resource.TestStep
			if test.before.forEach && !test.before.preview { // it cannot be created this way
				steps = append(steps, resource.TestStep{Config: s.config(two)})
			}
			if test.before.replicas != "" {
				steps = append(steps, resource.TestStep{Config: s.config(test.before), ConfigStateChecks: bound(a, nil)})
			}
			step := resource.TestStep{Config: s.config(test.after), ExpectError: test.err}
			var checks []plancheck.PlanCheck
			switch {
			case test.unknown:
				checks = append(checks, plancheck.ExpectUnknownValue(workloadAddress, tfjsonpath.New("clusters")),
					plancheck.ExpectUnknownValue(workloadAddress, tfjsonpath.New("evicting")))
			case test.planned != nil:
				checks = append(checks, plancheck.ExpectKnownValue(workloadAddress, tfjsonpath.New("clusters"), s.on(test.planned).check()),
					plancheck.ExpectKnownValue(workloadAddress, tfjsonpath.New("evicting"), s.on(test.leaving).check()))
			}
			switch test.moves {
			case "before the plan":
				step.PreConfig = s.lose
				checks = append(checks, plancheck.ExpectResourceAction(workloadAddress, plancheck.ResourceActionNoop))
			case "before the apply":
				checks = append(checks, meanwhile(s.lose))
			}
			step.ConfigPlanChecks = resource.ConfigPlanChecks{PreApply: checks}
			if test.err == nil {
				step.ConfigPlanChecks.PostApplyPostRefresh = emptyPlan()
				if test.next == nil {
					step.ConfigStateChecks = bound(test.applied, test.leaving)
				}
				if test.after.forEach {
					running := s.on(test.leaving)
					for cluster, n := range s.on(test.applied) {
						running[cluster] = n
					}
					for cluster, n := range running {
						step.ConfigStateChecks = append(step.ConfigStateChecks, statecheck.ExpectKnownValue(
							fmt.Sprintf("terraform_data.release[%q]", cluster), tfjsonpath.New("output"), knownvalue.Int64Exact(n)))
					}
				}
			}
			steps = append(steps, step)
			if test.next != nil {
				steps = append(steps, resource.TestStep{
					Config:            s.config(test.after),
					ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(workloadAddress, tfjsonpath.New("clusters"), s.on(test.next).check())},
					ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
				})
			}
			if test.after.forEach && (test.err == nil || test.before.replicas != "") { // the library cannot clean up after for_each
				steps = append(steps, resource.TestStep{Config: s.config(with(test.after, func(w *wish) { w.forEach = false })), Destroy: true})
			}
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: factories, Steps: steps,
				CheckDestroy: func(*terraform.State) error { return s.gone(s.key()) },
			})
		})
	}
}

// If the previewed values are known only after apply, the preview is made during the apply: the binding is unknown in
// the plan, and the next plan is empty.
func TestAccPropagationPreviewOfUnknown(t *testing.T) {
	f := newFleet(t)
	s := f.stage("later")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{{
			Config: s.config(wish{replicas: "terraform_data.number.output", preview: true, more: `resource "terraform_data" "number" { input = 2 }`}),
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply:             []plancheck.PlanCheck{plancheck.ExpectUnknownValue(workloadAddress, tfjsonpath.New("clusters"))},
				PostApplyPostRefresh: emptyPlan(),
			},
			ConfigStateChecks: binding(workloadAddress, s.on(counts{"a": 2}), nil),
		}},
	})
}

// The saved plan is older than the server keeps previews.
func TestAccPropagationPreviewGoneBeforeApply(t *testing.T) {
	f := newFleet(t)
	s := f.stage("late")
	wire := f.recorder()
	config := strings.Replace(s.config(wish{replicas: "1", preview: true}), f.endpoint, wire.endpoint, 1)
	gone := func() {
		wire.refuse = func(r *http.Request) bool {
			return r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/previews/")
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy:             func(*terraform.State) error { return s.gone(s.key()) },
		Steps: []resource.TestStep{{
			Config:           config,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{meanwhile(gone)}},
			ExpectError:      regexp.MustCompile(`(?s)The preview is gone.*Plan\s+again`),
		}},
	})
}

// The error for a token of another object says what to do.
func TestAccPropagationPreviewOfSomethingElse(t *testing.T) {
	f := newFleet(t)
	previews := `
		data "scheduler_propagation_preview" "workload" {
		  workload = { name = "web", namespace = "shop", api_version = "v1", kind = "Pod" }
		}
		data "scheduler_propagation_preview" "other" {
		  workload = { name = "other", namespace = "shop", api_version = "v1", kind = "Pod" }
		}
		data "scheduler_placement_preview" "web" {
		  name      = "web"
		  namespace = "shop"
		}`
	for _, test := range []struct{ name, config, want string }{
		{"another name", workload(1, "preview_token_wo = data.scheduler_propagation_preview.other.token"), `(?s)preview\s+of\s+workload\s+"shop/other".*this\s+is\s+workload\s+"shop/web"`},
		{"a placement's", workload(1, "preview_token_wo = data.scheduler_placement_preview.web.token"), `(?s)preview\s+of\s+placement\s+"shop/web".*this\s+is\s+workload\s+"shop/web"`},
		{"a workload's for a policy", policy("preview_token_wo = data.scheduler_propagation_preview.workload.token"), `(?s)preview\s+of\s+workload\s+"shop/web".*this\s+is\s+propagation_policy\s+"shop/web"`},
		{"none", policy(`preview_token_wo = "nothing"`), `(?s)preview_token_wo.*Plan\s+again`},
		{"another spec", workload(1, "preview_token_wo = data.scheduler_propagation_preview.workload.token"), `(?s)The preview is of another workload.*api_version.*planning\s+again\s+does\s+not\s+help`},
		{"other labels", `resource "scheduler_workload" "web" {
		  name             = "web"
		  namespace        = "shop"
		  api_version      = "v1"
		  kind             = "Pod"
		  labels           = { tier = "web" }
		  preview_token_wo = data.scheduler_propagation_preview.workload.token
		}`, `(?s)The preview is of another workload.*labels`},
		{"another policy", `
		data "scheduler_propagation_preview" "policy" {
		  policy = { name = "web", namespace = "shop", priority = 1, resource_selectors = [{ api_version = "v1", kind = "Pod" }] }
		}
		resource "scheduler_propagation_policy" "web" {
		  name               = "web"
		  namespace          = "shop"
		  priority           = 1
		  resource_selectors = [{ api_version = "v1", kind = "Job" }]
		  preview_token_wo   = data.scheduler_propagation_preview.policy.token
		}`, `(?s)The preview is of another propagation_policy.*resource_selectors\[0\].kind`},
		{"another placement", `resource "scheduler_placement" "web" {
		  name               = "web"
		  namespace          = "shop"
		  number_of_clusters = 2
		  label_constraints  = ["tier is prod"]
		  preview_token_wo   = data.scheduler_placement_preview.web.token
		}`, `(?s)The preview is of another placement.*label_constraints,\s+number_of_clusters`},
	} {
		t.Run(test.name, func(t *testing.T) {
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: factories,
				Steps:                    []resource.TestStep{{Config: f.config(previews, test.config), PlanOnly: true, ExpectError: regexp.MustCompile(test.want)}},
			})
		})
	}
}

// A configuration creates clusters and previews on them in one apply: the preview
// waits for the clusters, and the decision is known after apply.
func TestAccPreviewOfClustersToBe(t *testing.T) {
	f := newFleet(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{{
			Config: f.config(`
				resource "scheduler_cluster" "a" {
				  name = "a"
				}
				resource "scheduler_cluster" "b" {
				  name = "b"
				}
				locals {
				  web = { name = "web", namespace = "shop", number_of_clusters = 2 }
				}
				data "scheduler_placement_preview" "web" {
				  name               = local.web.name
				  namespace          = local.web.namespace
				  number_of_clusters = local.web.number_of_clusters
				  depends_on         = [scheduler_cluster.a, scheduler_cluster.b]
				}
				resource "scheduler_placement" "web" {
				  name               = local.web.name
				  namespace          = local.web.namespace
				  number_of_clusters = local.web.number_of_clusters
				  preview_token_wo   = data.scheduler_placement_preview.web.token
				}`),
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply:             []plancheck.PlanCheck{plancheck.ExpectUnknownValue("scheduler_placement.web", tfjsonpath.New("clusters"))},
				PostApplyPostRefresh: emptyPlan(),
			},
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue("scheduler_placement.web", tfjsonpath.New("clusters"),
				knownvalue.SetExact([]knownvalue.Check{knownvalue.StringExact("a"), knownvalue.StringExact("b")}))},
		}},
	})
}

// The preview of a policy makes its bindings known in the plan. The apply commits them with the policy, or fails
// because the fleet has changed.
func TestAccPolicyPreviewInPlans(t *testing.T) {
	f := newFleet(t)
	f.member("member1", "4")
	f.member("member2", "4")
	f.put(&api.Workload{Metadata: webMetadata(), Spec: api.WorkloadSpec{
		APIVersion: "apps/v1", Kind: "Deployment", Replicas: new(int64(3)), ReplicaRequests: api.Quantities{"cpu": "1"},
	}})
	config := func(clusters string) string {
		return f.config(fmt.Sprintf(`
			locals {
			  policy = {
			    name               = "web"
			    namespace          = "shop"
			    resource_selectors = [{ api_version = "apps/v1", kind = "Deployment" }]
			    placement          = { cluster_affinity = { cluster_names = %s }, replica_scheduling = { division_preference = "Aggregated" } }
			  }
			}
			data "scheduler_propagation_preview" "web" { policy = local.policy }
			resource "scheduler_propagation_policy" "web" {
			  name               = local.policy.name
			  namespace          = local.policy.namespace
			  resource_selectors = local.policy.resource_selectors
			  placement          = local.policy.placement
			  preview_token_wo   = data.scheduler_propagation_preview.web.token
			}
			resource "terraform_data" "release" {
			  for_each = scheduler_propagation_policy.web.bindings["shop/web"]
			  input    = each.value
			}`, clusters))
	}
	bound := func(on counts) knownvalue.Check {
		return knownvalue.MapExact(map[string]knownvalue.Check{"shop/web": on.check()})
	}
	step := func(clusters string, on counts) resource.TestStep {
		return resource.TestStep{
			Config: config(clusters),
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply:             []plancheck.PlanCheck{plancheck.ExpectKnownValue(policyAddress, tfjsonpath.New("bindings"), bound(on))},
				PostApplyPostRefresh: emptyPlan(),
			},
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(policyAddress, tfjsonpath.New("bindings"), bound(on))},
		}
	}
	refused := step(`["member1", "member2"]`, counts{"member2": 3})
	refused.ConfigPlanChecks = resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{meanwhile(func() { f.taint("member2", api.EffectNoSelect) })}}
	refused.ConfigStateChecks, refused.ExpectError = nil, regexp.MustCompile(`(?s)The fleet changed since the preview: plan\s+again`)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy:             func(*terraform.State) error { return f.gone(webPolicy) },
		Steps: []resource.TestStep{
			step(`["member1"]`, counts{"member1": 3}),
			step(`["member2"]`, counts{"member2": 3}),
			refused,
			{Config: config(`["member1", "member2"]`), Destroy: true}, // the library cannot clean up after for_each
		},
	})
}
