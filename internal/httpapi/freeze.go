package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
)

// freezeName is the name of the move window that a freeze is.
const freezeName = "freeze"

// freezes are the stop button: a move window that is open at once, for all decisions or those of a namespace.
type freezes struct {
	api     *operation.API
	changes *changes
	waits   *decisionWaiter
	now     func() time.Time
}

func (f *freezes) routes() {
	freeze := operation.Declare(auth.AccessWrite, huma.Operation{
		OperationID: "freeze", Method: http.MethodPost, Path: "/v1/freeze", Tags: []string{"move_window"},
		Summary: "Keep decisions where they are from now on", MaxBodyBytes: f.api.MaxBody,
		Description: `Writes the move window "freeze", of a namespace or of all. What has to move moves all the same. A second request changes its end and reason.`,
		Errors:      []int{http.StatusUnprocessableEntity},
	})
	operation.Register(f.api, freeze, f.freeze)
	f.api.DescribeBody(freeze, f.api.Schema(api.Freeze{}), true)
	operation.Register(f.api, operation.Declare(auth.AccessDelete, huma.Operation{
		OperationID: "thaw", Method: http.MethodDelete, Path: "/v1/freeze", Tags: []string{"move_window"},
		Summary: "End a freeze", Description: "Decisions that were held are made again.",
		Errors: []int{http.StatusNotFound},
	}), f.thaw)
}

type freezeInput struct {
	Payload operation.Payload
}

func (f *freezes) freeze(ctx context.Context, in *freezeInput) (*objectOutput, error) {
	var request api.Freeze
	if err := operation.Decode(in.Payload.Data, &request); err != nil {
		return nil, err
	}
	window := request.Window(freezeName)
	if err := request.Validate(f.now()).Err(); err != nil {
		return nil, err
	}
	who, key, status := auth.Of(ctx), api.KeyOf(window), http.StatusCreated
	if err := who.MayWrite(window); err != nil {
		return nil, err
	}
	result, err := f.changes.change(ctx, key, precondition{}, func(current *stored) (*successor, error) {
		next := window.Copy()
		if current == nil {
			created(ctx, next.Meta(), f.now().UTC())
			return &successor{object: next}, nil
		}
		status = http.StatusOK
		if api.SameIntent(current.object, next) {
			return nil, nil
		}
		replaced(ctx, next.Meta(), *current.object.Meta(), f.now().UTC())
		return &successor{object: next}, nil
	})
	if err != nil {
		return nil, err
	}
	return f.changes.outcome(ctx, result, operation.DefaultWait, status), nil
}

type thawInput struct {
	Namespace string `query:"namespace" doc:"Namespace whose freeze ends. If omitted, that of all namespaces."`
}

func (f *freezes) thaw(ctx context.Context, in *thawInput) (*struct{}, error) {
	revision, err := f.changes.remove(ctx, api.Key{Kind: api.KindMoveWindow, Namespace: in.Namespace, Name: freezeName}, precondition{})
	if err != nil {
		return nil, err
	}
	f.waits.await(ctx, revision, operation.DefaultWait)
	return nil, nil
}
