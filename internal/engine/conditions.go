package engine

import (
	"fmt"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// conditions are those of a placement after an outcome. explain is called for
// the sentence about one that did not get what it wants.
func conditions(f *Fleet, q *Query, v *View, out Outcome, explain func() string) []api.Condition {
	list := make([]api.Condition, 0, 4)
	scheduled := scheduledCondition(q, out, explain)
	if q.policy == nil {
		return append(list, scheduled, satisfiedCondition(q, out, scheduled, explain), misconfiguredCondition(f, q))
	}
	list = append(list, scheduled, satisfiedAsOCM(f, q, out), misconfiguredCondition(f, q))
	if q.UsesScores() {
		list = append(list, scoresValidCondition(f, q, v, out))
	}
	return list
}

func scheduledCondition(q *Query, out Outcome, explain func() string) api.Condition {
	c := api.Condition{Type: api.ConditionScheduled, Status: api.ConditionTrue, Reason: api.ReasonScheduled}
	switch {
	case q.Wanted == 0:
		c.Reason = api.ReasonNoClustersWanted
	case len(out.Choices) == 0:
		c.Status, c.Reason, c.Message = api.ConditionFalse, api.ReasonNoSuitableClusters, explain()
	case q.policy != nil && q.Wanted != All && len(out.Choices) < q.Wanted:
		// Satisfied has another's wording; the sentence that explains stands here.
		c.Message = explain()
	}
	return c
}

func satisfiedCondition(q *Query, out Outcome, scheduled api.Condition, explain func() string) api.Condition {
	c := api.Condition{Type: api.ConditionSatisfied, Status: api.ConditionTrue, Reason: api.ReasonSatisfied}
	switch n := len(out.Choices); {
	case q.Wanted == 0:
		c.Reason = api.ReasonNoClustersWanted
	case n == 0:
		c.Status, c.Reason, c.Message = api.ConditionFalse, api.ReasonNoSuitableClusters, scheduled.Message
	case q.Wanted == All:
		c.Reason = api.ReasonAllFitting
	case n < q.Wanted:
		c.Status, c.Reason, c.Message = api.ConditionFalse, api.ReasonTooFewClusters, explain()
	}
	return c
}

// satisfiedAsOCM is the condition with the reasons and messages of Open Cluster
// Management; the first that holds wins.
func satisfiedAsOCM(f *Fleet, q *Query, out Outcome) api.Condition {
	c := api.Condition{Type: api.ConditionSatisfied, Status: api.ConditionFalse}
	unscheduled := 0
	if q.Wanted != All {
		unscheduled = q.Wanted - len(out.Choices)
	}
	usable, members := q.usableSets(f)
	switch {
	case len(q.Sets()) > 0 && len(usable) == 0:
		c.Reason = api.ReasonNoIntersection
		c.Message = fmt.Sprintf("None of ManagedClusterSets [%s] is bound to placement namespace", strings.Join(q.Sets(), ","))
	case len(q.Sets()) > 0 && members == 0:
		c.Reason = api.ReasonAllClusterSetsEmpty
		c.Message = fmt.Sprintf("All ManagedClusterSets [%s] have no member ManagedCluster", strings.Join(usable, ","))
	case len(out.Choices) == 0:
		c.Reason = api.ReasonNoManagedClusterMatched
		c.Message = "No ManagedCluster matches any of the cluster predicate"
	case unscheduled > 0:
		c.Reason = api.ReasonNotAllDecisionsScheduled
		c.Message = fmt.Sprintf("%d cluster decisions unscheduled", unscheduled)
	default:
		c.Status, c.Reason, c.Message = api.ConditionTrue, api.ReasonAllDecisionsScheduled, "All cluster decisions scheduled"
	}
	return c
}

func misconfiguredCondition(f *Fleet, q *Query) api.Condition {
	c := api.Condition{Type: api.ConditionMisconfigured, Status: api.ConditionFalse, Reason: api.ReasonWellConfigured}
	if q.policy != nil {
		c.Reason, c.Message = api.ReasonSucceedConfigured, "Placement configurations check pass"
	}
	if unknown := q.UnknownMetrics(f); len(unknown) > 0 {
		c.Status, c.Reason = api.ConditionTrue, api.ReasonUnknownMetrics
		c.Message = fmt.Sprintf("metric_constraints name metrics that do not exist: %q", unknown)
		return c
	}
	if unknown := q.unknownPolicyMetrics(f); len(unknown) > 0 {
		c.Status, c.Reason = api.ConditionTrue, api.ReasonMisconfigured
		c.Message = fmt.Sprintf("prioritizer_policy names metrics that do not exist: %q; what is decided stays", unknown)
	}
	return c
}

// scoresValidCondition says whether a score that counts has expired on a cluster
// that fits, or that only the decision may keep. It names no clusters: with thousands of agents it would hardly stay
// the same for a second.
func scoresValidCondition(f *Fleet, q *Query, v *View, out Outcome) api.Condition {
	c := api.Condition{Type: api.ConditionScoresValid, Status: api.ConditionTrue, Reason: api.ReasonValid}
	if resource := v.expired(f, q, out.Choices); resource != "" {
		c.Status, c.Reason = api.ConditionFalse, api.ReasonExpired
		c.Message = fmt.Sprintf("placement scores %q of some clusters that fit have expired and count as 0: the explanation says which", resource)
	}
	return c
}

// unknownPolicyMetrics lists the metrics that the query's policy names and that
// do not exist.
func (q *Query) unknownPolicyMetrics(f *Fleet) []string {
	var unknown []string
	for _, name := range q.policy.metrics() {
		if !f.HasMetric(name) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// NamesMetrics reports that the query concerns metrics by name, so that it
// matters whether they exist.
func (q *Query) NamesMetrics() bool { return q.Reads().Any(MetricNames) }

// UsesScores reports that the query is rated by placement scores.
func (q *Query) UsesScores() bool { return len(q.policy.scores()) > 0 }
