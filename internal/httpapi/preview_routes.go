package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/reconcile/previewcommit"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// previews keeps decisions that were shown before anything was written, and commits exactly these
// or fails.
type previews struct {
	api         *operation.API
	store       Store
	codec       Codec
	fleet       *fleet.Fleet
	rights      auth.Rights
	decisions   Decisions
	commits     *previewcommit.Committer
	waits       *decisionWaiter
	changes     *changes
	maxPreviews int
	logger      *slog.Logger
	now         func() time.Time
}

func (ps *previews) routes() {
	create := operation.Declare(auth.AccessRead, huma.Operation{
		OperationID: "create-preview", Method: http.MethodPost, Path: "/v1/previews", Tags: []string{"preview"},
		Summary:       "Preview the decision for a placement, a workload or a propagation policy",
		Description:   "Makes the decision without writing the object, and keeps it for a day. A PUT of the same object with the token in the header Preview-Token commits exactly this decision, or returns 412. A document without kind is a placement. For a propagation policy, the bindings of up to " + strconv.Itoa(previewcommit.MaxBindings) + " workloads are committed together with it. If there are more, the PUT compares them, and they are decided after the policy is written.",
		DefaultStatus: http.StatusCreated, MaxBodyBytes: ps.api.MaxBody,
		Errors: []int{http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusInsufficientStorage},
	})
	operation.Register(ps.api, create, ps.createPreview)
	documents := &huma.Schema{}
	for _, kind := range previewedKinds {
		info, _ := api.LookupKind(kind)
		documents.OneOf = append(documents.OneOf, ps.api.Schema(info.New()))
	}
	ps.api.DescribeBody(create, documents, true)
	operation.Register(ps.api, operation.Declare(auth.AccessRead, huma.Operation{
		OperationID: "get-preview", Method: http.MethodGet, Path: "/v1/previews/{id}", Tags: []string{"preview"},
		Summary: "Read a preview", Errors: []int{http.StatusNotFound},
	}), ps.getPreview)
}

type createPreviewInput struct {
	Payload operation.Payload
}

type previewOutput struct {
	Status int
	Body   *api.Preview
}

func (ps *previews) createPreview(ctx context.Context, in *createPreviewInput) (*previewOutput, error) {
	intent, err := decodePreviewed(in.Payload.Data)
	if err != nil {
		return nil, err
	}
	key := api.KeyOf(intent)
	who := auth.Of(ctx)
	if err := who.MayReadIn(key.Kind, key.Namespace); err != nil {
		return nil, err
	}
	ps.waits.catchUp(ctx)
	current, err := ps.changes.load(ctx, key)
	if err != nil {
		return nil, err
	}
	var before api.Object
	if current != nil {
		before = current.object
	}
	if err := ps.rights.MayRefer(who, intent, before); err != nil {
		return nil, err
	}
	p := &preview{Object: ps.intended(ctx, intent, current), OwnUID: current == nil}
	if err := ps.decide(ctx, p); err != nil {
		return nil, err
	}
	if err := ps.keepPreview(ctx, p); err != nil {
		return nil, err
	}
	return &previewOutput{Status: http.StatusCreated, Body: p.shown(ps.rights, who)}, nil
}

// decide makes the decision of a preview.
func (ps *previews) decide(ctx context.Context, p *preview) error {
	var explanation *api.Explanation
	var err error
	switch object := p.Object.(type) {
	case *api.Placement:
		p.Current = object.Status.Clusters
		object.Status, explanation, err = ps.decisions.Preview(object)
	case *api.Workload:
		p.Current, p.CurrentReplicas = object.Status.Names(), object.Status.ReplicasByCluster()
		object.Status, explanation, err = ps.decisions.PreviewWorkload(ctx, object)
	case *api.PropagationPolicy:
		ctx, cancel := context.WithTimeout(ctx, simulationTime)
		defer cancel()
		var workloads map[api.Key]api.PreviewedWorkload
		workloads, err = ps.decisions.PreviewPolicy(ctx, object)
		p.Bindings = previewcommit.Bindings(workloads)
	}
	if err != nil {
		return err
	}
	if explanation != nil {
		p.Summary = explanation.Summary
	}
	return nil
}

// decodePreviewed decodes an object as a PUT to the path in the document would.
func decodePreviewed(data []byte) (api.Object, error) {
	var head struct {
		Kind     api.Kind `json:"kind"`
		Metadata struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(data, &head) // errors are reported below
	info, _ := api.LookupKind(cmp.Or(head.Kind, api.KindPlacement))
	if !slices.Contains(previewedKinds, info.Kind) {
		return nil, problem.Invalid("kind", "%q has no decision to preview, must be one of %q", string(head.Kind), previewedKinds)
	}
	key := api.Key{Kind: info.Kind, Namespace: head.Metadata.Namespace, Name: head.Metadata.Name}
	if key.Namespace == "" && info.Scope == api.Namespaced {
		key.Namespace = api.DefaultNamespace
	}
	return decodeIntent(info, key, data)
}

// intended returns an object as a PUT would store it now, with its current status.
func (ps *previews) intended(ctx context.Context, intent api.Object, current *stored) api.Object {
	now := ps.now().UTC()
	if current == nil {
		object := intent.Copy()
		created(ctx, object.Meta(), now)
		return object
	}
	if api.SameIntent(current.object, intent) {
		return current.object
	}
	object := intent.Copy()
	replaced(ctx, object.Meta(), *current.object.Meta(), now)
	carryStatus(object, current.object)
	return object
}

// carryStatus copies the status of another object of the same kind.
func carryStatus(to, from api.Object) {
	reflect.ValueOf(to.StatusPart()).Elem().Set(reflect.ValueOf(from.StatusPart()).Elem())
}

type getPreviewInput struct {
	ID string `path:"id" doc:"ID of the preview, which is also its token."`
}

func (ps *previews) getPreview(ctx context.Context, in *getPreviewInput) (*previewOutput, error) {
	who := auth.Of(ctx)
	if err := who.MayReadSomething(); err != nil {
		return nil, err
	}
	p, _, err := ps.readPreview(ctx, in.ID)
	if errors.Is(err, store.ErrUnavailable) {
		p, err = ps.pictured(in.ID)
	}
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, problem.New(api.ProblemPreviewNotFound, "the preview does not exist or has expired: plan again")
	}
	if err := who.MayRead(p.Object); err != nil {
		return nil, err
	}
	return &previewOutput{Status: http.StatusOK, Body: p.shown(ps.rights, who)}, nil
}
