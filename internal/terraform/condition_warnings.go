package terraform

import (
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// conditionWarnings are the conditions that cause a warning if they are false after a create or
// update. Conditions of a decision are reported by the wait for it.
type conditionWarning struct {
	conditionType, summary, remedy string
}

var conditionWarnings = []conditionWarning{
	{api.ConditionReferencesResolved, "%s refers to a missing object", " If this configuration creates it, refer to the name of its resource, so that Terraform creates it first."},
	{api.ConditionMetricsAvailable, "A metric of %s has no value", ""},
	{api.ConditionCollected, "No current capacity of %s", ""},
	{api.ConditionObserved, "No full access to %s", ""},
}

// warnOfConditions warns about an object that was just written: it is stored, but something that it
// refers to is missing or does not respond. What several objects wait for is explained once.
func (r *Resource) warnOfConditions(diags *diag.Diagnostics, object api.Object) {
	list := api.ConditionsOf(object)
	if list == nil {
		return
	}
	warnings := conditionWarnings
	if r.Unavailable != "" {
		warnings = append(slices.Clone(warnings), conditionWarning{conditionType: api.ConditionAvailable, summary: r.Unavailable})
	}
	for _, w := range warnings {
		c := api.FindCondition(*list, w.conditionType)
		if c == nil || c.Status != api.ConditionFalse || c.Reason == api.ReasonPending || r.session.warnedBefore(object, c) {
			continue
		}
		text := c.Message
		if c.Detail != "" {
			text += ": " + c.Detail
		}
		diags.AddWarning(fmt.Sprintf(w.summary, api.KeyOf(object)), Sentence(text)+w.remedy)
	}
}
