package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform/terraformtest"
)

// Elements of a set have no index: an error is reported at the set, and names the part of the element.
func TestErrorsInSets(t *testing.T) {
	v := newValidation(t)
	for _, test := range []struct {
		attribute string
		value     any
		want      string
	}{
		{"zones", list{"a", ""}, "Invalid zones[*]: zones[*]: must not be empty."},
		{"zones", list{nil}, "Invalid zones[*]: zones[*]: must not be null."},
		{"namespaces", list{"shop", "No"}, `Invalid namespaces[*]: namespaces[*]: "No" must`},
		{"namespaces", list{}, "Invalid namespaces: namespaces: must not be empty"},
		{"taints", list{doc{"key": "a", "effect": "NoSelect"}, doc{"key": "b", "effect": "Never"}}, `Invalid taints[*].effect: taints[*].effect: "Never" is not one of`},
		{"taints", list{doc{"key": "a", "effect": "NoSelect"}, doc{"key": "a", "effect": "NoExecute"}},
			`Invalid taints[*]: taints[*]: the taint with the key "a" and the value "" is listed twice: the effects "NoSelect" and "NoExecute" are the same.`},
	} {
		errs := check(t, v, "scheduler_cluster", terraformtest.ConfigValue(t, v.types["scheduler_cluster"], doc{"name": "east", test.attribute: test.value}))
		if len(errs) != 1 || !strings.HasPrefix(errs[test.attribute], test.want) {
			t.Errorf("%s %v: %v, expected %q at %s", test.attribute, test.value, errs, test.want, test.attribute)
		}
	}
}

// An unknown value in one element of a set does not hide errors in another.
func TestUnknownElementsOfSets(t *testing.T) {
	v := newValidation(t)
	typ := v.types["scheduler_cluster"]
	taints := func(first, second doc) tftypes.Value {
		config := terraform.AttributesOf(terraformtest.ConfigValue(t, typ, doc{"name": "east", "taints": list{first, second}}))
		var elements []tftypes.Value
		if err := config["taints"].As(&elements); err != nil {
			t.Fatal(err)
		}
		taint := terraform.AttributesOf(elements[0])
		taint["value"] = tftypes.NewValue(tftypes.String, tftypes.UnknownValue)
		elements[0] = tftypes.NewValue(elements[0].Type(), taint)
		config["taints"] = tftypes.NewValue(config["taints"].Type(), elements)
		return tftypes.NewValue(typ, config)
	}
	a := doc{"key": "a", "effect": "NoSelect"}
	if errs := check(t, v, "scheduler_cluster", taints(a, a)); len(errs) > 0 {
		t.Errorf("a taint that may be another one is refused: %v", errs)
	}
	if errs := check(t, v, "scheduler_cluster", taints(a, doc{"key": "b", "effect": "Never"})); !strings.Contains(errs["taints"], `taints[*].effect: "Never"`) {
		t.Errorf("a taint beside one that is not known yet is not refused: %v", errs)
	}
}

// Terraform pairs the elements of a set by their values. One that is computed would
// make each of them another one in every plan.
func TestElementsOfSetsAreGiven(t *testing.T) {
	server, err := providerserver.NewProtocol6WithError(New("test")())()
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	sets := 0
	var walk func(at string, attributes []*tfprotov6.SchemaAttribute, inSet bool)
	walk = func(at string, attributes []*tfprotov6.SchemaAttribute, inSet bool) {
		for _, a := range attributes {
			if inSet && a.Computed {
				t.Errorf("%s.%s is computed, in a set", at, a.Name)
			}
			if a.NestedType != nil {
				isSet := a.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeSet
				if isSet {
					sets++
				}
				walk(at+"."+a.Name, a.NestedType.Attributes, inSet || isSet)
			}
		}
	}
	for name, s := range resp.ResourceSchemas {
		walk(name, s.Block.Attributes, false)
	}
	if sets == 0 {
		t.Error("no resource has a set of objects")
	}
}
