package terraform

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// ValidateConfig implements resource.ResourceWithValidateConfig with the rules
// of the server itself. What depends on values that are not known yet is checked
// when they are.
func (r *Resource) ValidateConfig(_ context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var d configDocument
	document, err := r.document(&d, req.Config.Raw)
	if err != nil {
		diagnose(&resp.Diagnostics, "read the configuration of a "+string(r.Kind), req.Config.Raw.Type(), err)
		return
	}
	validateTimeouts(req.Config.Raw, &resp.Diagnostics)
	validateSecretSpelling(r.secrets(), AttributesOf(req.Config.Raw), &resp.Diagnostics)
	validateObject(ObjectRules{r.Kind, r.Unsettled}, "", document, &d, req.Config.Raw.Type(), &resp.Diagnostics)
	if r.Warn != nil && !resp.Diagnostics.HasError() {
		r.Warn(AttributesOf(req.Config.Raw), &resp.Diagnostics)
	}
}

// ObjectRules are those that the object of a configuration keeps.
type ObjectRules struct {
	Kind api.Kind
	// Unsettled reports attributes that cannot be judged yet; nil = none.
	Unsettled Unsettled
}

// validateObject reports the rules that the object of a configuration breaks. The
// object is the whole configuration, or the attribute under. d knows which values
// are not known yet, and which are null.
func validateObject(rules ObjectRules, under string, document map[string]any, d *configDocument, t tftypes.Type, diags *diag.Diagnostics) {
	for _, at := range d.Nulls {
		at, name := shownPath(at)
		diags.AddAttributeError(at, "Invalid "+name, Sentence(name+": must not be null"))
	}
	kind := rules.Kind
	object, err := Unflatten(kind, document)
	var fields api.FieldErrors
	switch {
	case errors.As(err, &fields):
	case err != nil:
		diagnose(diags, "read the configuration of a "+string(kind), t, err)
		return
	default:
		fields = object.Validate()
	}
	if d.spell != nil {
		fields = d.spell(fields)
	}
	base := path.Empty()
	if under != "" {
		base = path.Root(under)
	}
	for _, field := range FieldsUnder(under, fields) {
		at, ok := attributePath(t, field.Field)
		unsettled := func(p path.Path) bool { return Related(p, at) }
		if ok && (slices.ContainsFunc(d.Unknown, unsettled) || slices.ContainsFunc(d.Nulls, unsettled) || rules.Unsettled != nil && rules.Unsettled(base, at, d.Unknown)) {
			continue
		}
		fieldDiagnostic(diags, "Invalid "+string(kind), t, field)
	}
}

// FieldsUnder are the errors of an object as those of the attribute that holds it.
func FieldsUnder(attribute string, fields api.FieldErrors) api.FieldErrors {
	if attribute == "" {
		return fields
	}
	moved := slices.Clone(fields)
	for i := range moved {
		_, rest, ok := strings.Cut(moved[i].Field, ".")
		moved[i].Field = attribute
		if ok { // behind "spec" or "metadata"
			moved[i].Field += "." + rest
		}
	}
	return moved
}

// Unsettled reports that the attribute at cannot be judged yet, because of what is not
// known: whether it may be there, or must, depends on that. base is the attribute that
// holds the object.
type Unsettled func(base, at path.Path, unknown []path.Path) bool

// Companions are attributes of which one may, or must, be there depending on the others.
func Companions(names ...string) Unsettled {
	return func(base, at path.Path, unknown []path.Path) bool {
		among := func(p path.Path) bool {
			return slices.ContainsFunc(names, func(name string) bool { return p.Equal(base.AtName(name)) })
		}
		return among(at) && slices.ContainsFunc(unknown, among)
	}
}

// Choices are the companions of a kind that follow from its fields: one that chooses,
// and the blocks that are named like its values or have a default under one of them.
func Choices(kind api.Kind) Unsettled {
	fields := api.Fields(specOf(kind))
	for i := range fields {
		choice := &fields[i]
		names := []string{choice.Name}
		for j := range fields {
			f := &fields[j]
			s, _ := shapeOf(f.Type)
			chosen := slices.Contains(choice.Enum, f.Name) || f.DefaultBy != nil && f.DefaultBy.On == choice.Name
			if s == shapeObject && chosen {
				names = append(names, f.Name)
			}
		}
		if len(names) > 1 {
			return Companions(names...)
		}
	}
	return nil
}

// validateTimeouts refuses time limits that leave no time. Texts that are no
// duration are refused by the attributes themselves.
func validateTimeouts(config tftypes.Value, diags *diag.Diagnostics) {
	limits := AttributesOf(AttributesOf(config)["timeouts"])
	for _, operation := range slices.Sorted(maps.Keys(limits)) {
		text := TextOf(limits[operation])
		if limit, err := time.ParseDuration(text); err == nil && limit <= 0 {
			at := path.Root("timeouts").AtName(operation)
			diags.AddAttributeError(at, "Invalid "+at.String(), Sentence(fmt.Sprintf("%s: %q must be longer than 0s", at, text)))
		}
	}
}
