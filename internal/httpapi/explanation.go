package httpapi

import (
	"context"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

type explainInput struct {
	Target Target
}

type explainOutput struct {
	Body *api.Explanation
}

func (s *Server) explain(ctx context.Context, info api.KindInfo, in *explainInput) (*explainOutput, error) {
	key := in.Target.key(info.Kind)
	who := identityOf(ctx)
	if err := who.mayReadNamespace(key.Namespace); err != nil {
		return nil, err
	}
	if s.fleet.Snapshot().Get(key) == nil {
		return nil, notFound(key)
	}
	explanation, err := s.decisions.Explain(key)
	if err != nil {
		if s.fleet.Snapshot().Get(key) == nil {
			return nil, notFound(key) // deleted in between
		}
		return nil, err
	}
	return &explainOutput{s.visible(who, explanation)}, nil
}

// visible leaves out the candidates that the reader may not know of. They are
// still counted.
func (s *Server) visible(who identity, explanation *api.Explanation) *api.Explanation {
	if !who.bound() {
		return explanation
	}
	snapshot := s.fleet.Snapshot()
	shown := *explanation
	shown.Candidates = slices.DeleteFunc(slices.Clone(explanation.Candidates), func(c api.Candidate) bool {
		entry := snapshot.Get(api.Key{Kind: api.KindCluster, Name: c.Cluster})
		return entry != nil && !who.sees(owner(entry.Object))
	})
	return &shown
}
