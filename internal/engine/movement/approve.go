package movement

import (
	"fmt"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Approve returns a rollout of which steps are approved, and if it waits for a retry of one of them,
// in which the clusters that have failed are tried again. It returns the same rollout if that
// changes nothing. The error is an *api.ApprovalError if nothing is under way, or something else.
func Approve(key api.Key, r *api.RolloutStatus, a api.RolloutApproval, now time.Time) (*api.RolloutStatus, error) {
	switch {
	case r == nil:
		return nil, &api.ApprovalError{Type: api.ProblemNoRollout, Text: fmt.Sprintf("%s does not change in steps at present: there is nothing to approve", key)}
	case a.Revision != r.Revision:
		return nil, &api.ApprovalError{Type: api.ProblemRolloutChanged, Text: fmt.Sprintf("rollout %d of %s is under way, not rollout %d: look at what it means before you approve it", r.Revision, key, a.Revision)}
	case a.Step > r.TotalSteps:
		return nil, &api.ApprovalError{Type: api.ProblemRolloutChanged, Text: fmt.Sprintf("rollout %d of %s has %d steps: there is no step %d to approve", r.Revision, key, r.TotalSteps, a.Step)}
	}
	step := a.Step
	if step == 0 {
		step = r.TotalSteps
	}
	retry := r.WaitingFor == api.WaitRetry && step >= r.Step
	if step <= r.ApprovedStep && !retry {
		return r, nil
	}
	approved := *r
	approved.ApprovedStep = max(step, r.ApprovedStep)
	if retry {
		approved.Moves = slices.Clone(r.Moves)
		for i := range approved.Moves {
			if m := &approved.Moves[i]; m.Failed() {
				m.StartedAt, m.FailedAt = instant(now), nil
			}
		}
	}
	return &approved, nil
}
