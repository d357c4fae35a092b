package terraform

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// ModifyPlan implements resource.ResourceWithModifyPlan. What it fills in follows
// from the configuration, the state and, where there is one, a preview, which
// never changes: Terraform plans a second time while it applies, and both plans
// must agree.
func (r *Resource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return
	}
	plan, config, before := AttributesOf(resp.Plan.Raw), AttributesOf(req.Config.Raw), AttributesOf(req.State.Raw)
	r.planNamespace(plan, config, before, resp)
	if err := r.planDependentDefaults(ctx, plan, config); err != nil {
		diagnose(&resp.Diagnostics, "plan a "+string(r.Kind), resp.Plan.Raw.Type(), err)
		return
	}
	replanned := r.replanned(plan, before) || req.Private != nil && readVersion(ctx, req.Private, &resp.Diagnostics).unfinished()
	r.planDecision(plan, before, replanned)
	replaced := before != nil && r.key(before) != r.key(plan)
	r.planSecrets(plan, req.Config.Raw, req.State.Raw, resp.Plan.Raw.Type(), replaced, &resp.Diagnostics)
	r.planPreview(ctx, plan, config, before, resp.Plan.Raw.Type(), &resp.Diagnostics)
	if r.PlanDivision != nil {
		if err := r.PlanDivision(plan, before, replanned); err != nil {
			diagnose(&resp.Diagnostics, "plan a "+string(r.Kind), resp.Plan.Raw.Type(), err)
			return
		}
	}
	resp.Plan.Raw = tftypes.NewValue(resp.Plan.Raw.Type(), plan)
}

// planNamespace fills in the provider's namespace.
func (r *Resource) planNamespace(plan, config, before map[string]tftypes.Value, resp *resource.ModifyPlanResponse) {
	if r.scope() != api.Namespaced || r.session == nil || r.session.pending != nil {
		return
	}
	given := config["namespace"]
	if !given.IsKnown() || !given.IsNull() {
		return
	}
	plan["namespace"] = tftypes.NewValue(tftypes.String, r.session.namespace)
	if before != nil && TextOf(before["namespace"]) != r.session.namespace {
		resp.RequiresReplace = append(resp.RequiresReplace, path.Root("namespace"))
	}
}

// DependentDefaults are attributes whose default follows from another attribute.
type DependentDefaults struct {
	On    string
	Names []string
}

// planDependentDefaults fills in the API's own defaults for the value of the
// attribute they follow from; while that is unknown, so are they.
func (r *Resource) planDependentDefaults(ctx context.Context, plan, config map[string]tftypes.Value) error {
	if len(r.Dependent.Names) == 0 {
		return nil
	}
	var document map[string]any
	if on := plan[r.Dependent.On]; on.IsKnown() {
		object, err := Unflatten(r.Kind, map[string]any{r.Dependent.On: TextOf(on)})
		if err != nil {
			return err
		}
		if document, err = Flatten(object); err != nil {
			return err
		}
	}
	for _, name := range r.Dependent.Names {
		if given := config[name]; !given.IsKnown() || !given.IsNull() {
			continue
		}
		t := plan[name].Type()
		if document == nil {
			plan[name] = tftypes.NewValue(t, tftypes.UnknownValue)
			continue
		}
		value, err := stateValue(ctx, r.Attributes[name], t, document[name], tftypes.NewValue(t, nil))
		if err != nil {
			return err
		}
		plan[name] = value
	}
	return nil
}

// planDecision keeps the decision of the state in the plan unless one of the
// attributes it follows from changes. A label or a time limit may then be edited
// without everything that uses the decision becoming unknown. Null is a decision
// only where an object without one shows null. A decision that an update waited for
// in vain is replanned as well.
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

// replanned reports that something the decision follows from is not as it was, or
// was not there.
func (r *Resource) replanned(plan, before map[string]tftypes.Value) bool {
	if before == nil {
		return true
	}
	return slices.ContainsFunc(r.Inputs, func(name string) bool { return !plan[name].Equal(before[name]) })
}
