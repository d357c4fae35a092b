package terraform

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// ObjectName validates arguments of data sources that name an object, so that invalid names are
// rejected by the plan.
type ObjectName struct{}

// Description implements validator.String.
func (ObjectName) Description(context.Context) string { return "value must be a name" }

// MarkdownDescription implements validator.String.
func (v ObjectName) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateString implements validator.String.
func (ObjectName) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if message := WrongName(req.ConfigValue.ValueString()); message != "" {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid "+req.Path.String(), Sentence(req.Path.String()+": "+message))
	}
}

// WrongName says why a name is invalid, or returns "".
func WrongName(name string) string {
	placement := &api.Placement{Metadata: api.Metadata{Name: name, Namespace: api.DefaultNamespace}}
	for _, e := range placement.Validate() {
		if e.Field == "metadata.name" {
			return e.Message
		}
	}
	return ""
}
