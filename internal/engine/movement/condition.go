package movement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Condition returns the condition of an object whose decision changes in steps.
func Condition(r *api.RolloutStatus) api.Condition {
	c := api.Condition{Type: api.ConditionRollingOut, Status: api.ConditionTrue, Message: Sentence(r)}
	switch r.WaitingFor {
	case api.WaitApproval:
		c.Reason = api.ReasonWaitingForApproval
	case api.WaitHealth:
		c.Reason = api.ReasonWaitingForHealth
	case api.WaitSuccessTime:
		c.Reason = api.ReasonWaitingForSuccessTime
	case api.WaitRetry:
		c.Status, c.Reason = api.ConditionFalse, api.ReasonTooManyFailures
	}
	return c
}

// Sentence says how far a rollout has come, and what it waits for.
func Sentence(r *api.RolloutStatus) string {
	text := fmt.Sprintf("step %d of %d of rollout %d ", r.Step, r.TotalSteps, r.Revision)
	switch r.WaitingFor {
	case api.WaitApproval:
		text += "waits for approval: " + names(r, func(m *api.RolloutMove) bool { return m.Step == r.Step })
	case api.WaitHealth:
		text += "waits for the health of " + names(r, func(m *api.RolloutMove) bool {
			return m.StartedAt != nil && m.DoneAt == nil && m.HealthySince == nil
		})
	case api.WaitSuccessTime:
		moving := 0
		for i := range r.Moves {
			if r.Moves[i].Moving() {
				moving++
			}
		}
		text += "waits until " + names(r, (*api.RolloutMove).Moving) + " " + have(moving) + " been healthy for min_success_time"
	case api.WaitRetry:
		text += fmt.Sprintf("is stopped, because more have failed than max_failures permits: %s. It goes on when they recover, when the object is written, or when the step is approved again",
			names(r, (*api.RolloutMove).Failed))
	}
	if r.Failures > 0 && r.WaitingFor != api.WaitRetry {
		text += fmt.Sprintf("; %d %s failed", r.Failures, have(r.Failures))
	}
	return text
}

// have is the verb for a number of clusters.
func have[N int | int64](clusters N) string {
	if clusters == 1 {
		return "has"
	}
	return "have"
}

// maxNamed is the number of clusters that a sentence names.
const maxNamed = 3

// names lists the clusters of some moves.
func names(r *api.RolloutStatus, of func(*api.RolloutMove) bool) string {
	var list []string
	for i := range r.Moves {
		m := &r.Moves[i]
		switch {
		case !of(m):
		case m.Leaves:
			list = append(list, m.Cluster+" (left)")
		default:
			list = append(list, m.Cluster)
		}
	}
	if more := len(list) - maxNamed; more > 0 {
		list = append(slices.Clip(list[:maxNamed]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(list, ", ")
}
