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

func (s *Server) explain(ctx context.Context, info api.KindInfo, in *explainInput) (*explainOutput, error) {
	key := in.Target.Key(info.Kind)
	who := auth.Of(ctx)
	if err := s.rights.MayReadKey(who, key); err != nil {
		return nil, err
	}
	entry := s.fleet.Snapshot().Get(key)
	if entry == nil {
		return nil, s.notFound(key)
	}
	if err := s.rights.MayRead(who, entry.Object); err != nil {
		return nil, err
	}
	explanation, err := s.decisions.Explain(key)
	if err != nil {
		if s.fleet.Snapshot().Get(key) == nil {
			return nil, s.notFound(key) // deleted in between
		}
		return nil, err
	}
	return &explainOutput{s.rights.Visible(who, explanation)}, nil
}
