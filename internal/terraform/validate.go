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

// ValidateConfig implements resource.ResourceWithValidateConfig, using the server's rules. What
// depends on unknown values is validated once they are known.
func (r *Resource) ValidateConfig(_ context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var d configDocument
	document, err := r.document(&d, req.Config.Raw)
	if err != nil {
		diagnose(&resp.Diagnostics, "read the configuration of a "+string(r.Kind), req.Config.Raw.Type(), err)
		return
	}
	validateTimeouts(req.Config.Raw, &resp.Diagnostics)
	validateObject(ObjectRules{r.Kind, r.Unsettled}, "", document, &d, req.Config.Raw.Type(), &resp.Diagnostics)
	if r.Warn != nil && !resp.Diagnostics.HasError() {
		r.Warn(AttributesOf(req.Config.Raw), &resp.Diagnostics)
	}
}

// ObjectRules are the validation rules for the object of a configuration.
type ObjectRules struct {
	Kind api.Kind
	// Unsettled reports attributes that cannot be validated yet; nil = none.
	Unsettled Unsettled
}

// validateObject reports validation errors of the object in a configuration, which is the whole
// configuration or the attribute under. d holds the unknown and null values.
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

// FieldsUnder prefixes the fields of errors with the attribute that holds the object.
func FieldsUnder(attribute string, fields api.FieldErrors) api.FieldErrors {
	if attribute == "" {
		return fields
	}
	moved := slices.Clone(fields)
	for i := range moved {
		_, rest, ok := strings.Cut(moved[i].Field, ".")
		moved[i].Field = attribute
		if ok { // below "spec" or "metadata"
			moved[i].Field += "." + rest
		}
	}
	return moved
}

// Unsettled reports whether the attribute at cannot be validated yet because of the unknown values:
// they determine whether it is allowed or required. base is the attribute that holds the object.
type Unsettled func(base, at path.Path, unknown []path.Path) bool

// Companions are attributes that are allowed or required depending on each other.
func Companions(names ...string) Unsettled {
	return func(base, at path.Path, unknown []path.Path) bool {
		among := func(p path.Path) bool {
			return slices.ContainsFunc(names, func(name string) bool { return p.Equal(base.AtName(name)) })
		}
		return among(at) && slices.ContainsFunc(unknown, among)
	}
}

// Choices derives the companions of a kind from its fields: an enum, and the blocks that are named
// like its values or have a default that depends on it.
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

// validateTimeouts rejects timeouts that are not positive. The attributes themselves reject text
// that is not a duration.
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
