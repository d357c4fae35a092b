package httpapi

import (
	"context"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
)

type explainInput struct {
	Target operation.Target
	At     string `query:"at" doc:"Explain the decision as it was: at a store revision, such as that of an entry of the history, or at a time (RFC 3339). Possible as long as the store keeps the revision (keep-revisions)."`
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
	if in.At != "" {
		explanation, err := o.explainPast(ctx, who, key, in.At)
		if err != nil {
			return nil, err
		}
		return &explainOutput{explanation}, nil
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
