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

// An API field whose type has no attribute, or a default that cannot be parsed, is a bug in this
// repository. The schema then contains an error that names the field, so that the test over all
// schemas fails, instead of a panic or a missing attribute.

// unsupported replaces an attribute of a resource that cannot be created.
type unsupported struct {
	schema.StringAttribute
	why error
}

// unsupportedArgument replaces an attribute of a data source that cannot be created.
type unsupportedArgument struct {
	datasource.StringAttribute
	why error
}

// noAttribute returns the error for a field whose type has no attribute.
func noAttribute(f *api.Field) error {
	return fmt.Errorf("%s.%s: no attribute type for %s", f.Of.Name(), f.Name, f.Type)
}

// checkAttributes adds an error for every attribute of a resource that cannot be created or whose
// default cannot be parsed.
func checkAttributes(ctx context.Context, typeName string, attributes map[string]schema.Attribute, diags *diag.Diagnostics) {
	walk(attributes, []string{typeName}, func(at []string, attribute schema.Attribute) {
		if _, _, err := defaultOf(ctx, attribute); err != nil {
			invalidSchema(diags, at, err)
		}
	})
}

// checkArguments adds an error for every attribute of a data source that cannot be created.
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
