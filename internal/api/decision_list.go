package api

import "time"

// DecisionSummary is the decision of a placement or workload in one row.
type DecisionSummary struct {
	Key
	// Clusters are the first ones only: some placements are on thousands.
	Clusters     []string `json:"clusters" doc:"Chosen clusters, at most 8: of a placement the best ones, of a workload the first ones by name."`
	ClusterCount int      `json:"cluster_count" doc:"Number of chosen clusters."`
	Wanted       *int64   `json:"wanted,omitempty" doc:"For a placement: number of clusters that it asks for. Absent if it asks for all that fit."`
	Replicas     *int64   `json:"replicas,omitempty" doc:"For a workload: number of replicas to place."`
	Policy       string   `json:"policy,omitempty" doc:"For a workload: the propagation policy that it follows."`
	// Satisfied is the status of the condition that says so for the kind.
	Satisfied ConditionStatus `json:"satisfied" enum:"True,False,Unknown" doc:"Whether the placement has as many clusters as it asks for, or the workload is scheduled. 'Unknown' until it is decided."`
	Reason    string          `json:"reason,omitempty" doc:"Reason, as one word."`
	Message   string          `json:"message,omitempty" doc:"Explanation, as a sentence."`
	Held      string          `json:"held,omitempty" doc:"Why the decision is not updated for now. Absent if it is."`

	ScheduledAt      *time.Time `json:"scheduled_at,omitempty" doc:"When the decision last changed."`
	DecisionRevision int64      `json:"decision_revision,omitempty" doc:"Number of times that the decision has changed."`
	Cause            *Cause     `json:"cause,omitempty" doc:"What made the decision change last."`
	ResourceVersion  string     `json:"resource_version" doc:"Store revision of the object's last change."`
}

// DecisionList is a part of all decisions.
type DecisionList struct {
	Items           []DecisionSummary `json:"items" doc:"Rows from 'offset' on."`
	Total           int               `json:"total" doc:"Number of decisions that match."`
	Unsatisfied     int               `json:"unsatisfied" doc:"Number of those that are not satisfied."`
	ResourceVersion string            `json:"resource_version" doc:"Store revision that the rows show."`
	// Groups are in the answer to 'count_by' only.
	Groups        []DecisionGroupCount `json:"groups,omitempty" doc:"Decisions that match, counted by what 'count_by' names: at most 500 groups, the largest first."`
	GroupsLeftOut int                  `json:"groups_left_out,omitempty" doc:"Number of groups that are not shown."`
}

// DecisionGroupCount is how many decisions have something in common.
type DecisionGroupCount struct {
	Value       string `json:"value" doc:"What they have in common: a namespace, kind, cluster, or value of a label."`
	Total       int    `json:"total" doc:"Number of decisions."`
	Unsatisfied int    `json:"unsatisfied" doc:"Number of those that are not satisfied."`
}

// Where is the decision of a placement or workload, as an event shows it.
type Where struct {
	Clusters []string `json:"clusters" doc:"Clusters of the decision."`
	// Replicas is set for workloads only.
	Replicas map[string]int64 `json:"replicas,omitempty" doc:"For a workload: replicas by cluster."`
}

// WhereIs returns the decision of a placement or workload; false for other kinds.
func WhereIs(object Object) (at Where, decided bool) {
	switch o := object.(type) {
	case *Placement:
		return Where{Clusters: o.Status.Clusters}, true
	case *Workload:
		return Where{Clusters: o.Status.Names(), Replicas: o.Status.ReplicasByCluster()}, true
	}
	return Where{}, false
}

// Summarize returns the decision of a placement or workload in one row; false for other kinds.
func Summarize(object Object) (row DecisionSummary, decided bool) {
	const shown = 8
	at, decided := WhereIs(object)
	if !decided {
		return row, false
	}
	row = DecisionSummary{
		Key: KeyOf(object), ClusterCount: len(at.Clusters), Clusters: append([]string{}, at.Clusters[:min(shown, len(at.Clusters))]...),
		Satisfied: ConditionUnknown, ResourceVersion: object.Meta().ResourceVersion,
	}
	switch o := object.(type) {
	case *Placement:
		row.Wanted = o.Spec.NumberOfClusters
		row.ScheduledAt, row.DecisionRevision, row.Cause = o.Status.ScheduledAt, o.Status.DecisionRevision, o.Status.Cause
	case *Workload:
		row.Replicas, row.Policy = o.Spec.Replicas, o.Status.Policy
		row.ScheduledAt, row.DecisionRevision, row.Cause = o.Status.ScheduledAt, o.Status.DecisionRevision, o.Status.Cause
	}
	if c := Satisfaction(object); c != nil {
		row.Satisfied, row.Reason, row.Message = c.Status, c.Reason, c.Message
	}
	for _, held := range []string{ConditionFaulted, ConditionMoveHeld, ConditionFailoverHeld} {
		if c := FindCondition(*ConditionsOf(object), held); c != nil && c.Status == ConditionTrue {
			row.Held = c.Message
			break
		}
	}
	return row, true
}

// Satisfaction returns the condition that says whether a placement or workload has what it asks
// for, or nil.
func Satisfaction(object Object) *Condition {
	switch o := object.(type) {
	case *Placement:
		return FindCondition(o.Status.Conditions, ConditionSatisfied)
	case *Workload:
		return FindCondition(o.Status.Conditions, ConditionScheduled)
	}
	return nil
}
