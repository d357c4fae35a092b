package provider

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// The values of the wait attribute.
const (
	waitDecided      = "decided"
	waitNone         = "none"
	onTimeoutWarning = "warning"
	onTimeoutError   = "error"
)

// decisionUnawaited reports a plan with wait.for = "none".
func decisionUnawaited(plan tftypes.Value) bool {
	return textOf(attributesOf(attributesOf(plan)["wait"])["for"]) == waitNone
}

// awaitDecision waits until the placement's status answers what was written. A
// decision that finds no cluster ends the wait at once, with the sentence that
// explains it.
func awaitDecision(ctx context.Context, s *session, w decisionWait) (api.Object, diag.Diagnostics) {
	var diags diag.Diagnostics
	if decisionUnawaited(w.plan) {
		return nil, diags
	}
	placement, ok := w.object.(*api.Placement)
	if !ok {
		return nil, diags
	}
	key := api.KeyOf(placement)
	goal := placement.Metadata.Generation
	for placement.Status.ObservedGeneration < goal {
		wait := longestWait
		if deadline, ok := ctx.Deadline(); ok {
			wait = min(wait, max(time.Until(deadline), 0))
		}
		object, err := s.client.GetNewer(ctx, key, placement.Metadata.ResourceVersion, wait)
		if err != nil {
			report(&diags, w, "No decision for "+key.String()+" yet", undecided(ctx, err, placement, w))
			return nil, diags
		}
		placement, ok = object.(*api.Placement)
		if !ok {
			return nil, diags
		}
	}
	reportConditions(ctx, s, w, placement, &diags)
	return placement, diags
}

// undecided words a wait that ended without a decision.
func undecided(ctx context.Context, err error, last *api.Placement, w decisionWait) string {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return sentence(err.Error())
	}
	operation := "update"
	if w.created {
		operation = "create"
	}
	text := fmt.Sprintf("No decision after %s (timeouts.%s).", w.limit, operation)
	if c := api.FindCondition(last.Status.Conditions, api.ConditionScheduled); c != nil {
		text += fmt.Sprintf(" Last condition: %s is %s, %s: %s", c.Type, c.Status, c.Reason, sentence(c.Message))
	}
	return text + " The server goes on deciding; the next refresh shows the decision."
}

// reportConditions says what is wrong with a decision that was made.
func reportConditions(ctx context.Context, s *session, w decisionWait, placement *api.Placement, diags *diag.Diagnostics) {
	key := api.KeyOf(placement)
	is := func(conditionType string, status api.ConditionStatus) *api.Condition {
		c := api.FindCondition(placement.Status.Conditions, conditionType)
		if c == nil || c.Status != status {
			return nil
		}
		return c
	}
	if c := is(api.ConditionScheduled, api.ConditionFalse); c != nil {
		report(diags, w, "No cluster for "+key.String(), explained(ctx, s, key, c.Message))
		return
	}
	if c := is(api.ConditionMisconfigured, api.ConditionTrue); c != nil {
		diags.AddWarning("Something that "+key.String()+" refers to does not exist", sentence(c.Message))
	}
	if c := is(api.ConditionSatisfied, api.ConditionFalse); c != nil {
		diags.AddWarning("Too few clusters for "+key.String(), explained(ctx, s, key, c.Message))
	}
}

// explained is the sentence that explains a decision, with the constraint that
// stands most in its way; message where there is no explanation.
func explained(ctx context.Context, s *session, key api.Key, message string) string {
	explanation, err := s.client.Explain(ctx, key)
	if err != nil || explanation.Summary == "" {
		return sentence(message)
	}
	text := sentence(explanation.Summary)
	if miss := explanation.NearestMiss; miss != nil {
		text += " " + nearestMiss(miss)
	}
	return text
}

// nearestMiss says what would admit most clusters. Example: The nearest miss:
// without "tier is gold" 12 more clusters would fit.
func nearestMiss(miss *api.NearestMiss) string {
	without := "the " + miss.Filter + " filter"
	if miss.On != "" {
		without = strconv.Quote(miss.On)
	}
	more := "1 more cluster"
	if miss.Count != 1 {
		more = strconv.Itoa(miss.Count) + " more clusters"
	}
	return "The nearest miss: without " + without + " " + more + " would fit."
}

// report adds a warning or an error, as the wait attribute says. Without it a
// create warns, because an error would taint the placement and the next apply
// would replace what only needs more time; an update fails.
func report(diags *diag.Diagnostics, w decisionWait, summary, detail string) {
	severity := textOf(attributesOf(attributesOf(w.plan)["wait"])["on_timeout"])
	if severity == onTimeoutError || severity == "" && !w.created {
		diags.AddError(summary, detail)
		return
	}
	diags.AddWarning(summary, detail)
}
