package provider_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
)

func TestFunctions(t *testing.T) {
	for _, test := range []struct {
		name, expression string
		want             knownvalue.Check
	}{
		{"matches", `provider::scheduler::matches({ location = "DE" }, ["location in (DE, SK)", "location != FR"])`, knownvalue.Bool(true)},
		{"one does not match", `provider::scheduler::matches({ location = "DE" }, ["location is DE", "tier is prod"])`, knownvalue.Bool(false)},
		{"no labels", `provider::scheduler::matches(null, ["location is DE"])`, knownvalue.Bool(false)},
		{"null constraints", `provider::scheduler::matches({}, null)`, knownvalue.Bool(true)},
		{"no constraint", `provider::scheduler::matches({}, [])`, knownvalue.Bool(true)},
		{"parse", `provider::scheduler::parse_label_constraint("location not in (DE, SK)")`, knownvalue.ObjectExact(map[string]knownvalue.Check{
			"key": knownvalue.StringExact("location"), "operator": knownvalue.StringExact("not in"), "values": names("DE", "SK"),
		})},
		{"parse words", `provider::scheduler::parse_label_constraint("tier is not edge").operator`, knownvalue.StringExact("!=")},
		{"normalize", `provider::scheduler::normalize(5, 0, 20)`, knownvalue.Float64Exact(0.25)},
		{"normalize negative", `provider::scheduler::normalize(-1, -2, 0)`, knownvalue.Float64Exact(0.5)},
		{"normalize a computed value", `provider::scheduler::normalize(100 / 3, 0, 100)`, knownvalue.Float64Exact(0.33333333333333337)},
		{"normalize computed bounds", `provider::scheduler::normalize(1, 1 / 3, 7 / 3) * 3`, knownvalue.Float64Exact(1)},
		{"normalize a value of many digits", `provider::scheduler::normalize(0.1234567890123456789012345678901234567890, 0, 1)`, knownvalue.Float64Exact(0.12345678901234568)},
		{"normalize a tiny value", `provider::scheduler::normalize(1e-400, 0, 1)`, knownvalue.Float64Exact(0)},
		{"normalize in the widest range", `provider::scheduler::normalize(1.7e308, -1.7e308, 1.7e308)`, knownvalue.Float64Exact(1)},
		{"split", `[for s in [
			provider::scheduler::split_replicas("Deployment", 5, null, null),
			provider::scheduler::split_replicas("StatefulSet", 1, null, null),
			provider::scheduler::split_replicas("StatefulSet", 5, null, null),
			provider::scheduler::split_replicas("Deployment", 5, "all-in-on-demand", null),
			provider::scheduler::split_replicas("StatefulSet", 5, "all_in_spot", null),
			provider::scheduler::split_replicas("Deployment", 10, "custom", 2),
			provider::scheduler::split_replicas("Deployment", 10, "custom", "34%"),
			provider::scheduler::split_replicas("Deployment", 3, "custom", "5"),
			provider::scheduler::split_replicas("Deployment", 0, "majority-in-on-demand", "1"),
		] : "${s.mode} ${s.on_demand}/${s.spot} ${s.max_skew}${s.clamped ? " clamped" : ""}"]`, names(
			"all_in_spot 0/5 5", "all_in_on_demand 1/0 1", "majority_in_on_demand 3/2 1", "all_in_on_demand 5/0 1", "all_in_spot 0/5 5",
			"custom 2/8 6", "custom 4/6 2", "custom 3/0 1 clamped", "majority_in_on_demand 0/0 1")},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			resource.UnitTest(t, resource.TestCase{
				ProtoV6ProviderFactories: factories,
				Steps: []resource.TestStep{{
					Config:            `output "o" { value = ` + test.expression + ` }`,
					ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownOutputValue("o", test.want)},
				}},
			})
		})
	}
}

func TestFunctionErrors(t *testing.T) {
	for _, test := range []struct{ name, expression, want string }{
		{"bad constraint", `provider::scheduler::matches({}, ["location is DE", "location"])`, `(?s)Invalid value for "constraints" parameter.*constraints\[1\]`},
		{"bad expression", `provider::scheduler::parse_label_constraint("location > 3")`, `(?s)Invalid value for "expression" parameter`},
		{"null label", `provider::scheduler::matches({ a = null }, ["a is b"])`, `(?s)"labels" parameter.*labels\["a"\]\s+must\s+not\s+be\s+null`},
		{"null constraint", `provider::scheduler::matches({}, [null])`, `(?s)"constraints" parameter.*constraints\[0\]\s+must\s+not\s+be\s+null`},
		{"null", `provider::scheduler::parse_label_constraint(null)`, `argument must not be null`},
		{"outside of the range", `provider::scheduler::normalize(21, 0, 20)`, `outside\s+of\s+the\s+range\s+0\s+to\s+20\.[^.]`},
		{"too large a value", `provider::scheduler::normalize(1e400, 0, 1)`, `(?s)"value" parameter.*1e\+400\s+is\s+too\s+large\s+a\s+number`},
		{"too large a bound", `provider::scheduler::normalize(0, -1e400, 1)`, `(?s)"min" parameter.*-1e\+400\s+is\s+too\s+large\s+a\s+number`},
		{"kind", `provider::scheduler::split_replicas("Job", 3, null, null)`, `(?s)"kind" parameter.*"Job".*Deployment\s+or\s+StatefulSet`},
		{"replicas", `provider::scheduler::split_replicas("Deployment", 1.5, null, null)`, `(?s)"replicas" parameter.*1.5\s+is\s+not\s+a\s+whole\s+number`},
		{"negative replicas", `provider::scheduler::split_replicas("Deployment", -1, null, null)`, `(?s)"replicas" parameter.*-1\s+is\s+not`},
		{"mode", `provider::scheduler::split_replicas("Deployment", 3, "half", null)`, `(?s)"mode" parameter.*"half".*majority-in-on-demand`},
		{"custom", `provider::scheduler::split_replicas("Deployment", 3, "custom", "some")`, `(?s)"custom" parameter.*"some".*"30%"`},
		{"no custom", `provider::scheduler::split_replicas("Deployment", 3, "custom", null)`, `(?s)"custom" parameter.*needs\s+a\s+number.*"30%"`},
		{"no range", `provider::scheduler::normalize(1, 2, 2)`, `min\s+must\s+be\s+below\s+max`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			resource.UnitTest(t, resource.TestCase{
				ProtoV6ProviderFactories: factories,
				Steps: []resource.TestStep{{
					Config:      `output "o" { value = ` + test.expression + ` }`,
					ExpectError: regexp.MustCompile(test.want),
				}},
			})
		})
	}
}

// An unknown argument makes the result unknown. It is computed when the argument is known.
func TestFunctionsOfUnknownValues(t *testing.T) {
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{{
			Config: `
				resource "terraform_data" "later" { input = { location = "DE", number = 5 } }
				output "matches" { value = provider::scheduler::matches({ location = terraform_data.later.output.location }, ["location is DE"]) }
				output "normalized" { value = provider::scheduler::normalize(terraform_data.later.output.number, 0, 20) }`,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectUnknownOutputValue("matches"),
				plancheck.ExpectUnknownOutputValue("normalized"),
			}},
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownOutputValue("matches", knownvalue.Bool(true)),
				statecheck.ExpectKnownOutputValue("normalized", knownvalue.Float64Exact(0.25)),
			},
		}},
	})
}
