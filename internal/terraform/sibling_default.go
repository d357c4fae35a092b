package terraform

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// siblingDefault is a default that depends on a sibling attribute: a grace period exists only if
// replicas are purged gracefully. If the sibling is unknown, so is the default.
type siblingDefault struct{ by *api.DefaultBy }

// Description implements planmodifier.String.
func (d siblingDefault) Description(context.Context) string { return d.by.Sentence() }

// MarkdownDescription implements planmodifier.String.
func (d siblingDefault) MarkdownDescription(context.Context) string { return d.by.Sentence() }

// PlanModifyString implements planmodifier.String.
func (d siblingDefault) PlanModifyString(ctx context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if !req.ConfigValue.IsNull() {
		return
	}
	var other types.String
	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, req.Path.ParentPath().AtName(d.by.On), &other)...)
	if other.IsUnknown() {
		resp.PlanValue = types.StringUnknown()
		return
	}
	resp.PlanValue = types.StringNull()
	if text, ok := d.by.For(other.ValueString()); ok {
		resp.PlanValue = types.StringValue(text)
	}
}

// beside returns the plan of an unset attribute for a value of the sibling.
func (d siblingDefault) beside(other tftypes.Value) tftypes.Value {
	if !other.IsKnown() {
		return tftypes.NewValue(tftypes.String, tftypes.UnknownValue)
	}
	if text, ok := d.by.For(TextOf(other)); ok {
		return tftypes.NewValue(tftypes.String, text)
	}
	return tftypes.NewValue(tftypes.String, nil)
}
