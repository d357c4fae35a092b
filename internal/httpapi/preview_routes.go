package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func (s *Server) previewRoutes() {
	create := huma.Operation{
		OperationID: "create-preview", Method: http.MethodPost, Path: "/v1/previews", Tags: []string{"preview"},
		Summary:       "Decide a placement without writing it, and keep the decision for a day",
		Description:   "A PUT of the same placement with the token in the header Preview-Token commits exactly this decision, or answers 412.",
		DefaultStatus: http.StatusCreated, MaxBodyBytes: s.options.MaxBodyBytes,
		Errors: []int{http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusInsufficientStorage},
	}
	register(s, create, s.createPreview)
	s.describeBody(create, s.schema(&api.Placement{}), true)
	register(s, huma.Operation{
		OperationID: "get-preview", Method: http.MethodGet, Path: "/v1/previews/{id}", Tags: []string{"preview"},
		Summary: "Read a preview", Errors: []int{http.StatusNotFound},
	}, s.getPreview)
}

type createPreviewInput struct {
	Payload Payload
}

type previewOutput struct {
	Status int
	Body   *api.Preview
}

func (s *Server) createPreview(ctx context.Context, in *createPreviewInput) (*previewOutput, error) {
	intent, err := decodePreviewed(in.Payload.data)
	if err != nil {
		return nil, err
	}
	key := api.KeyOf(intent)
	if err := identityOf(ctx).mayReadNamespace(key.Namespace); err != nil {
		return nil, err
	}
	s.catchUp(ctx)
	current, err := s.load(ctx, key)
	if err != nil {
		return nil, err
	}
	placement, err := s.intended(intent, current)
	if err != nil {
		return nil, err
	}
	p := &preview{Current: placement.Status.Clusters, OwnUID: current == nil}
	status, explanation, err := s.decisions.Preview(placement)
	if err != nil {
		return nil, err
	}
	if explanation != nil {
		p.Summary = explanation.Summary
	}
	placement.Status = status
	p.Placement = placement
	if err := s.keepPreview(ctx, p); err != nil {
		return nil, err
	}
	return &previewOutput{Status: http.StatusCreated, Body: p.shown()}, nil
}

// catchUp lets the decisions reach what the fleet shows: a preview that starts
// from less would be refused later.
func (s *Server) catchUp(ctx context.Context) {
	bounded, cancel := s.waiting(ctx, pictureWait)
	defer cancel()
	_ = s.decisions.Settle(bounded, s.fleet.Snapshot().Revision()) // a preview that is a little behind is one all the same
}

// decodePreviewed reads the placement as a PUT would, with the path that the
// document itself names, in the default namespace where it names none.
func decodePreviewed(data []byte) (*api.Placement, error) {
	var head struct {
		Metadata struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(data, &head) // what is wrong with it is said below
	info, _ := api.LookupKind(api.KindPlacement)
	key := api.Key{Kind: api.KindPlacement, Namespace: head.Metadata.Namespace, Name: head.Metadata.Name}
	if key.Namespace == "" {
		key.Namespace = api.DefaultNamespace
	}
	object, err := decodeIntent(info, key, data)
	if err != nil {
		return nil, err
	}
	placement, ok := object.(*api.Placement)
	if !ok {
		return nil, newProblem(http.StatusUnprocessableEntity, "only placements have previews")
	}
	return placement, nil
}

// intended is the placement as a PUT would store it now, with its present
// status.
func (s *Server) intended(intent *api.Placement, current *stored) (*api.Placement, error) {
	now := s.now().UTC()
	placement := *intent
	if current == nil {
		created(placement.Meta(), now)
		return &placement, nil
	}
	was, ok := current.object.(*api.Placement)
	if !ok {
		return nil, notFound(api.KeyOf(intent))
	}
	if api.SameIntent(was, intent) {
		unchanged := *was
		return &unchanged, nil
	}
	replaced(placement.Meta(), was.Metadata, now)
	placement.Status = was.Status
	return &placement, nil
}

type getPreviewInput struct {
	ID string `path:"id" doc:"The id, which is also the token."`
}

func (s *Server) getPreview(ctx context.Context, in *getPreviewInput) (*previewOutput, error) {
	who := identityOf(ctx)
	if err := who.mayReadNamespace(""); err != nil {
		return nil, err
	}
	p, _, err := s.readPreview(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, newProblem(http.StatusNotFound, "the preview does not exist or has expired: plan again")
	}
	if err := who.mayRead(p.Placement); err != nil {
		return nil, err
	}
	return &previewOutput{Status: http.StatusOK, Body: p.shown()}, nil
}
