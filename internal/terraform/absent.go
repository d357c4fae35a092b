package terraform

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// The API treats empty text, and in some fields 0, as absent. Terraform would then plan a value
// that the server does not keep, so these values are rejected.

// refusesEmpty rejects "".
var refusesEmpty = []validator.String{notEmpty{}}

type notEmpty struct{}

// Description implements validator.String.
func (notEmpty) Description(context.Context) string { return "must not be empty" }

// MarkdownDescription implements validator.String.
func (notEmpty) MarkdownDescription(context.Context) string { return "must not be empty" }

// ValidateString implements validator.String.
func (notEmpty) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if !req.ConfigValue.IsNull() && !req.ConfigValue.IsUnknown() && req.ConfigValue.ValueString() == "" {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid "+req.Path.String(), sayAbsent(req.Path, "must not be empty"))
	}
}

// notZero rejects 0.
type notZero struct{}

// Description implements validator.Int64.
func (notZero) Description(context.Context) string { return "must not be 0" }

// MarkdownDescription implements validator.Int64.
func (notZero) MarkdownDescription(context.Context) string { return "must not be 0" }

// ValidateInt64 implements validator.Int64.
func (notZero) ValidateInt64(_ context.Context, req validator.Int64Request, resp *validator.Int64Response) {
	if !req.ConfigValue.IsNull() && !req.ConfigValue.IsUnknown() && req.ConfigValue.ValueInt64() == 0 {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid "+req.Path.String(), sayAbsent(req.Path, "0 must be at least 1"))
	}
}

func sayAbsent(at path.Path, message string) string {
	return Sentence(at.String() + ": " + message + "; to leave it unset, omit the attribute")
}
