package terraform

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// SiblingDefault is the default of a text that follows from an attribute beside
// it: a grace period is there only where replicas are purged gracefully. While the
// other one is unknown, so is the default.
type SiblingDefault struct {
	On string
	// Values are the defaults by the other attribute's value, "" = absent.
	Values map[string]string
	// Otherwise is the default where the other attribute has a value that values
	// lacks; "" = the attribute is absent then.
	Otherwise string
}

// Description implements planmodifier.String.
func (d SiblingDefault) Description(context.Context) string {
	cases := make([]string, 0, len(d.Values)+1)
	if d.Otherwise != "" {
		cases = append(cases, fmt.Sprintf("%q where there is another %s", d.Otherwise, d.On))
	}
	for value, text := range d.Values {
		cases = append(cases, fmt.Sprintf("%q where %s is %q", text, d.On, value))
	}
	slices.Sort(cases)
	return "value defaults to " + strings.Join(cases, ", ")
}

// MarkdownDescription implements planmodifier.String.
func (d SiblingDefault) MarkdownDescription(ctx context.Context) string { return d.Description(ctx) }

// PlanModifyString implements planmodifier.String.
func (d SiblingDefault) PlanModifyString(ctx context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if !req.ConfigValue.IsNull() {
		return
	}
	var other types.String
	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, req.Path.ParentPath().AtName(d.On), &other)...)
	switch text, ok := d.follows(other.ValueString()); {
	case other.IsUnknown():
		resp.PlanValue = types.StringUnknown()
	case ok:
		resp.PlanValue = types.StringValue(text)
	default:
		resp.PlanValue = types.StringNull()
	}
}

// follows is the default where the other attribute has this text, "" = it is absent;
// ok is false where there is none.
func (d SiblingDefault) follows(other string) (text string, ok bool) {
	if text, ok = d.Values[other]; !ok && other != "" {
		return d.Otherwise, d.Otherwise != ""
	}
	return text, ok
}
