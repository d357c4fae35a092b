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
	} {
		t.Run(test.name, func(t *testing.T) {
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
		{"no range", `provider::scheduler::normalize(1, 2, 2)`, `min\s+must\s+be\s+below\s+max`},
	} {
		t.Run(test.name, func(t *testing.T) {
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

// An unknown argument makes the result unknown, and it is computed when the
// argument is known.
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
