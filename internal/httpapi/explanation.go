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
	if err := s.mayReadKey(who, key); err != nil {
		return nil, err
	}
	entry := s.fleet.Snapshot().Get(key)
	if entry == nil {
		return nil, s.notFound(key)
	}
	if err := s.mayRead(who, entry.Object); err != nil {
		return nil, err
	}
	explanation, err := s.decisions.Explain(key)
	if err != nil {
		if s.fleet.Snapshot().Get(key) == nil {
			return nil, s.notFound(key) // deleted in between
		}
		return nil, err
	}
	return &explainOutput{s.visible(who, explanation)}, nil
}

// visible leaves out the candidates that the reader may not know of, which are not
// counted, either, and the values of metrics that are not for the reader.
func (s *Server) visible(who identity, explanation *api.Explanation) *api.Explanation {
	if !who.bound() {
		return explanation
	}
	snapshot := s.fleet.Snapshot()
	shown := *explanation
	shown.Candidates = slices.Clone(explanation.Candidates)
	discloseValues(who, shown.Candidates)
	kind := candidateKind(explanation)
	if kind == api.KindOpenStackProject {
		return &shown // of the namespace that may be read
	}
	shown.Candidates = slices.DeleteFunc(shown.Candidates, func(c api.Candidate) bool {
		entry := snapshot.Get(api.Key{Kind: kind, Name: c.Cluster})
		return entry != nil && !who.sees(owners(entry.Object)...)
	})
	shown.Total -= len(explanation.Candidates) - len(shown.Candidates)
	shown.Rejections = slices.DeleteFunc(slices.Clone(explanation.Rejections), func(r api.Rejection) bool {
		return r.Filter == api.OwnershipFilter
	})
	return &shown
}

// candidateKind is what an explanation's candidates are.
func candidateKind(x *api.Explanation) api.Kind {
	if x.Kind == api.KindCluster {
		return api.KindCloud
	}
	if x.Kind == api.KindMagnumCluster {
		return api.KindOpenStackProject
	}
	return api.KindCluster
}
