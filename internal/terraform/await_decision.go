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

// The values of the wait attribute.
const (
	waitDecided      = "decided"
	waitDistributed  = "distributed"
	waitNone         = "none"
	onTimeoutWarning = "warning"
	onTimeoutError   = "error"
)

// DecisionUnawaited reports a plan with wait.for = "none".
func DecisionUnawaited(plan tftypes.Value) bool { return awaited(plan) == waitNone }

// awaited is wait.for of a plan, "" where it does not say.
func awaited(plan tftypes.Value) string {
	return TextOf(AttributesOf(AttributesOf(plan)["wait"])["for"])
}

// unsplit reports a workload that is to be waited for until its pods are split, and
// is not yet. Where spot nodes are missing, or clusters, waiting does not help.
func unsplit(plan tftypes.Value, object api.Object) bool {
	workload, ok := object.(*api.Workload)
	if !ok || awaited(plan) != waitDistributed || workload.Spec.Distribution == nil {
		return false
	}
	scheduled := api.FindCondition(workload.Status.Conditions, api.ConditionScheduled)
	c := api.FindCondition(workload.Status.Conditions, api.ConditionDistributed)
	return (scheduled == nil || scheduled.Status != api.ConditionFalse) &&
		(c == nil || c.Status != api.ConditionTrue && c.Reason != api.ReasonFallenBack)
}

// unsplittable says why the pods of a workload that is waited for are never split,
// however long one waits: one of its clusters does not have spot enabled; "" = nothing
// is in the way.
func unsplittable(ctx context.Context, s *Session, plan tftypes.Value, object api.Object) string {
	workload, ok := object.(*api.Workload)
	if !ok || !unsplit(plan, object) || workload.Status.ObservedGeneration < workload.Metadata.Generation {
		return ""
	}
	c := api.FindCondition(workload.Status.Conditions, api.ConditionDistributed)
	if c == nil || c.Reason != api.ReasonNotSplit {
		return ""
	}
	for _, chosen := range workload.Status.Clusters {
		if chosen.Replicas == 0 && workload.Spec.Replicated() {
			continue
		}
		object, err := s.client.Get(ctx, api.Key{Kind: api.KindCluster, Name: chosen.Name})
		if cluster, ok := object.(*api.Cluster); ok && err == nil && !cluster.SpotEnabled() {
			return fmt.Sprintf("Cluster %q does not have spot enabled: give it spot = { enabled = true }. Otherwise wait for \"decided\" alone.", chosen.Name)
		}
	}
	return ""
}

// decisionState is what a wait looks at: the generation of the object that its
// decision answers, what the server says of it, and the type of the condition that
// says whether something was found.
type decisionState struct {
	observed   int64
	conditions []api.Condition
	found      string
}

// decisionOf is the state of an object's decision; ok is false for kinds that have
// none.
func decisionOf(object api.Object) (state decisionState, ok bool) {
	switch o := object.(type) {
	case *api.Placement:
		return decisionState{o.Status.ObservedGeneration, o.Status.Conditions, api.ConditionScheduled}, true
	case *api.Workload:
		return decisionState{o.Status.ObservedGeneration, o.Status.Conditions, api.ConditionScheduled}, true
	case *api.MagnumCluster:
		return decisionState{o.Status.ObservedGeneration, o.Status.Conditions, api.ConditionBound}, true
	case *api.Cluster:
		state = decisionState{o.Status.ObservedGeneration, o.Status.Conditions, api.ConditionBound}
		if o.Status.Cloud == "" && api.FindCondition(o.Status.Conditions, api.ConditionBound) == nil {
			state.observed = 0 // its health was observed, and no cloud looked for yet
		}
		return state, true
	}
	return decisionState{}, false
}

// is returns the condition of a type where it has this status, else nil.
func (d decisionState) is(conditionType string, status api.ConditionStatus) *api.Condition {
	c := api.FindCondition(d.conditions, conditionType)
	if c == nil || c.Status != status {
		return nil
	}
	return c
}

// AwaitDecision waits until the object's status answers what was written, and on
// request until the pods of a workload are split. A decision that finds nothing ends
// the wait at once, with the sentence that explains it.
func AwaitDecision(ctx context.Context, s *Session, w DecisionWait) (api.Object, diag.Diagnostics) {
	var diags diag.Diagnostics
	if DecisionUnawaited(w.Plan) {
		return nil, diags
	}
	object := w.Object
	state, ok := decisionOf(object)
	if !ok {
		return nil, diags
	}
	key := api.KeyOf(object)
	goal := object.Meta().Generation
	for state.observed < goal || unsplit(w.Plan, object) && unsplittable(ctx, s, w.Plan, object) == "" {
		wait := longestWait
		if deadline, ok := ctx.Deadline(); ok {
			wait = min(wait, max(time.Until(deadline), 0))
		}
		newer, err := s.client.GetNewer(ctx, key, object.Meta().ResourceVersion, wait)
		switch {
		case err != nil && state.observed < goal:
			report(&diags, w, "No decision for "+key.String()+" yet", unfinished(ctx, s, err, state, w, "No decision", "deciding; the next refresh shows the decision"))
			return nil, diags
		case err != nil:
			state.found = api.ConditionDistributed
			report(&diags, w, "The pods are not split yet of "+key.String(), unfinished(ctx, s, err, state, w, "No split", "replacing pods; the data source scheduler_workload shows how far it is"))
			return object, diags
		}
		object = newer
		if state, ok = decisionOf(object); !ok {
			return nil, diags
		}
	}
	if !moves(key.Kind) && s.changes.settled(ctx, w.mark) {
		if newer, err := s.client.Get(ctx, key); err == nil {
			object = newer
			state, _ = decisionOf(object)
		}
	}
	if text := unsplittable(ctx, s, w.Plan, object); text != "" {
		report(&diags, w, "Nobody splits the pods of "+key.String(), text)
		return object, diags
	}
	reportConditions(ctx, s, w, key, state, &diags)
	return object, diags
}

// unfinished words a wait that ended without what is missing, and what the server
// goes on doing.
func unfinished(ctx context.Context, s *Session, err error, last decisionState, w DecisionWait, missing, goesOn string) string {
	var lost *client.LostError
	switch {
	case errors.As(err, &lost) && s.told.Load():
		return "" // what ended it has been said
	case !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return Sentence(err.Error())
	}
	operation := "update"
	if w.Created {
		operation = "create"
	}
	text := fmt.Sprintf("%s after %s (timeouts.%s).", missing, w.Limit, operation)
	if c := api.FindCondition(last.conditions, last.found); c != nil {
		text += fmt.Sprintf(" Last condition: %s is %s, %s: %s", c.Type, c.Status, c.Reason, Sentence(c.Message))
	}
	return text + " The server goes on " + goesOn + "."
}

// reportConditions says what is wrong with a decision that was made.
func reportConditions(ctx context.Context, s *Session, w DecisionWait, key api.Key, state decisionState, diags *diag.Diagnostics) {
	if c := state.is(state.found, api.ConditionFalse); c != nil {
		report(diags, w, unscheduled(c.Reason)+key.String(), explained(ctx, s, key, c.Message))
		return
	}
	if c := state.is(api.ConditionMisconfigured, api.ConditionTrue); c != nil {
		diags.AddWarning("Something that "+key.String()+" refers to does not exist", Sentence(c.Message))
	}
	if c := state.is(api.ConditionSatisfied, api.ConditionFalse); c != nil {
		diags.AddWarning("Too few clusters for "+key.String(), explained(ctx, s, key, c.Message))
	}
	if c := state.is(api.ConditionFailoverHeld, api.ConditionTrue); c != nil {
		diags.AddWarning("Failover is held back for "+key.String(), Sentence(c.Message))
	}
}

// unscheduled begins the summary of a decision that found nothing.
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

// explained is the sentence that explains a decision, with the constraint that
// stands most in its way; message where there is no explanation.
func explained(ctx context.Context, s *Session, key api.Key, message string) string {
	explanation, err := s.client.Explain(ctx, key)
	if err != nil || explanation.Summary == "" {
		return Sentence(message)
	}
	text := Sentence(explanation.Summary)
	if strings.Contains(text, "0 of 0 clusters") {
		text += " There was no cluster when this was decided. Where the same configuration creates them, let it refer to them, or name them in depends_on: the decision is then made over all."
	}
	if miss := explanation.NearestMiss; miss != nil {
		text += " " + nearestMiss(miss, key.Kind)
	}
	return text
}

// nearestMiss says what would admit most of what is chosen for a kind. Example: The nearest miss:
// without "tier is gold" 12 more clusters would fit.
func nearestMiss(miss *api.NearestMiss, kind api.Kind) string {
	chosen := "cluster"
	if kind == api.KindCluster {
		chosen = "cloud"
	}
	if kind == api.KindMagnumCluster {
		chosen = "project"
	}
	without := "the " + miss.Filter + " filter"
	if miss.On != "" {
		without = strconv.Quote(miss.On)
	}
	more := "1 more " + chosen
	if miss.Count != 1 {
		more = strconv.Itoa(miss.Count) + " more " + chosen + "s"
	}
	return "The nearest miss: without " + without + " " + more + " would fit."
}

// report adds a warning or an error, as the wait attribute says. Without it a
// create warns, because an error would taint the placement and the next apply
// would replace what only needs more time; an update fails.
func report(diags *diag.Diagnostics, w DecisionWait, summary, detail string) {
	severity := TextOf(AttributesOf(AttributesOf(w.Plan)["wait"])["on_timeout"])
	if severity == onTimeoutError || severity == "" && !w.Created {
		diags.AddError(summary, detail)
		return
	}
	diags.AddWarning(summary, detail)
}
