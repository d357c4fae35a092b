package reconcile

import (
	"context"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/movement"
)

// ApproveRollout approves steps of the rollout of a placement or workload, or has a step tried again,
// and returns when the consequences are durable and in the fleet, with their revision. The error is
// ErrNotFound, an *api.ApprovalError if something else is under way, or that of ctx.
func (r *Reconciler) ApproveRollout(ctx context.Context, key api.Key, approval api.RolloutApproval) (revision int64, err error) {
	err = r.tell(ctx, "approve a rollout of "+key.String(), func(p *planner, now time.Time) error {
		d, err := p.attended(key)
		if err != nil {
			return err
		}
		underway := d.underway()
		approved, err := movement.Approve(key, underway, approval, now)
		if err != nil {
			return err //nolint:wrapcheck // it names the object
		}
		if approved != underway {
			d.advance(p, approved)
		}
		return nil
	})
	return r.options.Fleet.Snapshot().Revision(), err
}
