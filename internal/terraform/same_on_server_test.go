package terraform_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// An empty list, set or map equals none, wherever it is in an attribute that the decision depends on: the decision
// stays known. So does a default that is written down.
func TestEqualOnTheServer(t *testing.T) {
	for kind, r := range objectResources(t) {
		if r.Decision == nil {
			continue
		}
		described := schemaOf(t.Context(), r).Attributes
		tried := 0
		terraform.Walk(described, nil, func(at []string, attribute schema.Attribute) {
			if !slices.Contains(r.Inputs, at[0]) || attribute.IsRequired() || !attribute.IsOptional() {
				return
			}
			typ := attribute.GetType().TerraformType(t.Context())
			absent, present := tftypes.NewValue(typ, nil), tftypes.Value{}
			value, hasDefault, err := terraform.DefaultOf(t.Context(), attribute)
			switch {
			case err != nil:
				t.Fatal(err)
			case hasDefault:
				present = value
			case typ.Is(tftypes.List{}), typ.Is(tftypes.Set{}):
				present = tftypes.NewValue(typ, []tftypes.Value{})
			case typ.Is(tftypes.Map{}):
				present = tftypes.NewValue(typ, map[string]tftypes.Value{})
			default:
				return
			}
			tried++
			without := around(t.Context(), described, at, absent)
			with := around(t.Context(), described, at, present)
			name := string(kind) + "." + strings.Join(at, ".")
			if r.Replanned(with, without) {
				t.Errorf("%s: the decision is unknown after a change from null to %s", name, present)
			}
			if r.Replanned(without, with) {
				t.Errorf("%s: the decision is unknown after a change from %s to null", name, present)
			}
			if unknown := around(t.Context(), described, at, tftypes.NewValue(typ, tftypes.UnknownValue)); !r.Replanned(unknown, without) {
				t.Errorf("%s: the decision is known although the attribute is not", name)
			}
		})
		t.Logf("%s: %d attributes", kind, tried)
	}
}

// around returns attributes of which only the one at the path is set, with one element in each list on the way.
func around(ctx context.Context, attributes map[string]schema.Attribute, at []string, value tftypes.Value) map[string]tftypes.Value {
	values := map[string]tftypes.Value{}
	for name, attribute := range attributes {
		typ := attribute.GetType().TerraformType(ctx)
		switch nested, isNested := attribute.(schema.NestedAttribute); {
		case name != at[0]:
			values[name] = tftypes.NewValue(typ, nil)
		case len(at) == 1:
			values[name] = value
		case isNested:
			inner := map[string]schema.Attribute{}
			for name, attribute := range nested.GetNestedObject().GetAttributes() {
				inner[name] = attribute.(schema.Attribute)
			}
			object := around(ctx, inner, at[1:], value)
			switch typ := typ.(type) {
			case tftypes.Object:
				values[name] = tftypes.NewValue(typ, object)
			case tftypes.List:
				values[name] = tftypes.NewValue(typ, []tftypes.Value{tftypes.NewValue(typ.ElementType, object)})
			case tftypes.Set:
				values[name] = tftypes.NewValue(typ, []tftypes.Value{tftypes.NewValue(typ.ElementType, object)})
			}
		}
	}
	return values
}
