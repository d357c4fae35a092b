package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
)

// keepUnlessChanged keeps the decision of the state in the plan unless one of
// the attributes it follows from changes. A label or a time limit may then be
// edited without everything that uses the decision becoming unknown.
type keepUnlessChanged struct{ inputs []string }

// Description implements planmodifier.List.
func (m keepUnlessChanged) Description(context.Context) string {
	return "stays known unless one of these changes: " + strings.Join(m.inputs, ", ")
}

// MarkdownDescription implements planmodifier.List.
func (m keepUnlessChanged) MarkdownDescription(ctx context.Context) string {
	return m.Description(ctx)
}

// PlanModifyList implements planmodifier.List.
func (m keepUnlessChanged) PlanModifyList(_ context.Context, req planmodifier.ListRequest, resp *planmodifier.ListResponse) {
	if req.State.Raw.IsNull() || req.StateValue.IsNull() || !req.PlanValue.IsUnknown() {
		return
	}
	planned, before := attributesOf(req.Plan.Raw), attributesOf(req.State.Raw)
	for _, name := range m.inputs {
		if !planned[name].Equal(before[name]) {
			return
		}
	}
	resp.PlanValue = req.StateValue
}
