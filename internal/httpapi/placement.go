package httpapi

import (
	"context"
	"net/http"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

type explainInput struct {
	Target Target
}

type explainOutput struct {
	Body *api.Explanation
}

func (s *Server) explain(ctx context.Context, in *explainInput) (*explainOutput, error) {
	key := in.Target.key(api.KindPlacement)
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

type rescheduleInput struct {
	Target  Target
	IfMatch string `header:"If-Match" doc:"Only if the placement is as it was at this resource_version, given in double quotes."`
	Wait    string `query:"wait" doc:"How long to wait for the decision: 10s when absent, at most 60s, 0s not at all."`
}

// reschedule asks for a fresh decision. The spec stays, so the generation does.
func (s *Server) reschedule(ctx context.Context, in *rescheduleInput) (*objectOutput, error) {
	wait, err := parseWait(in.Wait, defaultWait)
	if err != nil {
		return nil, err
	}
	pre, err := parsePrecondition(in.IfMatch, "")
	if err != nil {
		return nil, err
	}
	key := in.Target.key(api.KindPlacement)
	who := identityOf(ctx)
	if err := who.mayWriteKey(key); err != nil {
		return nil, err
	}
	if !addressable(key) {
		return nil, notFound(key)
	}
	result, err := s.change(ctx, key, precondition{}, func(current *stored) (*successor, error) {
		if current == nil {
			return nil, notFound(key)
		}
		if err := who.mayWrite(current.object); err != nil {
			return nil, err
		}
		if err := pre.check(current); err != nil {
			return nil, err
		}
		object := current.object.Copy()
		object.Meta().RescheduleRequests++
		return &successor{object: object}, nil
	})
	if err != nil {
		return nil, err
	}
	return s.settled(ctx, result, wait, http.StatusOK), nil
}
