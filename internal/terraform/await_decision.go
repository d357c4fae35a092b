package terraform

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// Values of wait.for.
const (
	waitDecided      = "decided"
	waitDistributed  = "distributed"
	waitNone         = "none"
	onTimeoutWarning = "warning"
	onTimeoutError   = "error"
)

// unawaited reports whether a plan has wait.for = "none".
func unawaited(plan tftypes.Value) bool { return awaited(plan) == waitNone }

// AwaitsDistribution reports whether a plan has wait.for = "distributed".
func AwaitsDistribution(plan tftypes.Value) bool { return awaited(plan) == waitDistributed }

// awaited returns wait.for of a plan, or "".
func awaited(plan tftypes.Value) string {
	return TextOf(AttributesOf(AttributesOf(plan)["wait"])["for"])
}

// Choice is what the server chooses for objects of a kind.
type Choice struct {
	// Chosen names what is chosen, in the singular: "cluster".
	Chosen string
	// State returns the state of the choice for an object. ok is false if it needs none.
	State func(api.Object) (state ChoiceState, ok bool)
	// Unfinished reports whether a plan must keep waiting for an object after the choice; nil =
	// never.
	Unfinished func(plan tftypes.Value, object api.Object) bool
	// Hopeless says why waiting for an object will never succeed, or returns "".
	Hopeless func(ctx context.Context, c *client.Client, plan tftypes.Value, object api.Object) string
	// Moved says that the choice may be affected by other writes of the same apply, so it is read
	// again after them.
	Moved bool
}

// ChoiceState is what a wait checks: the generation of the object that the choice was made for, its
// conditions, and the type of the condition that says whether something was found.
type ChoiceState struct {
	Observed   int64
	Conditions []api.Condition
	Found      string
}

// state returns the state of the choice for an object. ok is false if there is none.
func (c *Choice) state(object api.Object) (state ChoiceState, ok bool) {
	if c == nil {
		return ChoiceState{}, false
	}
	return c.State(object)
}

// unfinished reports whether a plan must keep waiting for an object after the choice.
func (c *Choice) unfinished(plan tftypes.Value, object api.Object) bool {
	return c.Unfinished != nil && c.Unfinished(plan, object)
}

// hopeless says why waiting for an object will never succeed.
func (c *Choice) hopeless(ctx context.Context, s *Session, plan tftypes.Value, object api.Object) string {
	if !c.unfinished(plan, object) || c.Hopeless == nil {
		return ""
	}
	return c.Hopeless(ctx, s.client, plan, object)
}

// is returns the condition of a type if it has the given status, otherwise nil.
func (d ChoiceState) is(conditionType string, status api.ConditionStatus) *api.Condition {
	c := api.FindCondition(d.Conditions, conditionType)
	if c == nil || c.Status != status {
		return nil
	}
	return c
}

// await waits until the status is current and, if the plan requires it, until the object is
// finished. If the choice finds nothing, it returns at once with the explanation.
func (r *Resource) await(ctx context.Context, w DecisionWait) (api.Object, diag.Diagnostics) {
	var diags diag.Diagnostics
	s, object := r.session, w.Object
	state, ok := r.Choice.state(object)
	if !ok || unawaited(w.Plan) {
		return nil, diags
	}
	key := api.KeyOf(object)
	goal := object.Meta().Generation
	for state.Observed < goal || r.Choice.unfinished(w.Plan, object) && r.Choice.hopeless(ctx, s, w.Plan, object) == "" {
		wait := longestWait
		if deadline, ok := ctx.Deadline(); ok {
			wait = min(wait, max(time.Until(deadline), 0))
		}
		newer, err := s.client.GetNewer(ctx, key, object.Meta().ResourceVersion, wait)
		switch {
		case err != nil && state.Observed < goal:
			report(&diags, w, "No decision for "+key.String()+" yet", unfinished(ctx, s, err, state, w, "No decision", "to decide; the next refresh shows the decision"))
			return nil, diags
		case err != nil:
			state.Found = api.ConditionDistributed
			report(&diags, w, "No complete split yet for "+key.String(), unfinished(ctx, s, err, state, w, "No split", "to replace pods; the data source scheduler_workload shows its progress"))
			return object, diags
		}
		object = newer
		if state, ok = r.Choice.state(object); !ok {
			return nil, diags
		}
	}
	if r.Choice.Moved && s.changes.settled(ctx, w.mark) {
		if newer, err := s.client.Get(ctx, key); err == nil {
			object = newer
			state, _ = r.Choice.state(object)
		}
	}
	if text := r.Choice.hopeless(ctx, s, w.Plan, object); text != "" {
		report(&diags, w, "No cluster splits the pods of "+key.String(), text)
		return object, diags
	}
	r.reportConditions(ctx, w, key, state, &diags)
	return object, diags
}

// unfinished describes a wait that ended early: what is missing, and what the server continues to
// do.
func unfinished(ctx context.Context, s *Session, err error, last ChoiceState, w DecisionWait, missing, goesOn string) string {
	var lost *client.LostError
	switch {
	case errors.As(err, &lost) && s.told.Load():
		return "" // the cause has been reported
	case !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return Sentence(err.Error())
	}
	operation := "update"
	if w.Created {
		operation = "create"
	}
	text := fmt.Sprintf("%s after %s (timeouts.%s).", missing, w.Limit, operation)
	if c := api.FindCondition(last.Conditions, last.Found); c != nil {
		text += fmt.Sprintf(" Last condition: %s is %s, %s: %s", c.Type, c.Status, c.Reason, Sentence(c.Message))
	}
	return text + " The server continues " + goesOn + "."
}

// reportConditions reports problems with a decision that was made.
func (r *Resource) reportConditions(ctx context.Context, w DecisionWait, key api.Key, state ChoiceState, diags *diag.Diagnostics) {
	if c := state.is(state.Found, api.ConditionFalse); c != nil {
		report(diags, w, unscheduled(c.Reason)+key.String(), r.explained(ctx, key, c.Message))
		return
	}
	if c := state.is(api.ConditionMisconfigured, api.ConditionTrue); c != nil {
		diags.AddWarning("Something that "+key.String()+" refers to does not exist", Sentence(c.Message))
	}
	if c := state.is(api.ConditionSatisfied, api.ConditionFalse); c != nil {
		diags.AddWarning("Too few clusters for "+key.String(), r.explained(ctx, key, c.Message))
	}
	if c := state.is(api.ConditionFailoverHeld, api.ConditionTrue); c != nil {
		diags.AddWarning("Failover is held back for "+key.String(), Sentence(c.Message))
	}
}

// unscheduled returns the summary for a decision that found nothing.
func unscheduled(reason string) string {
	switch reason {
	case api.ReasonNoPolicyMatched:
		return "No propagation policy for "
	case api.ReasonUnschedulable:
		return "No room for "
	case api.ReasonNoSuitableCloud:
		return "No cloud for "
	case api.ReasonNoSuitableProject:
		return "No project for "
	}
	return "No cluster for "
}

// explained returns the explanation of a decision, including the nearest miss, or message if there
// is no explanation.
func (r *Resource) explained(ctx context.Context, key api.Key, message string) string {
	explanation, err := r.session.client.Explain(ctx, key)
	if err != nil || explanation.Summary == "" {
		return Sentence(message)
	}
	text := Sentence(explanation.Summary)
	if strings.Contains(text, "0 of 0 clusters") {
		text += " There were no clusters when this was decided. If the same configuration creates them, refer to them or list them in depends_on, so that the decision includes them."
	}
	if miss := explanation.NearestMiss; miss != nil {
		text += " " + nearestMiss(miss, r.Choice.Chosen)
	}
	return text
}

// nearestMiss says which constraint to drop to admit the most. Example: The nearest miss: without
// "tier is gold" 12 more clusters would fit.
func nearestMiss(miss *api.NearestMiss, chosen string) string {
	without := "the " + miss.Filter + " filter"
	if miss.On != "" {
		without = strconv.Quote(miss.On)
	}
	more, were := "1 more "+chosen, "it were"
	if miss.Count != 1 {
		more, were = strconv.Itoa(miss.Count)+" more "+chosen+"s", "they were"
	}
	if miss.Filter == api.StateFilter && miss.On == "" {
		return "The nearest miss: " + more + " would fit if " + were + " online."
	}
	return "The nearest miss: without " + without + " " + more + " would fit."
}

// report adds a warning or an error, depending on the wait attribute. By default, a create warns,
// because an error would taint the resource and the next apply would replace an object that only
// needs more time; an update fails, unless it is only for what other writes of the run move.
func report(diags *diag.Diagnostics, w DecisionWait, summary, detail string) {
	severity := TextOf(AttributesOf(AttributesOf(w.Plan)["wait"])["on_timeout"])
	if severity == onTimeoutError || severity == "" && !w.Created && !w.unasked {
		diags.AddError(summary, detail)
		return
	}
	diags.AddWarning(summary, detail)
}
