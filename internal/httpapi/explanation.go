package httpapi

import (
	"context"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
)

type explainInput struct {
	Target operation.Target
}

type explainOutput struct {
	Body *api.Explanation
}

func (o *objects) explain(ctx context.Context, info api.KindInfo, in *explainInput) (*explainOutput, error) {
	key := in.Target.Key(info.Kind)
	who := auth.Of(ctx)
	if err := o.rights.MayReadKey(who, key); err != nil {
		return nil, err
	}
	entry := o.fleet.Snapshot().Get(key)
	if entry == nil {
		return nil, o.view.notFound(key)
	}
	if err := o.rights.MayRead(who, entry.Object); err != nil {
		return nil, err
	}
	explanation, err := o.decisions.Explain(key)
	if err != nil {
		if o.fleet.Snapshot().Get(key) == nil {
			return nil, o.view.notFound(key) // deleted in between
		}
		return nil, err
	}
	return &explainOutput{o.rights.Visible(who, explanation)}, nil
}
