package terraform

import (
	"context"
	"fmt"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// Approve is the attribute that approves steps of a rollout. It is an attribute and not an action,
// which Terraform only has since version 1.14, so that an approval is a change of the
// configuration, which is reviewed like every other.
const Approve = "approve"

// ApproveAttribute returns the attribute that approves steps of a rollout, which dataSource shows.
func ApproveAttribute(dataSource string) schema.SingleNestedAttribute {
	positive := []validator.Int64{int64validator.AtLeast(1)}
	texts := map[string]string{}
	for _, f := range api.Fields(reflect.TypeFor[api.RolloutApproval]()) {
		texts[f.Name] = f.Describe()
	}
	return schema.SingleNestedAttribute{
		MarkdownDescription: fmt.Sprintf("Approves steps of a `rollout` that is under way, or has the step tried again in which too many clusters have failed. The approval is given once, when the attribute changes, and fails if another rollout is under way. The data source `%s` shows `rollout`.", dataSource),
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"revision": schema.Int64Attribute{MarkdownDescription: texts["revision"], Required: true, Validators: positive},
			"step":     schema.Int64Attribute{MarkdownDescription: texts["step"], Optional: true, Validators: positive},
		},
	}
}

// approve gives the approval that a plan adds to the state, for an object that was just written, and
// returns the object afterwards.
func (r *Resource) approve(ctx context.Context, plan, state map[string]tftypes.Value, stored api.Object, diags *diag.Diagnostics) (api.Object, error) {
	planned, ok := plan[Approve]
	if !ok || planned.IsNull() || same(planned, state[Approve]) {
		return stored, nil
	}
	given := AttributesOf(planned)
	approval := api.RolloutApproval{Revision: WholeOf(given["revision"]), Step: WholeOf(given["step"])}
	defer r.session.lists.forget()
	approved, err := r.session.client.Approve(ctx, api.KeyOf(stored), approval)
	if client.ProblemOf(err) == api.ProblemNoRollout {
		diags.AddAttributeWarning(path.Root(Approve), "There is nothing to approve", fmt.Sprintf("The decision of %s does not change in steps at present. It may be done already.", api.KeyOf(stored)))
		return stored, nil
	}
	if err != nil {
		return nil, err
	}
	return approved, nil
}
