package httpapi

import (
	"context"
	"net/http"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
)

type rescheduleInput struct {
	Target  operation.Target
	IfMatch string `header:"If-Match" doc:"Proceed only if the object still has this resource_version, in double quotes."`
	Wait    string `query:"wait" doc:"How long to wait for the decision: default 10s, at most 60s, 0s to not wait."`
}

// reschedule requests a new decision. The spec and therefore the generation are unchanged.
func (o *objects) reschedule(ctx context.Context, info api.KindInfo, in *rescheduleInput) (*objectOutput, error) {
	wait, err := operation.ParseWait(in.Wait, operation.DefaultWait)
	if err != nil {
		return nil, err
	}
	pre, err := parsePrecondition(in.IfMatch, "")
	if err != nil {
		return nil, err
	}
	key := in.Target.Key(info.Kind)
	who := auth.Of(ctx)
	if err := who.MayWriteKey(key); err != nil {
		return nil, err
	}
	if !operation.Addressable(key) {
		return nil, o.view.notFound(key)
	}
	result, err := o.changes.change(ctx, key, precondition{}, func(current *stored) (*successor, error) {
		if current == nil {
			return nil, o.view.notFound(key)
		}
		if err := who.MayWrite(current.object); err != nil {
			return nil, err
		}
		if err := pre.check(current); err != nil {
			return nil, err
		}
		object := current.object.Copy()
		meta := object.Meta()
		meta.RescheduleRequests++
		meta.WrittenBy = actorOf(ctx)
		return &successor{object: object}, nil
	})
	if err != nil {
		return nil, err
	}
	return o.changes.outcome(ctx, result, wait, http.StatusOK), nil
}
