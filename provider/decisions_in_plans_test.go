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

// scene is the part of a fleet that one test uses: three clusters a, b and c. Its placement chooses the first ones that
// fit.
type scene struct {
	*fleet
	name string
}

func (f *fleet) scene(name string) *scene {
	s := &scene{f, name}
	for _, cluster := range []string{"a", "b", "c"} {
		f.cluster(s.cluster(cluster), "scene", name)
	}
	return s
}

func (s *scene) cluster(name string) string { return name + "-" + s.name }

// names checks a list of the scene's clusters.
func (s *scene) names(clusters ...string) knownvalue.Check {
	full := make([]string, len(clusters))
	for i, name := range clusters {
		full[i] = s.cluster(name)
	}
	return names(full...)
}

// lose makes the decision move: the first cluster no longer fits.
func (s *scene) lose() { s.fleet.cluster(s.cluster("a"), "scene", "elsewhere") }

func (s *scene) key() api.Key {
	return api.Key{Kind: api.KindPlacement, Namespace: s.name, Name: "web"}
}

// request is what a configuration requests.
type request struct {
	number  string // number of clusters
	labels  string
	preview bool // and its token in the placement
	forEach bool // a release for each chosen cluster
	more    string
}

func (s *scene) config(r request) string {
	spec := fmt.Sprintf(`
		  name               = "web"
		  namespace          = %q
		  number_of_clusters = %s
		  label_constraints  = ["scene is %s"]
		  strategy           = "prioritizers"`, s.name, r.number, s.name)
	if r.labels != "" {
		spec += "\nlabels = " + r.labels
	}
	var b strings.Builder
	token := ""
	if r.preview {
		fmt.Fprintf(&b, "data \"scheduler_placement_preview\" \"web\" {%s\n}\n", spec)
		token = "preview_token_wo = data.scheduler_placement_preview.web.token"
	}
	fmt.Fprintf(&b, "resource \"scheduler_placement\" \"web\" {%s\n%s\n}\n", spec, token)
	if r.forEach {
		b.WriteString("resource \"terraform_data\" \"release\" {\n for_each = toset(scheduler_placement.web.clusters)\n input = each.key\n}\n")
	}
	return s.fleet.config(b.String(), r.more)
}

const webAddress = "scheduler_placement.web"

func plannedClusters(want knownvalue.Check) plancheck.PlanCheck {
	return plancheck.ExpectKnownValue(webAddress, tfjsonpath.New("clusters"), want)
}

var unknownClusters = plancheck.ExpectUnknownValue(webAddress, tfjsonpath.New("clusters"))

func stateClusters(want knownvalue.Check) []statecheck.StateCheck {
	return []statecheck.StateCheck{statecheck.ExpectKnownValue(webAddress, tfjsonpath.New("clusters"), want)}
}

// What a plan shows of a decision, and the result of its apply, with a preview and without. The decision moves before
// the plan, or between a saved plan and its apply, while nothing, a label or the request changes.
func TestAccDecisionsInPlans(t *testing.T) {
	f := newFleet(t)
	one, two := request{number: "1"}, request{number: "2"}
	with := func(r request, change ...func(*request)) request {
		for _, c := range change {
			c(&r)
		}
		return r
	}
	preview := func(r *request) { r.preview = true }
	labelled := func(r *request) { r.labels = `{ team = "a" }` }
	forEach := func(r *request) { r.forEach = true }
	invalidForEach := regexp.MustCompile(`Invalid for_each argument`)
	planAgain := regexp.MustCompile(`(?s)The fleet changed since the preview: plan\s+again.*Nothing\s+was\s+changed`)

	for _, test := range []struct {
		name          string
		before, after request // before is applied first; number "" = the placement is created
		moves         string  // when: "" = not, "before the plan", "before the apply"
		planned       []string
		unknown       bool           // the decision is unknown in the plan
		err           *regexp.Regexp // error of the apply or the plan
		applied       []string       // in the state after the apply
		next          []string       // in the state after the next refresh; "" = as applied
	}{
		{name: "moves, same configuration", before: one, after: one, moves: "before the plan", planned: []string{"b"}, applied: []string{"b"}},
		{name: "moves, same configuration, preview", before: with(one, preview), after: with(one, preview), moves: "before the plan", planned: []string{"b"}, applied: []string{"b"}},

		{name: "a label", before: one, after: with(one, labelled), moves: "before the apply", planned: []string{"a"}, applied: []string{"a"}, next: []string{"b"}},
		{name: "a label, preview", before: with(one, preview), after: with(one, preview, labelled), moves: "before the apply", planned: []string{"a"}, applied: []string{"a"}, next: []string{"b"}},

		{name: "more clusters", before: one, after: two, moves: "before the apply", unknown: true, applied: []string{"b", "c"}},
		{name: "more clusters, preview", before: with(one, preview), after: with(two, preview), moves: "before the apply", planned: []string{"a", "b"}, err: planAgain, next: []string{"b", "c"}},

		{name: "a label and more clusters, preview", before: with(one, preview), after: with(two, preview, labelled), planned: []string{"a", "b"}, applied: []string{"a", "b"}},

		{name: "for_each, same configuration", before: with(one, forEach), after: with(one, forEach), moves: "before the plan", planned: []string{"b"}, applied: []string{"b"}},
		{name: "for_each, same configuration, preview", before: with(one, forEach, preview), after: with(one, forEach, preview), moves: "before the plan", planned: []string{"b"}, applied: []string{"b"}},
		{name: "for_each, a label", before: with(one, forEach), after: with(one, forEach, labelled), planned: []string{"a"}, applied: []string{"a"}},
		{name: "for_each, a label, preview", before: with(one, forEach, preview), after: with(one, forEach, preview, labelled), planned: []string{"a"}, applied: []string{"a"}},
		{name: "for_each, more clusters", before: with(one, forEach), after: with(two, forEach), err: invalidForEach},
		{name: "for_each, more clusters, preview", before: with(one, forEach, preview), after: with(two, forEach, preview), planned: []string{"a", "b"}, applied: []string{"a", "b"}},

		{name: "create", after: one, unknown: true, applied: []string{"a"}},
		{name: "create, preview", after: with(two, preview), planned: []string{"a", "b"}, applied: []string{"a", "b"}},
		{name: "create, for_each", after: with(one, forEach), err: invalidForEach},
		{name: "create, for_each, preview", after: with(two, forEach, preview), planned: []string{"a", "b"}, applied: []string{"a", "b"}},
		{name: "create, moves, preview", after: with(one, preview), moves: "before the apply", planned: []string{"a"}, err: planAgain, next: []string{"b"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // each has its own clusters and namespace
			s := f.scene(strings.NewReplacer(",", "", " ", "-", "_", "-").Replace(test.name))
			var steps []resource.TestStep
			if test.before.forEach && !test.before.preview { // it cannot be created this way
				steps = append(steps, resource.TestStep{Config: s.config(one)})
			}
			if test.before.number != "" {
				steps = append(steps, resource.TestStep{Config: s.config(test.before), ConfigStateChecks: stateClusters(s.names("a"))})
			}
			step := resource.TestStep{Config: s.config(test.after), ExpectError: test.err}
			var checks []plancheck.PlanCheck
			switch {
			case test.unknown:
				checks = append(checks, unknownClusters)
			case test.planned != nil:
				checks = append(checks, plannedClusters(s.names(test.planned...)))
			}
			switch test.moves {
			case "before the plan":
				step.PreConfig = s.lose
				checks = append(checks, plancheck.ExpectResourceAction(webAddress, plancheck.ResourceActionNoop))
			case "before the apply":
				checks = append(checks, meanwhile(s.lose))
			}
			step.ConfigPlanChecks = resource.ConfigPlanChecks{PreApply: checks}
			if test.err == nil {
				step.ConfigPlanChecks.PostApplyPostRefresh = emptyPlan()
				step.ConfigStateChecks = stateClusters(s.names(test.applied...))
				if test.after.forEach {
					for _, cluster := range test.applied {
						step.ConfigStateChecks = append(step.ConfigStateChecks, statecheck.ExpectKnownValue(
							fmt.Sprintf("terraform_data.release[%q]", s.cluster(cluster)), tfjsonpath.New("output"), knownvalue.StringExact(s.cluster(cluster))))
					}
				}
			}
			steps = append(steps, step)
			if test.next != nil {
				steps = append(steps, resource.TestStep{
					Config: s.config(test.after), ConfigStateChecks: stateClusters(s.names(test.next...)),
					ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
				})
			}
			if test.after.forEach && (test.err == nil || test.before.number != "") { // the library cannot clean up after for_each
				steps = append(steps, resource.TestStep{Config: s.config(with(test.after, func(r *request) { r.forEach = false })), Destroy: true})
			}
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: factories, Steps: steps,
				CheckDestroy: func(*terraform.State) error { return s.gone(s.key()) },
			})
		})
	}
}

// If the previewed values are known only after apply, the preview is made during the apply: the decision is unknown in
// the plan, and the next plan is empty.
func TestAccPreviewOfUnknown(t *testing.T) {
	f := newFleet(t)
	s := f.scene("later")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{{
			Config: s.config(request{number: "terraform_data.number.output", preview: true, more: `resource "terraform_data" "number" { input = 2 }`}),
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply:             []plancheck.PlanCheck{unknownClusters},
				PostApplyPostRefresh: emptyPlan(),
			},
			ConfigStateChecks: stateClusters(s.names("a", "b")),
		}},
	})
}

// The saved plan is older than the server keeps previews.
func TestAccPreviewGoneBeforeApply(t *testing.T) {
	f := newFleet(t)
	s := f.scene("late")
	wire := f.recorder()
	config := strings.Replace(s.config(request{number: "1", preview: true}), f.endpoint, wire.endpoint, 1)
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

// A token that is of no use says what to do.
func TestAccPreviewTokenOfNoUse(t *testing.T) {
	f := newFleet(t)
	s := f.scene("useless")
	placement := func(token string) string {
		return s.fleet.config(fmt.Sprintf(`
			data "scheduler_placement_preview" "other" { name = "other" }
			resource "scheduler_placement" "web" {
			  name             = "web"
			  preview_token_wo = %s
			}`, token))
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: placement(`"nothing"`), ExpectError: regexp.MustCompile(`(?s)preview_token_wo.*Plan\s+again`)},
			{Config: placement(`data.scheduler_placement_preview.other.token`), ExpectError: regexp.MustCompile(`(?s)preview\s+of\s+placement\s+"default/other".*this\s+is\s+placement\s+"default/web"`)},
			{Config: placement(`""`), ExpectError: regexp.MustCompile(`(?s)preview_token_wo`)},
		},
	})
}

// The preview shows the parts of the decision, and its errors name the invalid attribute.
func TestAccPreviewDataSource(t *testing.T) {
	f := newFleet(t)
	for name, grade := range map[string]int64{"berlin": 10, "madrid": 90} {
		f.cluster(name)
		f.score(name, "support", map[string]int64{"grade": grade})
	}
	preview := func(spec string) string {
		return f.config("data \"scheduler_placement_preview\" \"p\" {\n name = \"web\"\n namespace = \"shop\"\n strategy = \"prioritizers\"\n" + spec + "\n}")
	}
	policy := `prioritizer_policy = { mode = "exact", configurations = [{ type = "addon", resource_name = "support", score_name = "grade" }] }`
	of := func(attribute string, want knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("data.scheduler_placement_preview.p", tfjsonpath.New(attribute), want)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy:             func(*terraform.State) error { return f.gone(webKey) }, // it was never created
		Steps: []resource.TestStep{
			{Config: preview(`number_of_clusters = -1`), ExpectError: regexp.MustCompile(`(?s)Invalid number_of_clusters`)},
			{Config: preview(`prioritizer_policy = { configurations = [{ name = "luck" }] }`), ExpectError: regexp.MustCompile(`(?s)Invalid\s+prioritizer_policy.configurations\[0\].name`)},
			{Config: preview(`metrics = {}`), ExpectError: regexp.MustCompile(`(?s)Invalid metrics`)},
			{
				Config: preview("number_of_clusters = 3\n decision_strategy = {}\n" + policy),
				ConfigStateChecks: []statecheck.StateCheck{
					of("clusters", names("madrid", "berlin")),
					of("current", knownvalue.ListSizeExact(0)),
					of("token", knownvalue.NotNull()),
					of("satisfied", knownvalue.Bool(false)),
					of("summary", knownvalue.StringRegexp(regexp.MustCompile(`madrid, berlin chosen, 3 wanted; 2 of 2 clusters fit`))),
					of("decision_groups", knownvalue.ListSizeExact(1)),
					statecheck.ExpectKnownValue("data.scheduler_placement_preview.p", tfjsonpath.New("decisions").AtSliceIndex(0).AtMapKey("score"), knownvalue.Float64Exact(90)),
				},
			},
		},
	})
}
