package terraform

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// A time can be written in several ways: 12:00:00Z is 14:00:00+02:00. The server responds in UTC;
// the state keeps the user's spelling.

// isInstant reports whether an attribute is a time.
func isInstant(attribute schema.Attribute) bool {
	text, ok := attribute.(schema.StringAttribute)
	return ok && slices.Contains(text.PlanModifiers, planmodifier.String(sameInstant{}))
}

// sameMoment reports whether two strings are the same time.
func sameMoment(a, b string) bool {
	x, errX := time.Parse(time.RFC3339, a)
	y, errY := time.Parse(time.RFC3339, b)
	return errX == nil && errY == nil && x.Equal(y)
}

// sameInstant keeps the spelling of the state if the configuration has the same time, so that there
// is no diff.
type sameInstant struct{}

// Description implements planmodifier.String.
func (sameInstant) Description(context.Context) string {
	return "another spelling of the same time is not a change"
}

// MarkdownDescription implements planmodifier.String.
func (m sameInstant) MarkdownDescription(ctx context.Context) string { return m.Description(ctx) }

// PlanModifyString implements planmodifier.String.
func (sameInstant) PlanModifyString(_ context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if sameMoment(req.StateValue.ValueString(), req.PlanValue.ValueString()) {
		resp.PlanValue = types.StringValue(req.StateValue.ValueString())
	}
}
