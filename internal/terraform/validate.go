package terraform

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// NotEmpty refuses "" where the server would read it as absent and put a default
// in its place.
var NotEmpty = []validator.String{stringvalidator.LengthAtLeast(1)}

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
	validateSecretSpelling(r.Attributes, AttributesOf(req.Config.Raw), path.Empty(), &resp.Diagnostics)
	validateObject(r.Kind, "", document, &d, req.Config.Raw.Type(), &resp.Diagnostics)
	if r.Warn != nil && !resp.Diagnostics.HasError() {
		r.Warn(AttributesOf(req.Config.Raw), &resp.Diagnostics)
	}
}

// validateObject reports the rules that the object of a configuration breaks. The
// object is the whole configuration, or the attribute under. d knows which values
// are not known yet, and which are null.
func validateObject(kind api.Kind, under string, document map[string]any, d *configDocument, t tftypes.Type, diags *diag.Diagnostics) {
	for _, at := range d.Nulls {
		at, name := shownPath(at)
		diags.AddAttributeError(at, "Invalid "+name, Sentence(name+": must not be null"))
	}
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
		unsettled := func(p path.Path) bool { return related(p, at) }
		if ok && (slices.ContainsFunc(d.Unknown, unsettled) || slices.ContainsFunc(d.Nulls, unsettled) || dependsOnUnknown(kind, base, at, d.Unknown)) {
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

// companions are attributes of a kind of which one may, or must, be there
// depending on the others.
var companions = map[api.Kind][]string{
	api.KindClusterSet:      {"selector", "clusters"},
	api.KindMetricsProvider: {"type", "prometheus", "kafka", "influx", "static", "http_json"},
	api.KindPlacement:       {"strategy", "metrics", "prioritizer_policy"},
}

// dependsOnUnknown reports that whether an attribute may be there depends on one
// that is not known yet. base is the attribute that holds the object.
func dependsOnUnknown(kind api.Kind, base, at path.Path, unknown []path.Path) bool {
	if kind == api.KindPropagationPolicy {
		return overflowUnsettled(base, at, unknown)
	}
	if kind == api.KindWorkload {
		return distributionUnsettled(base, at, unknown)
	}
	if kind == api.KindCloud || kind == api.KindOpenStackProject {
		return accessUnsettled(base.AtName("openstack"), at, unknown) || ownerUnsettled(base, at, unknown)
	}
	of := companions[kind]
	among := func(p path.Path) bool {
		return slices.ContainsFunc(of, func(name string) bool { return p.Equal(base.AtName(name)) })
	}
	return among(at) && slices.ContainsFunc(unknown, among)
}

// overflowUnsettled reports that at is the list of overflow affinities of a group,
// and that how replicas are divided, or what the group selects, is not known yet:
// both say whether there may be any.
func overflowUnsettled(base, at path.Path, unknown []path.Path) bool {
	steps := at.Steps()
	if len(steps) == 0 || !steps[len(steps)-1].Equal(path.PathStepAttributeName("overflow_affinities")) {
		return false
	}
	division := base.AtName("placement").AtName("replica_scheduling")
	return slices.ContainsFunc(unknown, func(p path.Path) bool { return related(p, division) || related(p, at.ParentPath()) })
}

// accessUnsettled reports that at is a user or a project of the access to an
// OpenStack, of which one is required, and that the other way to name it is not
// known yet.
func accessUnsettled(access, at path.Path, unknown []path.Path) bool {
	for name, id := range map[string]string{"username": "user_id", "project_name": "project_id"} {
		if at.Equal(access.AtName(name)) && slices.ContainsFunc(unknown, access.AtName(id).Equal) {
			return true
		}
	}
	return false
}

// ownerUnsettled reports that at is the namespace of one of a cloud's metrics, and
// that its owner is not known yet: only a cloud with one may have such metrics.
func ownerUnsettled(base, at path.Path, unknown []path.Path) bool {
	steps := at.Steps()
	return len(steps) > 0 && steps[len(steps)-1].Equal(path.PathStepAttributeName("namespace")) &&
		related(base.AtName("metrics"), at) && slices.ContainsFunc(unknown, base.AtName("namespace").Equal)
}

// distributionUnsettled reports that at is about the distribution of a workload,
// and that what the workload is is not known yet: only some kinds may have one.
func distributionUnsettled(base, at path.Path, unknown []path.Path) bool {
	return related(base.AtName("distribution"), at) && slices.ContainsFunc(unknown, func(p path.Path) bool {
		return p.Equal(base.AtName("api_version")) || p.Equal(base.AtName("kind"))
	})
}

// validateTimeouts refuses time limits that leave no time. Texts that are no
// duration are refused by the attributes themselves.
func validateTimeouts(config tftypes.Value, diags *diag.Diagnostics) {
	limits := AttributesOf(AttributesOf(config)["timeouts"])
	for _, operation := range slices.Sorted(maps.Keys(limits)) {
		text := TextOf(limits[operation])
		if limit, err := time.ParseDuration(text); err == nil && limit <= 0 {
			at := path.Root("timeouts").AtName(operation)
			diags.AddAttributeError(at, "Invalid "+at.String(), Sentence(fmt.Sprintf("%s: %q must be above 0", at, text)))
		}
	}
}
