package httpapi

import (
	"context"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth/jwt"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
)

// objects serves requests about objects of every kind.
type objects struct {
	api       *operation.API
	store     Store
	codec     Codec
	fleet     *fleet.Fleet
	history   History // nil = none is kept
	rights    auth.Rights
	sessions  *auth.Sessions
	decisions Decisions
	view      *view
	waits     *decisionWaiter
	events    *eventLog
	changes   *changes
	previews  *previews
	listed    *listedFleets
	network   *addresspolicy.Policy
	issuers   *jwt.Verifier // nil = none is trusted
	now       func() time.Time
	// slots are those of simulations: an explanation of the past costs as much.
	slots *semaphore.Weighted
}

// routes adds the routes of all kinds, and those of kinds with a decision.
func (o *objects) routes() {
	o.api.Schema(api.List[api.Object]{}) // the document names it, for clients that are made from it
	for _, info := range api.Kinds {
		o.kindRoutes(info)
	}
	o.decisionRoutes()
}

// kindRoutes adds the routes that every kind has: objects and collections.
func (o *objects) kindRoutes(info api.KindInfo) {
	schema := o.api.Schema(info.New())
	for _, within := range []bool{false, true} {
		if within && info.Scope == api.Global {
			continue
		}
		collection := collectionPath(info, within)
		operation.Register(o.api, o.api.OfKind(info, http.MethodGet, collection, "list", "List objects of kind "+string(info.Kind), operation.ListOf(schema)),
			func(ctx context.Context, in *listInput) (*listOutput, error) { return o.list(ctx, info, in) })
		if !within && (info.Scope == api.Namespaced || info.Scope == api.OfCluster) {
			continue // a list over all namespaces or clusters has no objects
		}
		path := collection + "/{name}"
		operation.Register(o.api, o.api.OfKind(info, http.MethodGet, path, "get", "Read a "+string(info.Kind)+", or wait for its next change", schema),
			func(ctx context.Context, in *getInput) (*objectOutput, error) { return o.get(ctx, info, in) })
		put := o.api.OfKind(info, http.MethodPut, path, "put", "Create or replace a "+string(info.Kind), schema)
		put.Responses["201"] = operation.JSONResponse("Created", schema)
		put.MaxBodyBytes = o.api.MaxBody
		if slices.Contains(previewedKinds, info.Kind) {
			operation.Register(o.api, put, func(ctx context.Context, in *putPreviewedInput) (*objectOutput, error) {
				return o.put(ctx, info, &in.PutInput, in.PreviewToken)
			})
		} else {
			operation.Register(o.api, put, func(ctx context.Context, in *PutInput) (*objectOutput, error) { return o.put(ctx, info, in, "") })
		}
		o.api.DescribeBody(put, schema, true)
		operation.Register(o.api, o.api.OfKind(info, http.MethodDelete, path, "delete", "Delete a "+string(info.Kind), nil),
			func(ctx context.Context, in *deleteInput) (*struct{}, error) { return o.delete(ctx, info, in) })
	}
}

// collectionPath returns the pattern of a collection, within a namespace or cluster or not.
func collectionPath(info api.KindInfo, within bool) string {
	switch {
	case within && info.Scope == api.OfCluster:
		return api.CollectionPath(info.Kind, "{cluster}")
	case within:
		return api.CollectionPath(info.Kind, "{namespace}")
	}
	return api.CollectionPath(info.Kind, "")
}

// decisionRoutes adds the routes of objects with a decision.
func (o *objects) decisionRoutes() {
	for _, kind := range api.ExplainedKinds {
		info, _ := api.LookupKind(kind)
		path := collectionPath(info, info.Scope != api.Global) + "/{name}"
		explain := o.api.OfKind(info, http.MethodGet, path+"/explanation", "explain", "Explain for every candidate why it was chosen, passed over or rejected", o.api.Schema(api.Explanation{}))
		explain.Errors = append(explain.Errors, http.StatusGone, http.StatusTooManyRequests)
		operation.Register(o.api, explain,
			func(ctx context.Context, in *explainInput) (*explainOutput, error) { return o.explain(ctx, info, in) })
	}
	for _, kind := range api.DecidedKinds {
		info, _ := api.LookupKind(kind)
		path := collectionPath(info, true) + "/{name}"
		operation.Register(o.api, o.api.OfKind(info, http.MethodPost, path+"/reschedule", "reschedule", "Request a new decision", o.api.Schema(info.New())),
			func(ctx context.Context, in *rescheduleInput) (*objectOutput, error) {
				return o.reschedule(ctx, info, in)
			})
	}
}
