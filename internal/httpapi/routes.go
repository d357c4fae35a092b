package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/arktos"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

const openAPIPath = "/v1/openapi.json"

// routes is the handler behind authentication.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	s.api = operation.New(mux, s.openAPIConfig(), s.options.MaxBodyBytes, s.answer)
	for _, info := range api.Kinds {
		s.kindRoutes(info)
	}
	s.decisionRoutes()
	s.reportRoutes()
	s.cloudRoutes()
	s.spotRoutes()
	arktos.Register(s.api, arktosBackend{s}, s.fleet, s.options.Faults)
	s.previewRoutes()
	s.otherRoutes()
	s.describeBackup()
	describeFreshness(s.api.Document())
	describeDeadline(s.api.Document())
	document := operation.EncodeJSON(s.api.Document())
	mux.HandleFunc("GET "+openAPIPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(document) // the client went away: there is nobody to tell
	})
	mux.HandleFunc("GET "+backupPath, s.backup)
	mux.HandleFunc("GET /healthz", health)
	mux.HandleFunc("GET /readyz", s.readiness)
	mux.Handle("GET /metrics", s.metricsHandler())
	return s.dispatch(mux)
}

// dispatch passes a request to its route, and answers in our form where there
// is none.
func (s *Server) dispatch(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fallback, pattern := mux.Handler(r)
		if pattern == "" {
			// The mux knows whether another method would do; what it writes about
			// that is text.
			probe := &discardedAnswer{header: http.Header{}}
			fallback.ServeHTTP(probe, r)
			problem.Write(w, noRoute(probe))
			return
		}
		_, route, _ := strings.Cut(pattern, " ")
		requestOf(r.Context()).route = cmp.Or(route, pattern)
		mux.ServeHTTP(w, r)
	})
}

func noRoute(probe *discardedAnswer) *problem.Problem {
	if probe.status == http.StatusMethodNotAllowed {
		allow := probe.header.Get("Allow")
		return problem.New(api.ProblemMethodNotAllowed, "this path takes %s", allow).WithHeader("Allow", allow)
	}
	if probe.status >= 300 && probe.status < 400 {
		return problem.New(api.ProblemUnknownPath, "there is nothing at this path: write it without empty parts, \".\" and \"..\"")
	}
	return problem.New(api.ProblemUnknownPath, "there is nothing at this path; %s describes the API", openAPIPath)
}

// discardedAnswer keeps the status and the header of an answer.
type discardedAnswer struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (d *discardedAnswer) Header() http.Header { return d.header }

// WriteHeader implements http.ResponseWriter.
func (d *discardedAnswer) WriteHeader(status int) { d.status = cmp.Or(d.status, status) }

// Write implements http.ResponseWriter.
func (d *discardedAnswer) Write(data []byte) (int, error) { return len(data), nil }

// kindRoutes adds what every kind has: its objects and its collections.
func (s *Server) kindRoutes(info api.KindInfo) {
	schema := s.api.Schema(info.New())
	for _, within := range []bool{false, true} {
		if within && info.Scope == api.Global {
			continue
		}
		collection := s.collectionPath(info, within)
		operation.Register(s.api, s.api.OfKind(info, http.MethodGet, collection, "list", "List objects of kind "+string(info.Kind), operation.ListOf(schema)),
			func(ctx context.Context, in *listInput) (*listOutput, error) { return s.list(ctx, info, in) })
		if !within && (info.Scope == api.Namespaced || info.Scope == api.OfCluster) {
			continue // a list of every namespace or cluster, but no objects
		}
		path := collection + "/{name}"
		operation.Register(s.api, s.api.OfKind(info, http.MethodGet, path, "get", "Read a "+string(info.Kind)+", or wait for its next change", schema),
			func(ctx context.Context, in *getInput) (*objectOutput, error) { return s.get(ctx, info, in) })
		put := s.api.OfKind(info, http.MethodPut, path, "put", "Create or replace a "+string(info.Kind), schema)
		put.Responses["201"] = operation.JSONResponse("Created", schema)
		put.MaxBodyBytes = s.options.MaxBodyBytes
		if slices.Contains(previewedKinds, info.Kind) {
			operation.Register(s.api, put, func(ctx context.Context, in *putPreviewedInput) (*objectOutput, error) {
				return s.put(ctx, info, &in.PutInput, in.PreviewToken)
			})
		} else {
			operation.Register(s.api, put, func(ctx context.Context, in *PutInput) (*objectOutput, error) { return s.put(ctx, info, in, "") })
		}
		s.api.DescribeBody(put, schema, true)
		operation.Register(s.api, s.api.OfKind(info, http.MethodDelete, path, "delete", "Delete a "+string(info.Kind), nil),
			func(ctx context.Context, in *deleteInput) (*struct{}, error) { return s.delete(ctx, info, in) })
	}
}

// collectionPath is the pattern of a collection, within a namespace or a cluster
// or not.
func (s *Server) collectionPath(info api.KindInfo, within bool) string {
	switch {
	case within && info.Scope == api.OfCluster:
		return api.CollectionPath(info.Kind, "{cluster}")
	case within:
		return api.CollectionPath(info.Kind, "{namespace}")
	}
	return api.CollectionPath(info.Kind, "")
}

// decidedKinds are those that get a decision of their own, and may ask for a fresh
// one; explainedKinds are those whose decision is explained. A cluster that was
// created on a cloud stays there.
var (
	decidedKinds   = []api.Kind{api.KindPlacement, api.KindWorkload, api.KindMagnumCluster}
	explainedKinds = append([]api.Kind{api.KindCluster}, decidedKinds...)
)

// decisionRoutes adds what only objects with a decision have.
func (s *Server) decisionRoutes() {
	for _, kind := range explainedKinds {
		info, _ := api.LookupKind(kind)
		path := s.collectionPath(info, info.Scope != api.Global) + "/{name}"
		operation.Register(s.api, s.api.OfKind(info, http.MethodGet, path+"/explanation", "explain", "Say for every candidate why it was chosen, passed over or rejected", s.api.Schema(api.Explanation{})),
			func(ctx context.Context, in *explainInput) (*explainOutput, error) { return s.explain(ctx, info, in) })
	}
	for _, kind := range decidedKinds {
		info, _ := api.LookupKind(kind)
		path := s.collectionPath(info, true) + "/{name}"
		operation.Register(s.api, s.api.OfKind(info, http.MethodPost, path+"/reschedule", "reschedule", "Ask for a fresh decision", s.api.Schema(info.New())),
			func(ctx context.Context, in *rescheduleInput) (*objectOutput, error) {
				return s.reschedule(ctx, info, in)
			})
	}
}

// reportRoutes adds the ways in which agents report.
func (s *Server) reportRoutes() {
	clusters, _ := api.LookupKind(api.KindCluster)
	heartbeat := s.api.OfKind(clusters, http.MethodPost, s.collectionPath(clusters, false)+"/{name}/heartbeat", "report", "Report that a cluster is alive, and its amounts", s.api.Schema(&api.Cluster{}))
	heartbeat.MaxBodyBytes = s.options.MaxBodyBytes
	operation.Register(s.api, heartbeat, s.heartbeat)
	s.api.DescribeBody(heartbeat, s.api.Schema(api.Heartbeat{}), false)

	workloads, _ := api.LookupKind(api.KindWorkload)
	health := s.api.OfKind(workloads, http.MethodPut, s.collectionPath(workloads, true)+"/{name}/health", "report-health", "Report how a workload is doing on one of its clusters", s.api.Schema(&api.Workload{}))
	health.MaxBodyBytes = s.options.MaxBodyBytes
	operation.Register(s.api, health, s.reportHealth)
	s.api.DescribeBody(health, s.api.Schema(api.HealthReport{}), true)
}

func (s *Server) otherRoutes() {
	simulate := operation.Declare(auth.AccessRead, huma.Operation{
		OperationID: "simulate", Method: http.MethodPost, Path: "/v1/simulations", Tags: []string{"simulation"},
		Summary:      "Decide without changing anything",
		MaxBodyBytes: s.options.MaxSimulationBytes, Middlewares: huma.Middlewares{s.oneOfFew},
		Responses: map[string]*huma.Response{"200": operation.JSONResponse("OK", s.api.Schema(api.SimulationResult{}))},
		Errors:    []int{http.StatusUnprocessableEntity, http.StatusTooManyRequests},
	})
	operation.Register(s.api, simulate, s.simulate)
	s.api.DescribeBody(simulate, s.api.Schema(api.Simulation{}), true)

	operation.Register(s.api, operation.Declare(auth.AccessRead, huma.Operation{
		OperationID: "watch", Method: http.MethodGet, Path: watchPath, Tags: []string{"watch"},
		Summary:     "Stream changes as server-sent events",
		Description: "The events are put and delete, their data is an Event. The id is the revision to resume from. A watch that is resumed may repeat events.",
		Responses: map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
			"text/event-stream": {Schema: s.api.Schema(api.Event{})},
		}}},
		Errors: []int{http.StatusGone, http.StatusUnprocessableEntity},
	}), s.watch)
	operation.Register(s.api, operation.Declare(auth.AccessRead, huma.Operation{
		OperationID: "describe-server", Method: http.MethodGet, Path: "/v1/server", Tags: []string{"server"},
		Summary: "Describe the server",
	}), s.describe)

	create := operation.MayEndToken(operation.Declare(auth.AccessAdminister, huma.Operation{
		OperationID: "create-token", Method: http.MethodPost, Path: "/v1/tokens", Tags: []string{"token"},
		Summary: "Create a token", DefaultStatus: http.StatusCreated, MaxBodyBytes: s.options.MaxBodyBytes,
		Errors: []int{http.StatusUnprocessableEntity},
	}))
	operation.Register(s.api, create, s.createToken)
	s.api.DescribeBody(create, s.api.Schema(auth.TokenRequest{}), true)
	operation.Register(s.api, operation.Declare(auth.AccessAdminister, huma.Operation{
		OperationID: "list-tokens", Method: http.MethodGet, Path: "/v1/tokens", Tags: []string{"token"},
		Summary: "List the tokens, without their secrets",
	}), s.listTokens)
	operation.Register(s.api, operation.Declare(auth.AccessAdminister, huma.Operation{
		OperationID: "revoke-token", Method: http.MethodDelete, Path: "/v1/tokens/{id}", Tags: []string{"token"},
		Summary: "Revoke a token", Errors: []int{http.StatusNotFound},
	}), s.revokeToken)
}
