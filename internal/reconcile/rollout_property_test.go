package reconcile

import (
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/movement"
)

// drawRollout draws the rules of a rollout, or none. label is one that clusters have.
func drawRollout(t *rapid.T, label string) *api.Rollout {
	if rapid.IntRange(0, 2).Draw(t, "rollout") == 0 {
		return nil
	}
	r := &api.Rollout{
		MaxConcurrent:    rapid.SampledFrom([]api.GroupSize{"1", "2", "50%"}).Draw(t, "max_concurrent"),
		MinSuccessTime:   rapid.SampledFrom([]api.Duration{"0s", "30s"}).Draw(t, "min_success_time"),
		ProgressDeadline: rapid.SampledFrom([]api.Duration{"", "60s"}).Draw(t, "progress_deadline"),
		MaxFailures:      rapid.SampledFrom([]api.FailureLimit{"0", "1"}).Draw(t, "max_failures"),
		Approval:         rapid.SampledFrom([]api.Approval{api.ApprovalNone, api.ApprovalNone, api.ApprovalStep, api.ApprovalGroup}).Draw(t, "approval"),
		Health:           rapid.SampledFrom([]api.RolloutHealth{api.HealthAuto, api.HealthReported, api.HealthCluster}).Draw(t, "health"),
	}
	if rapid.Bool().Draw(t, "by label") {
		r.Order, r.LabelKey = api.OrderLabel, label
	}
	return r
}

// drawReport reports the health of an object on one of its clusters, if it has any.
func drawReport(t *rapid.T, p *planner, key api.Key, now time.Time) {
	d, err := p.attended(key)
	if err != nil {
		return
	}
	at, _ := whereIs(d.result())
	if len(at.clusters) == 0 {
		return
	}
	d.report(p, api.HealthReport{
		Cluster: rapid.SampledFrom(at.clusters).Draw(t, "reported"),
		Status:  rapid.SampledFrom([]api.HealthStatus{api.Healthy, api.Healthy, api.Unhealthy, api.HealthUnknown}).Draw(t, "status"),
	}, now)
}

// drawApproval approves a rollout, if one is under way.
func drawApproval(t *rapid.T, p *planner, key api.Key, now time.Time) {
	d, err := p.attended(key)
	if err != nil || d.underway() == nil {
		return
	}
	r := d.underway()
	approved, err := movement.Approve(key, r, api.RolloutApproval{Revision: r.Revision, Step: rapid.Int64Range(0, r.TotalSteps).Draw(t, "step")}, now)
	if err != nil {
		t.Fatal(err)
	}
	if approved != r {
		d.advance(p, approved)
	}
}
