package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// Observe returns a copy of a cluster whose status also contains what the engine derives: the
// state, the current value of every metric, the available amounts, and the condition that
// summarizes the metrics. None of these are stored, so that changing metrics do not rewrite
// clusters.
func Observe(f *columns.Fleet, reserved *ledger.Reservations, cluster *api.Cluster) *api.Cluster {
	c := *cluster
	c.Status.State = columns.State(&c)
	row, ok := f.Row(c.Metadata.Name)
	if !ok {
		return &c
	}
	c.Status.Available = ledger.Available(f, reserved, row)
	c.Status.Flavors = ledger.FlavorCounts(f, reserved, row)
	completeDerived(&c, f.Cluster(row))
	c.Status.Metrics = nil
	states := make([]*columns.MetricState, 0, len(f.Rows()[row].Metrics))
	for _, m := range f.Rows()[row].Metrics {
		s := f.MetricOf(row, m)
		states = append(states, s)
		c.Status.Metrics = append(c.Status.Metrics, s.Shown(m.Weight))
	}
	c.Status.Conditions = withMetricsAvailable(c.Status.Conditions, c.SoleOwner(), states)
	return &c
}

// maxDescribedMetrics is the number of metrics that a condition describes.
const maxDescribedMetrics = 3

// withMetricsAvailable returns the conditions with the one that summarizes the metrics of an
// object, for readers of a namespace. The reason is that of the first unusable metric, where one
// that has not been read yet comes last; the message describes each.
func withMetricsAvailable(list []api.Condition, namespace string, states []*columns.MetricState) []api.Condition {
	if len(states) == 0 {
		return list
	}
	condition := api.Condition{Type: api.ConditionMetricsAvailable, Status: api.ConditionTrue, Reason: api.ReasonAvailable}
	var failing []string
	for _, s := range states {
		if s.Usable {
			continue
		}
		if condition.Status == api.ConditionTrue || condition.Reason == api.ReasonPending {
			condition.Status, condition.Reason = api.ConditionFalse, s.Reason
		}
		failing = append(failing, s.Describe(namespace))
	}
	if more := len(failing) - maxDescribedMetrics; more > 0 {
		failing = append(failing[:maxDescribedMetrics], fmt.Sprintf("and %d more", more))
	}
	condition.Message = strings.Join(failing, "; ")
	conditions := make([]api.Condition, 0, len(list)+1)
	for _, old := range list {
		if old.Type != condition.Type {
			conditions = append(conditions, old)
		}
	}
	return append(conditions, condition)
}

// completeDerived adds what a cluster inherits from its cloud.
func completeDerived(c, effective *api.Cluster) {
	if effective.Metadata.UID != c.Metadata.UID {
		return
	}
	// What an object inherits is unknown until decisions have seen its current version.
	if effective.Metadata.Generation == c.Metadata.Generation && !maps.Equal(effective.Metadata.Labels, c.Metadata.Labels) {
		c.Status.Labels = effective.Metadata.Labels
	}
	if c.Spec.OpenStack == nil {
		return
	}
	from := &effective.Status
	c.Status.State, c.Status.Taints, c.Status.Conditions = columns.State(effective), from.Taints, from.Conditions
	c.Status.Capacity, c.Status.Allocatable, c.Status.Allocated = from.Capacity, from.Allocatable, from.Allocated
	c.Status.CapacityReportedAt, c.Status.GoneResources = from.CapacityReportedAt, from.GoneResources
}

// ObserveMetrics returns the current values of metrics listed by an object that is not a cluster of
// the fleet, and its conditions with the one that summarizes the metrics. namespace is that of the
// owner.
func ObserveMetrics(f *columns.Fleet, refs []api.MetricRef, namespace string, list []api.Condition) ([]api.ClusterMetricStatus, []api.Condition) {
	out := make([]api.ClusterMetricStatus, len(refs))
	states := make([]*columns.MetricState, len(refs))
	for i, ref := range refs {
		states[i] = (&columns.MetricState{Key: ref.Key()}).Judge(time.Time{})
		if id, ok := f.MetricIDs()[ref.Key()]; ok {
			states[i] = f.Metrics()[id]
		}
		out[i] = states[i].Shown(columns.WeightOf(ref))
	}
	return out, withMetricsAvailable(list, namespace, states)
}

// NewStatus returns the status of a placement after an outcome: the previous one with what changed.
// changed is false if only the time differs, so that nothing needs to be written. explain returns
// the sentence about a placement that did not get all its clusters.
func NewStatus(f *columns.Fleet, q *Query, v *View, meta *api.Metadata, was *api.PlacementStatus, out Outcome, now time.Time, explain func() string) (status api.PlacementStatus, changed bool) {
	status = *was
	answered, fresh := was.Answers(meta)
	answered = answered && !fresh
	status.ObservedGeneration = meta.Generation
	status.ObservedRescheduleRequests = meta.RescheduleRequests
	changed = !answered

	if !out.Same || (!answered && !sameOrder(f, was.Clusters, out.Choices)) {
		since, at := map[string]*time.Time{}, new(now.UTC())
		for _, d := range was.Decisions {
			since[d.Cluster] = d.Since
		}
		status.Clusters = make([]string, len(out.Choices))
		status.Decisions = make([]api.Decision, len(out.Choices))
		for i, c := range out.Choices {
			name := f.Name(c.Row)
			d := api.Decision{Cluster: name, Score: c.Score, Rank: int64(i + 1), Since: since[name]}
			if d.Since == nil {
				d.Since = at
			}
			status.Clusters[i], status.Decisions[i] = name, d
		}
		if !out.Same {
			status.ScheduledAt = at
		}
		status.DecisionRevision++
		status.Margin = out.lostBy
		changed = true
	}
	if !answered && len(status.Decisions) == len(out.Choices) {
		// The clusters are the same, but the scores are for another spec.
		status.Decisions = slices.Clone(status.Decisions)
		for i, c := range out.Choices {
			status.Decisions[i].Score = c.Score
		}
	}
	if groups := divide(f, q.groups, status.Clusters); !slices.EqualFunc(groups, was.DecisionGroups, sameGroup) {
		status.DecisionGroups = groups
		status.Decisions = withGroups(status.Decisions, groups)
		changed = true
	} else {
		status.DecisionGroups = was.DecisionGroups
		if changed {
			status.Decisions = withGroups(status.Decisions, groups)
		}
	}
	for c := range conditions(f, q, v, out, explain) {
		changed = api.SetCondition(&status.Conditions, c, now) || changed
	}
	changed = ObserveUnread(&status.Conditions, f, q, out.rows, now) || changed
	changed = api.RemoveCondition(&status.Conditions, api.ConditionExpressionsPending) || changed
	return status, changed
}

func sameOrder(f *columns.Fleet, names []string, choices []Choice) bool {
	if len(names) != len(choices) {
		return false
	}
	for i, c := range choices {
		if names[i] != f.Name(c.Row) {
			return false
		}
	}
	return true
}

func sameGroup(a, b api.ChosenGroup) bool {
	return a.Index == b.Index && a.Name == b.Name && slices.Equal(a.Clusters, b.Clusters)
}
