package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// siblingDefault is the default of a text that follows from an attribute beside
// it: a grace period is there only where replicas are purged gracefully. While the
// other one is unknown, so is the default.
type siblingDefault struct {
	on string
	// values are the defaults by the other attribute's value, "" = absent.
	values map[string]string
	// otherwise is the default where the other attribute has a value that values
	// lacks; "" = the attribute is absent then.
	otherwise string
}

// Description implements planmodifier.String.
func (d siblingDefault) Description(context.Context) string {
	cases := make([]string, 0, len(d.values)+1)
	if d.otherwise != "" {
		cases = append(cases, fmt.Sprintf("%q where there is another %s", d.otherwise, d.on))
	}
	for value, text := range d.values {
		cases = append(cases, fmt.Sprintf("%q where %s is %q", text, d.on, value))
	}
	slices.Sort(cases)
	return "value defaults to " + strings.Join(cases, ", ")
}

// MarkdownDescription implements planmodifier.String.
func (d siblingDefault) MarkdownDescription(ctx context.Context) string { return d.Description(ctx) }

// PlanModifyString implements planmodifier.String.
func (d siblingDefault) PlanModifyString(ctx context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if !req.ConfigValue.IsNull() {
		return
	}
	var other types.String
	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, req.Path.ParentPath().AtName(d.on), &other)...)
	text, ok := d.values[other.ValueString()]
	if !ok && other.ValueString() != "" {
		text, ok = d.otherwise, d.otherwise != ""
	}
	switch {
	case other.IsUnknown():
		resp.PlanValue = types.StringUnknown()
	case ok:
		resp.PlanValue = types.StringValue(text)
	default:
		resp.PlanValue = types.StringNull()
	}
}
