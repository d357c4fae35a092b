package terraform

import (
	"context"
	"reflect"
	"slices"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// ModifyPlan implements resource.ResourceWithModifyPlan. Its result depends only on the
// configuration, the state, private state and, if there is one, a preview, which never changes:
// Terraform plans a second time during apply, and both plans must agree.
func (r *Resource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		r.planDeletion(AttributesOf(req.State.Raw))
		return
	}
	m := modification{
		plan: AttributesOf(resp.Plan.Raw), config: req.Config.Raw, before: req.State.Raw,
		given: AttributesOf(req.Config.Raw), was: AttributesOf(req.State.Raw),
		replanned: req.Private != nil && readVersion(ctx, req.Private, &resp.Diagnostics).replanned(),
	}
	replace, err := r.modify(ctx, m, &resp.Diagnostics)
	if err != nil {
		diagnose(&resp.Diagnostics, "plan a "+string(r.Kind), resp.Plan.Raw.Type(), err)
		return
	}
	if replace {
		resp.RequiresReplace = append(resp.RequiresReplace, path.Root("namespace"))
	}
	r.planWrite(m.plan, m.was)
	resp.Plan.Raw = tftypes.NewValue(resp.Plan.Raw.Type(), m.plan)
}

// modification is the input of ModifyPlan, and the plan that it modifies.
type modification struct {
	plan           map[string]tftypes.Value
	config, before tftypes.Value
	// given and was are the attributes of the configuration and the state; was is nil for a new
	// object.
	given, was map[string]tftypes.Value
	// replanned says that the decision is planned again although its inputs stay.
	replanned bool
}

// modify completes the plan with what depends on other attributes, on the provider or on a preview.
// replace says that the object moves to another namespace.
func (r *Resource) modify(ctx context.Context, m modification, diags *diag.Diagnostics) (replace bool, err error) {
	r.planServerFields(m.config, diags)
	replace = r.planNamespace(m)
	if err := r.planDependentDefaults(ctx, m.plan, m.given); err != nil {
		return replace, err
	}
	replanned := m.replanned || r.replanned(m.plan, m.was)
	r.planDecision(m.plan, m.was, replanned)
	replaced := m.was != nil && r.key(m.was) != r.key(m.plan)
	t := m.config.Type()
	r.planSecrets(m.plan, m.config, m.before, t, replaced, diags)
	r.planPreview(ctx, m.plan, m.given, m.was, t, diags)
	if r.PlanDivision != nil {
		err = r.PlanDivision(m.plan, m.was, replanned)
	}
	return replace, err
}

// planNamespace sets the provider's namespace, and reports whether it differs from the object's
// namespace.
func (r *Resource) planNamespace(m modification) (moves bool) {
	if r.scope() != api.Namespaced || r.session == nil || r.session.pending != nil {
		return false
	}
	given := m.given["namespace"]
	if !given.IsKnown() || !given.IsNull() {
		return false
	}
	m.plan["namespace"] = tftypes.NewValue(tftypes.String, r.session.namespace)
	return m.was != nil && TextOf(m.was["namespace"]) != r.session.namespace
}

// planDependentDefaults sets the API's defaults for the value of the attribute that they depend on.
// If that is unknown, so are they.
func (r *Resource) planDependentDefaults(ctx context.Context, plan, config map[string]tftypes.Value) error {
	dependsOn, names := dependentDefaults(r.Kind)
	if len(names) == 0 {
		return nil
	}
	var values map[string]tftypes.Value
	if on := plan[dependsOn.Name]; on.IsKnown() {
		var err error
		if values, err = r.dependentValues(ctx, dependsOn, TextOf(on), names); err != nil {
			return err
		}
	}
	for _, name := range names {
		if given := config[name]; !given.IsKnown() || !given.IsNull() {
			continue
		}
		if values == nil {
			plan[name] = tftypes.NewValue(plan[name].Type(), tftypes.UnknownValue)
			continue
		}
		plan[name] = values[name].Copy()
	}
	return nil
}

// dependentValues returns the defaults of attributes for a value of the attribute that they depend
// on. Results for existing values are cached.
func (r *Resource) dependentValues(ctx context.Context, on *api.Field, value string, names []string) (map[string]tftypes.Value, error) {
	type forValue struct {
		kind  api.Kind
		value string
	}
	known := value == "" || slices.Contains(on.Enum, value)
	if values, ok := dependentValuesOf.Load(forValue{r.Kind, value}); ok {
		return values.(map[string]tftypes.Value), nil //nolint:forcetypeassert // nothing else is stored
	}
	object, err := Unflatten(r.Kind, map[string]any{on.Name: value})
	if err != nil {
		return nil, err
	}
	document, err := Flatten(object)
	if err != nil {
		return nil, err
	}
	values := make(map[string]tftypes.Value, len(names))
	for _, name := range names {
		t := r.Attributes[name].GetType().TerraformType(ctx)
		if values[name], err = stateValue(ctx, r.Attributes[name], t, document[name], tftypes.NewValue(t, nil)); err != nil {
			return nil, err
		}
	}
	if known {
		dependentValuesOf.Store(forValue{r.Kind, value}, values)
	}
	return values, nil
}

var dependentValuesOf sync.Map // kind and value → map[string]tftypes.Value

// planDecision keeps the decision of the state in the plan unless one of its inputs changes, so
// that a change of a label or timeout does not make everything that uses the decision unknown. Null
// counts as a decision only if objects without a decision have null. A decision for which an update
// waited in vain, or which other writes of this run move, is planned again.
func (r *Resource) planDecision(plan, before map[string]tftypes.Value, changed bool) {
	if r.Decision == nil || before == nil {
		return
	}
	info, _ := api.LookupKind(r.Kind)
	for name, none := range r.Decision(info.New()) {
		switch {
		case changed:
			plan[name] = tftypes.NewValue(plan[name].Type(), tftypes.UnknownValue)
		case none == nil || !before[name].IsNull():
			plan[name] = before[name]
		}
	}
}

// replanned reports whether an input of the decision has changed or is new. What is equal on the
// server has not changed: an empty list and none, a default and the attribute left out, another
// spelling of an amount.
func (r *Resource) replanned(plan, before map[string]tftypes.Value) bool {
	if before == nil {
		return true
	}
	var changed []string
	for _, name := range r.Inputs {
		if !same(plan[name], before[name]) {
			changed = append(changed, name)
		}
	}
	return len(changed) > 0 && !r.sameOnServer(changed, plan, before)
}

// sameOnServer reports whether the server has the same values for attributes of a plan and a state.
func (r *Resource) sameOnServer(names []string, plan, before map[string]tftypes.Value) bool {
	next, ok := r.stored(names, plan)
	if !ok {
		return false
	}
	was, ok := r.stored(names, before)
	return ok && !slices.ContainsFunc(names, func(name string) bool { return !reflect.DeepEqual(next[name], was[name]) })
}

// stored returns the document that the server makes of the attributes of a plan or state. ok is
// false if that depends on values that are unknown, or if the server would refuse them.
func (r *Resource) stored(names []string, attributes map[string]tftypes.Value) (document map[string]any, ok bool) {
	var d configDocument
	flat, err := r.readAttributes(&d, attributes)
	unknown := func(at path.Path) bool {
		return slices.ContainsFunc(names, func(name string) bool { return Related(at, path.Root(name)) })
	}
	if err != nil || slices.ContainsFunc(d.Unknown, unknown) {
		return nil, false
	}
	foldSecrets(r.secrets(), flat, true)
	object, err := Unflatten(r.Kind, flat)
	if err != nil {
		return nil, false
	}
	document, err = Flatten(object)
	return document, err == nil
}
