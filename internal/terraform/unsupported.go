package terraform

import (
	"context"
	"fmt"
	"strings"

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
func checkAttributes(ctx context.Context, typeName string, attributes map[string]schema.Attribute, diags *diag.Diagnostics) {
	walk(attributes, []string{typeName}, func(at []string, attribute schema.Attribute) {
		if _, _, err := defaultOf(ctx, attribute); err != nil {
			invalidSchema(diags, at, err)
		}
	})
}

// checkArguments adds an error for every attribute of a data source that cannot be made.
func checkArguments(typeName string, attributes map[string]datasource.Attribute, diags *diag.Diagnostics) {
	walk(attributes, []string{typeName}, func(at []string, attribute schema.Attribute) {
		if a, ok := attribute.(unsupportedArgument); ok {
			invalidSchema(diags, at, a.why)
		}
	})
}

func invalidSchema(diags *diag.Diagnostics, at []string, err error) {
	diags.AddError("Invalid schema", strings.Join(at, ".")+": "+err.Error())
}
