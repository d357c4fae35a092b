package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// previewToken is the attribute that takes the token of a preview. It is
// write-only: it changes with every plan, and would be a difference in each.
const previewToken = "preview_token_wo"

// previewTokenAttribute takes the token of a preview that dataSource makes, by
// which the attribute decision is known in a plan.
func previewTokenAttribute(dataSource, decision string) schema.Attribute {
	return schema.StringAttribute{
		MarkdownDescription: fmt.Sprintf("The `token` of a `%s` with the same attributes. `%s` is then known in the plan, and the apply commits exactly that decision or fails because the fleet has changed since. Where nothing changes that the decision follows from, the token means nothing.", dataSource, decision),
		Optional:            true,
		WriteOnly:           true,
		Validators:          notEmpty,
	}
}

// planPreview makes the decision known where a preview says what it will be. The
// preview never changes, so the plan that Terraform makes while it applies is the
// same.
func (r *objectResource) planPreview(ctx context.Context, plan, config, before map[string]tftypes.Value, diags *diag.Diagnostics) {
	token := textOf(config[previewToken])
	if r.previewed == nil || token == "" || r.session == nil || r.session.pending != nil || !r.replanned(plan, before) {
		return
	}
	at := path.Root(previewToken)
	want := r.key(plan)
	preview, err := r.session.client.GetPreview(ctx, token)
	switch {
	case client.IsNotFound(err):
		diags.AddAttributeError(at, "The preview is gone", fmt.Sprintf("The server has no preview of this token: it keeps one for %s. Plan again.", api.PreviewLifetime))
		return
	case err != nil:
		r.failed(diags, "read the preview of "+want.String(), tftypes.DynamicPseudoType, err)
		return
	}
	of := api.Key{Kind: preview.Kind, Namespace: preview.Namespace, Name: preview.Name}
	if identified := plan["namespace"].IsKnown() && plan["name"].IsKnown(); of != want && (identified || of.Kind != want.Kind) {
		diags.AddAttributeError(at, "The preview is of something else", fmt.Sprintf("The token is that of a preview of %s; this is %s. Give both the same name and namespace.", of, want))
		return
	}
	for name, document := range r.previewed(preview) {
		value, err := terraformValue(plan[name].Type(), document)
		if err != nil {
			diagnose(diags, "read the preview of "+want.String(), tftypes.DynamicPseudoType, err)
			return
		}
		plan[name] = value
	}
}

// previewRefused reports the answer to a write whose preview does not hold.
func previewRefused(err error, opts client.PutOptions) bool {
	var problem *api.Problem
	return opts.PreviewToken != "" && client.IsPreconditionFailed(err) && errors.As(err, &problem) && strings.Contains(problem.Detail, "the preview")
}

// reportRefusedPreview words that answer.
func reportRefusedPreview(diags *diag.Diagnostics, key api.Key, err error) {
	summary, detail := "The preview does not hold for "+key.String(), err.Error()
	var problem *api.Problem
	if errors.As(err, &problem) {
		detail = problem.Detail
	}
	const moved = "the fleet changed since the preview: plan again"
	if rest, ok := strings.CutPrefix(detail, moved); ok {
		summary, detail = sentence(moved), strings.TrimPrefix(rest, ": ")
	}
	text := "Nothing was changed for " + key.String() + "; a new plan shows the decision of now."
	if detail != "" {
		text = sentence(detail) + " " + text
	}
	diags.AddAttributeError(path.Root(previewToken), strings.TrimSuffix(summary, "."), text)
}

// previewTokenOf is the token that goes with a write. Where the decision is not
// planned anew there is nothing to insist on, and it would only get in the way:
// the decision may have moved, and a label is no reason to fail for that.
func (r *objectResource) previewTokenOf(config, plan, state tftypes.Value) string {
	if r.decision == nil || !r.replanned(attributesOf(plan), attributesOf(state)) {
		return ""
	}
	return textOf(attributesOf(config)[previewToken])
}
