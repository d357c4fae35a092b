package terraform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// PreviewToken is the attribute for the token of a preview. It is write-only, because it changes
// with every plan and would always cause a diff.
const PreviewToken = "preview_token_wo"

// PreviewTokenAttribute returns the attribute for the token of a preview from dataSource, with
// which the attribute decision is known in a plan.
func PreviewTokenAttribute(dataSource, decision string) schema.Attribute {
	return schema.StringAttribute{
		MarkdownDescription: fmt.Sprintf("The `token` of a `%s` with the same attributes. `%s` is then known in the plan, and the apply commits exactly that decision or fails because the fleet has changed since. If the plan changes nothing that the decision depends on, the token is ignored.", dataSource, decision),
		Optional:            true,
		WriteOnly:           true,
		Validators:          refusesEmpty,
	}
}

// planPreview sets the decision from a preview. The preview never changes, so the plan that
// Terraform makes during apply is the same.
func (r *Resource) planPreview(ctx context.Context, plan, config, before map[string]tftypes.Value, t tftypes.Type, diags *diag.Diagnostics) {
	token := TextOf(config[PreviewToken])
	if r.Previewed == nil || token == "" || r.session == nil || r.session.pending != nil || !r.replanned(plan, before) {
		return
	}
	at := path.Root(PreviewToken)
	want := r.key(plan)
	preview, err := r.session.client.GetPreview(ctx, token)
	switch {
	case client.IsNotFound(err):
		diags.AddAttributeError(at, "The preview is gone", fmt.Sprintf("The server has no preview with this token. Previews expire after %s. Plan again.", api.PreviewLifetime))
		return
	case err != nil:
		r.failed(diags, "read the preview of "+want.String(), tftypes.DynamicPseudoType, err)
		return
	}
	of := api.Key{Kind: preview.Kind, Namespace: preview.Namespace, Name: preview.Name}
	if identified := plan["namespace"].IsKnown() && plan["name"].IsKnown(); of != want && (identified || of.Kind != want.Kind) {
		diags.AddAttributeError(at, "The preview is of another object", fmt.Sprintf("The token belongs to a preview of %s, but this is %s. Use the same name and namespace in both.", of, want))
		return
	}
	if r.differsFromPreview(preview, tftypes.NewValue(t, plan), tftypes.NewValue(t, config), diags) {
		return
	}
	for name, document := range r.Previewed(preview) {
		value, err := Value(plan[name].Type(), document)
		if err != nil {
			diagnose(diags, "read the preview of "+want.String(), tftypes.DynamicPseudoType, err)
			return
		}
		plan[name] = value
	}
}

// differsFromPreview reports whether a preview was made for something else than what is planned,
// and which attributes differ, because planning again would not help. Unknown values are compared
// once they are known.
func (r *Resource) differsFromPreview(preview *api.Preview, plan, config tftypes.Value, diags *diag.Diagnostics) bool {
	if len(preview.Spec) == 0 {
		return false
	}
	var d configDocument
	document, err := r.written(&d, config, plan)
	if err != nil {
		return false
	}
	planned, err := Unflatten(r.Kind, document)
	if err != nil {
		return false // reported by ValidateConfig
	}
	info, _ := api.LookupKind(r.Kind)
	previewed := info.New()
	if err := json.Unmarshal(preview.Spec, previewed.SpecPart()); err != nil {
		return false // a newer server compares by itself
	}
	previewed.SetDefaults()
	is, errIs := JSONDocument(planned.SpecPart())
	was, errWas := JSONDocument(previewed.SpecPart())
	if errIs != nil || errWas != nil {
		return false
	}
	fields := differing("spec", is, was)
	if slices.Contains(r.Inputs, "labels") && !maps.Equal(planned.Meta().Labels, preview.Labels) {
		fields = append(fields, "metadata.labels")
	}
	var first path.Path
	var differences []string
	for _, field := range fields {
		at, ok := attributePath(plan.Type(), field)
		if !ok || slices.ContainsFunc(d.Unknown, func(p path.Path) bool { return Related(p, at) }) {
			continue
		}
		at, name := shownPath(at)
		if len(differences) == 0 {
			first = at
		}
		if !slices.Contains(differences, name) {
			differences = append(differences, name)
		}
	}
	if len(differences) == 0 {
		return false
	}
	diags.AddAttributeError(first, "The preview is of another "+string(r.Kind),
		fmt.Sprintf("%s: differs from the preview of %s. Use the same attributes in both, for example from one locals block; planning again does not help.", strings.Join(differences, ", "), r.key(AttributesOf(plan))))
	return true
}

// differing returns the fields in which two documents differ.
func differing(at string, a, b any) []string {
	x, isObject := a.(map[string]any)
	y, both := b.(map[string]any)
	if isObject && both {
		names := maps.Clone(x)
		maps.Copy(names, y)
		var fields []string
		for _, name := range slices.Sorted(maps.Keys(names)) {
			fields = append(fields, differing(at+"["+strconv.Quote(name)+"]", x[name], y[name])...)
		}
		return fields
	}
	list, isList := a.([]any)
	other, both := b.([]any)
	if isList && both && len(list) == len(other) {
		var fields []string
		for i := range list {
			fields = append(fields, differing(fmt.Sprintf("%s[%d]", at, i), list[i], other[i])...)
		}
		return fields
	}
	if reflect.DeepEqual(a, b) {
		return nil
	}
	return []string{at}
}

// previewRefused reports whether a write failed because its preview is no longer valid.
func previewRefused(err error, opts client.PutOptions) bool {
	return opts.PreviewToken != "" && client.ProblemOf(err).RefusesPreview()
}

// reportRefusedPreview reports that error.
func reportRefusedPreview(diags *diag.Diagnostics, key api.Key, err error) {
	summary, detail := "The preview does not hold for "+key.String(), err.Error()
	var problem *api.Problem
	if errors.As(err, &problem) {
		detail = problem.Detail
	}
	if client.ProblemOf(err) == api.ProblemFleetChanged {
		// The server's message starts in the same way; do not repeat it.
		const moved = "the fleet changed since the preview: plan again"
		summary, detail = strings.TrimSuffix(Sentence(moved), "."), strings.TrimPrefix(strings.TrimPrefix(detail, moved), ": ")
	}
	text := "Nothing was changed for " + key.String() + "; a new plan shows the present decision."
	if detail != "" {
		text = Sentence(detail) + " " + text
	}
	diags.AddAttributeError(path.Root(PreviewToken), summary, text)
}

// previewTokenOf returns the token to send with a write. If the decision is not planned again, the
// token is not sent: the decision may have moved, and a change of a label must not fail because of
// that.
func (r *Resource) previewTokenOf(config, plan, state tftypes.Value) string {
	if r.Decision == nil || !r.replanned(AttributesOf(plan), AttributesOf(state)) {
		return ""
	}
	return TextOf(AttributesOf(config)[PreviewToken])
}
