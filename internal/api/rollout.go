package api

import (
	"fmt"
	"regexp"
	"slices"
	"time"
)

// Rollout makes the decision of an object that exists change in steps instead of at once.
type Rollout struct {
	MaxConcurrent    GroupSize     `json:"max_concurrent,omitempty" default:"1" doc:"Largest number of clusters in a step, or a percentage of the clusters that are meant such as '25%', rounded up. A step begins when the one before is done."`
	Order            RolloutOrder  `json:"order,omitempty" enum:"rank,decision_groups,label" default:"rank" doc:"Order of the steps: 'rank' (the best cluster first), 'decision_groups' (the groups of 'decision_strategy', one after the other; for placements) or 'label' (the values of the label 'label_key', one after the other: as numbers if all are, and clusters without the label last). No step has clusters of two groups or values."`
	LabelKey         string        `json:"label_key,omitempty" doc:"Key of the cluster label for 'order' 'label'."`
	MinSuccessTime   Duration      `json:"min_success_time,omitempty" default:"1m" doc:"How long a cluster must be healthy before the one that it replaces is left and the next step begins."`
	ProgressDeadline Duration      `json:"progress_deadline,omitempty" shortest:"1s" doc:"A cluster that is not healthy this long after its step began has failed. If omitted, it has only failed if it is reported unhealthy."`
	MaxFailures      FailureLimit  `json:"max_failures,omitempty" default:"0" doc:"How many clusters may have failed, or a percentage of the clusters that are meant such as '10%', rounded up. If more have, no further step begins until they recover, the object is written, or the step is approved again."`
	Approval         Approval      `json:"approval,omitempty" enum:"none,group,step" default:"none" doc:"What must be approved before it begins: 'step' (every step), 'group' (the first step of every group or label value, and with 'order' 'rank' the first step) or 'none'."`
	Health           RolloutHealth `json:"health,omitempty" enum:"auto,reported,cluster" default:"auto" doc:"When a cluster is healthy: 'reported' (the object was reported healthy there since its step began), 'cluster' (the cluster is online) or 'auto' (by reports if there are any about the object, and by the cluster otherwise)."`
}

// RolloutOrder is the order of the steps of a rollout.
type RolloutOrder string

// Orders of a rollout.
const (
	OrderRank           RolloutOrder = "rank"
	OrderDecisionGroups RolloutOrder = "decision_groups"
	OrderLabel          RolloutOrder = "label"
)

// Approval is what must be approved before it begins.
type Approval string

// Values of Approval.
const (
	ApprovalNone  Approval = "none"
	ApprovalGroup Approval = "group"
	ApprovalStep  Approval = "step"
)

// RolloutHealth is what says that a cluster is healthy.
type RolloutHealth string

// Values of RolloutHealth.
const (
	HealthAuto     RolloutHealth = "auto"
	HealthReported RolloutHealth = "reported"
	HealthCluster  RolloutHealth = "cluster"
)

// FailureLimit is a number of clusters, which may be 0, or a percentage of them, as text. In JSON,
// a number is accepted too.
type FailureLimit string

var failureLimitShape = regexp.MustCompile(`^((100|[1-9]?[0-9])%|0|[1-9][0-9]*)$`)

// UnmarshalJSON implements json.Unmarshaler.
func (l *FailureLimit) UnmarshalJSON(data []byte) error {
	if text, ok, err := numberAsText(data); err != nil {
		return fmt.Errorf("read a limit of failures: %w", err)
	} else if ok {
		*l = FailureLimit(text)
	}
	return nil
}

// Of returns how many of total clusters may fail.
func (l FailureLimit) Of(total int) int {
	n, _ := countOf(string(l), total)
	return n
}

func (r *Rollout) validate(errs *FieldErrors, field string, groups bool) {
	if r == nil {
		return
	}
	errs.check(field+".max_concurrent", r.MaxConcurrent.check())
	if !failureLimitShape.MatchString(string(r.MaxFailures)) || len(r.MaxFailures) > 9 {
		errs.Add(field+".max_failures", "%q must be a number from 0, such as 2, or a percentage from 0%% to 100%%, such as \"10%%\"", string(r.MaxFailures))
	}
	switch {
	case r.Order == OrderLabel && r.LabelKey == "":
		errs.Add(field+".label_key", "is required with order = \"label\": it is the label by which the clusters are ordered")
	case r.Order != OrderLabel && r.LabelKey != "":
		errs.Add(field+".label_key", "requires order = \"label\"")
	case r.LabelKey != "":
		errs.check(field+".label_key", checkLabelKey(r.LabelKey))
	}
	if r.Order == OrderDecisionGroups && !groups {
		errs.Add(field+".order", "%q requires decision_strategy, which defines the groups: only placements have it", string(r.Order))
	}
}

// RolloutStatus is a change of a decision that is under way: what is meant, and how far it has
// come. What stands is the decision in the status itself.
type RolloutStatus struct {
	Revision     int64           `json:"revision" doc:"Number of this rollout among those of the object. Another target is another rollout."`
	StartedAt    *time.Time      `json:"started_at,omitempty" doc:"When this rollout began."`
	Target       []RolloutTarget `json:"target" doc:"The clusters that are meant, best first."`
	Step         int64           `json:"step" doc:"Current step, counted from 1: it is under way, or begins next."`
	TotalSteps   int64           `json:"total_steps" doc:"Number of steps."`
	ApprovedStep int64           `json:"approved_step,omitempty" doc:"Last step that was approved."`
	WaitingFor   RolloutWait     `json:"waiting_for,omitempty" enum:"approval,health,min_success_time,retry" doc:"What the current step waits for: 'approval', 'health', 'min_success_time', or 'retry' (more clusters have failed than 'max_failures')."`
	Failures     int64           `json:"failures,omitempty" doc:"Number of clusters that have failed and not recovered."`
	Moves        []RolloutMove   `json:"moves" doc:"What changes, in the order of the steps."`
}

// RolloutWait is what a rollout waits for.
type RolloutWait string

// Values of RolloutWait.
const (
	WaitApproval    RolloutWait = "approval"
	WaitHealth      RolloutWait = "health"
	WaitSuccessTime RolloutWait = "min_success_time"
	WaitRetry       RolloutWait = "retry"
)

// RolloutTarget is one cluster that is meant.
type RolloutTarget struct {
	Cluster  string     `json:"cluster" ref:"cluster,optional" doc:"Name of the cluster."`
	Replicas int64      `json:"replicas,omitempty" doc:"Replicas on the cluster, for a workload."`
	Flavor   string     `json:"flavor,omitempty" doc:"Flavor that each replica gets, if the workload asks for flavors."`
	Score    float64    `json:"score,omitempty" doc:"Score when it was decided, for a placement."`
	Since    *time.Time `json:"since,omitempty" doc:"When it was decided."`
}

// RolloutMove is one cluster that is gained, or left without a successor.
type RolloutMove struct {
	Cluster       string     `json:"cluster" ref:"cluster,optional" doc:"Name of the cluster."`
	Replicas      int64      `json:"replicas,omitempty" doc:"Replicas that move, if they are divided among clusters."`
	Leaves        bool       `json:"leaves,omitempty" doc:"Whether the cluster is left without a successor."`
	Step          int64      `json:"step" doc:"Step that it belongs to."`
	Group         string     `json:"group,omitempty" doc:"Decision group or label value of the cluster."`
	NeedsApproval bool       `json:"needs_approval,omitempty" doc:"Whether its step begins only when it was approved."`
	StartedAt     *time.Time `json:"started_at,omitempty" doc:"When its step began."`
	HealthySince  *time.Time `json:"healthy_since,omitempty" doc:"Since when it is healthy."`
	FailedAt      *time.Time `json:"failed_at,omitempty" doc:"When it failed. It has recovered if it is healthy now."`
	DoneAt        *time.Time `json:"done_at,omitempty" doc:"When it was healthy for long enough."`
}

// Failed reports whether the cluster has failed and not recovered.
func (m *RolloutMove) Failed() bool {
	return m.FailedAt != nil && m.HealthySince == nil && m.DoneAt == nil
}

// Moving reports whether the cluster is in motion: its step has begun, and it is neither done nor
// has it failed.
func (m *RolloutMove) Moving() bool { return m.StartedAt != nil && m.DoneAt == nil && !m.Failed() }

// Same reports whether two rollouts are equal. Either may be nil.
func (r *RolloutStatus) Same(other *RolloutStatus) bool {
	if r == nil || other == nil || r == other {
		return r == other
	}
	return r.Revision == other.Revision && r.Step == other.Step && r.TotalSteps == other.TotalSteps && r.ApprovedStep == other.ApprovedStep &&
		r.WaitingFor == other.WaitingFor && r.Failures == other.Failures && sameTime(r.StartedAt, other.StartedAt) &&
		slices.EqualFunc(r.Target, other.Target, func(a, b RolloutTarget) bool {
			same := sameTime(a.Since, b.Since)
			a.Since, b.Since = nil, nil
			return same && a == b
		}) &&
		slices.EqualFunc(r.Moves, other.Moves, func(a, b RolloutMove) bool {
			return a.Cluster == b.Cluster && a.Replicas == b.Replicas && a.Leaves == b.Leaves && a.Step == b.Step && a.Group == b.Group &&
				a.NeedsApproval == b.NeedsApproval && sameTime(a.StartedAt, b.StartedAt) && sameTime(a.HealthySince, b.HealthySince) &&
				sameTime(a.FailedAt, b.FailedAt) && sameTime(a.DoneAt, b.DoneAt)
		})
}

func sameTime(a, b *time.Time) bool { return a == b || a != nil && b != nil && a.Equal(*b) }

// Targets reports whether a cluster is meant.
func (r *RolloutStatus) Targets(cluster string) bool {
	return slices.ContainsFunc(r.Target, func(t RolloutTarget) bool { return t.Cluster == cluster })
}

// RolloutOf returns the rollout of an object that is under way, or nil.
func RolloutOf(object Object) *RolloutStatus {
	switch o := object.(type) {
	case *Placement:
		return o.Status.Rollout
	case *Workload:
		return o.Status.Rollout
	}
	return nil
}

// RolloutApproval approves steps of a rollout, or asks for another attempt at a step in which too many
// clusters have failed.
type RolloutApproval struct {
	Revision int64 `json:"revision" minimum:"1" doc:"'revision' of the rollout. The approval of another one is refused."`
	Step     int64 `json:"step,omitempty" minimum:"0" doc:"Step up to which the rollout is approved. If omitted, all steps. If the rollout waits for a retry, the current step is tried again."`
}

// ApprovalError says why an approval is refused.
type ApprovalError struct {
	// Type is ProblemNoRollout or ProblemRolloutChanged.
	Type ProblemType
	Text string
}

func (e *ApprovalError) Error() string { return e.Text }

// Validate returns all validation errors of the approval.
func (a *RolloutApproval) Validate() FieldErrors {
	var errs FieldErrors
	errs.checkFields("", a)
	return errs.inOrder(a)
}
