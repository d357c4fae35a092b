package httpapi

import (
	"context"
	"errors"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
)

type approveInput struct {
	Target  operation.Target
	Payload operation.Payload
	Wait    string `query:"wait" doc:"How long to wait for the resulting decision: default 10s, at most 60s, 0s to not wait."`
}

// approve approves steps of a rollout, or has a step tried again. It needs the right to write the
// object.
func (r *reports) approve(ctx context.Context, info api.KindInfo, in *approveInput) (*objectOutput, error) {
	wait, err := operation.ParseWait(in.Wait, operation.DefaultWait)
	if err != nil {
		return nil, err
	}
	key := in.Target.Key(info.Kind)
	who := auth.Of(ctx)
	if err := who.MayWriteKey(key); err != nil {
		return nil, err
	}
	approval := &api.RolloutApproval{}
	var unread api.FieldErrors
	if err := operation.Decode(in.Payload.Data, approval); err != nil && !errors.As(err, &unread) {
		return nil, err
	}
	if err := unread.And(approval.Validate()).Err(); err != nil {
		return nil, err
	}
	entry := r.fleet.Snapshot().Get(key)
	if entry == nil {
		return nil, r.view.notFound(key)
	}
	if err := who.MayWrite(entry.Object); err != nil {
		return nil, err
	}
	revision, err := r.decisions.ApproveRollout(ctx, key, *approval)
	return r.consequences(ctx, entry.Object, revision, wait, err)
}
