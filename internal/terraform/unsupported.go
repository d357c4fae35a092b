package terraform

import (
	"context"
	"fmt"
	"maps"
	"slices"

	datasource "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// A field of the API whose type has no attribute is a mistake in this repository, as is
// a default that this package cannot read. Neither is left out silently, and neither
// panics: the schema has an error that names the field, so that the test over all
// schemas fails.

// unsupported stands for an attribute of a resource that cannot be made.
type unsupported struct {
	schema.StringAttribute
	why error
}

// unsupportedArgument stands for an attribute of a data source that cannot be made.
type unsupportedArgument struct {
	datasource.StringAttribute
	why error
}

// noAttribute says that the type of a field has no attribute.
func noAttribute(f *api.Field) error {
	return fmt.Errorf("%s.%s: no attribute holds a %s", f.Of.Name(), f.Name, f.Type)
}

// checkAttributes adds an error for every attribute of a resource that cannot be made,
// or whose default cannot be read.
func checkAttributes(ctx context.Context, at string, attributes map[string]schema.Attribute, diags *diag.Diagnostics) {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		at := at + "." + name
		if _, _, err := defaultOf(ctx, attributes[name]); err != nil {
			diags.AddError("Invalid schema", at+": "+err.Error())
		}
		switch a := attributes[name].(type) {
		case schema.SingleNestedAttribute:
			checkAttributes(ctx, at, a.Attributes, diags)
		case schema.ListNestedAttribute:
			checkAttributes(ctx, at, a.NestedObject.Attributes, diags)
		case schema.SetNestedAttribute:
			checkAttributes(ctx, at, a.NestedObject.Attributes, diags)
		}
	}
}

// checkArguments adds an error for every attribute of a data source that cannot be made.
func checkArguments(at string, attributes map[string]datasource.Attribute, diags *diag.Diagnostics) {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		at := at + "." + name
		switch a := attributes[name].(type) {
		case unsupportedArgument:
			diags.AddError("Invalid schema", at+": "+a.why.Error())
		case datasource.SingleNestedAttribute:
			checkArguments(at, a.Attributes, diags)
		case datasource.ListNestedAttribute:
			checkArguments(at, a.NestedObject.Attributes, diags)
		case datasource.SetNestedAttribute:
			checkArguments(at, a.NestedObject.Attributes, diags)
		case datasource.MapNestedAttribute:
			checkArguments(at, a.NestedObject.Attributes, diags)
		}
	}
}
