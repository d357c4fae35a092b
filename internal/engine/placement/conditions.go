package placement

import (
	"fmt"
	"iter"
	"sync"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// conditions yields the conditions of a placement after an outcome. explain returns the sentence
// about a placement that did not get all its clusters.
func conditions(f *columns.Fleet, q *Query, v *View, out Outcome, explain func() string) iter.Seq[api.Condition] {
	return func(yield func(api.Condition) bool) {
		t := score.Tally{Wanted: q.Wanted, Chosen: len(out.Choices), Fleet: f}
		if explain != nil {
			t.Explain = sync.OnceValue(explain)
		}
		t.In, _ = filter.First[filter.Confining](&q.Checks)
		words := q.scoring.Traits.Words
		_ = yield(scheduledCondition(t, words)) && yield(words.Satisfied(t)) && yield(misconfiguredCondition(f, q)) &&
			q.UsesScores() && yield(scoresValidCondition(f, q, v, out))
	}
}

func scheduledCondition(t score.Tally, words *score.Words) api.Condition {
	c := api.Condition{Type: api.ConditionScheduled, Status: api.ConditionTrue, Reason: api.ReasonScheduled}
	switch {
	case t.Wanted == 0:
		c.Reason = api.ReasonNoClustersWanted
	case t.Chosen == 0:
		c.Status, c.Reason, c.Message = api.ConditionFalse, api.ReasonNoSuitableClusters, t.Why()
	case words.Scheduled && t.Missing() > 0:
		c.Message = t.Why()
	}
	return c
}

func misconfiguredCondition(f *columns.Fleet, q *Query) api.Condition {
	words := q.scoring.Traits.Words
	c := api.Condition{Type: api.ConditionMisconfigured, Status: api.ConditionFalse, Reason: words.WellReason, Message: words.WellMessage}
	if unknown := q.unknownMetrics(f); len(unknown) > 0 {
		c.Status, c.Reason = api.ConditionTrue, api.ReasonUnknownMetrics
		c.Message = fmt.Sprintf("metric_constraints name metrics that do not exist: %q", unknown)
		return c
	}
	if unknown := q.unknownScoreMetrics(f); len(unknown) > 0 {
		c.Status, c.Reason = api.ConditionTrue, api.ReasonMisconfigured
		c.Message = fmt.Sprintf("prioritizer_policy names metrics that do not exist: %q; the decision stays", unknown)
	}
	return c
}

// scoresValidCondition says whether a score has expired on a cluster that fits or that the decision
// keeps. It names no clusters: with thousands of agents the message would change every second.
func scoresValidCondition(f *columns.Fleet, q *Query, v *View, out Outcome) api.Condition {
	c := api.Condition{Type: api.ConditionScoresValid, Status: api.ConditionTrue, Reason: api.ReasonValid}
	if resource := v.expired(f, q, out.Choices); resource != "" {
		c.Status, c.Reason = api.ConditionFalse, api.ReasonExpired
		c.Message = fmt.Sprintf("placement scores %q of some clusters that fit have expired and count as 0: the explanation says which", resource)
	}
	return c
}
