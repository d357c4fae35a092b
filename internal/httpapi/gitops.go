package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/gitops"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

const (
	integrationsPath = "/integrations/"
	argocdPath       = integrationsPath + "argocd/"
)

// maxFluxAnswer is how much of an answer flux-operator reads.
const maxFluxAnswer = 900 << 10

// integrations answers GitOps controllers from memory, on every server.
type integrations struct {
	api    *operation.API
	store  Store
	fleet  *fleet.Fleet
	rights auth.Rights
}

type pluginInput struct {
	Namespace string `path:"namespace" doc:"Namespace of the decisions."`
	Payload   operation.Payload
}

type pluginOutput struct{ Body api.PluginAnswer }

type fluxInput struct {
	Namespace string `path:"namespace" doc:"Namespace of the decisions."`
	gitops.FluxQuery
}

type fluxOutput struct{ Body any } // *fluxAnswer

func (i *integrations) routes() {
	const rule = "The controller deletes what it has made for a cluster that is missing in the answer. So an answer has no clusters only if the specs ask for none, or allow_empty is set. Otherwise it is an error, and the controller keeps what it has."
	errors := []int{http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusInternalServerError}
	plugin := operation.Declare(auth.AccessRead, huma.Operation{
		OperationID: "argocd-plugin", Method: http.MethodPost, Path: gitops.ArgoCDPath, Tags: []string{"gitops"},
		Summary: "Clusters of decisions, for the plugin generator of an Argo CD ApplicationSet", Description: rule,
		MaxBodyBytes: i.api.MaxBody, Errors: errors,
	})
	operation.Register(i.api, plugin, i.argocd)
	i.api.DescribeBody(plugin, i.api.Schema(api.PluginRequest{}), true)
	operation.Register(i.api, operation.Declare(auth.AccessRead, huma.Operation{
		OperationID: "flux-inputs", Method: http.MethodGet, Path: gitops.FluxPath, Tags: []string{"gitops"},
		Summary: "Clusters of decisions, for a ResourceSetInputProvider of flux-operator", Description: rule,
		Errors:    append(errors, http.StatusRequestEntityTooLarge),
		Responses: map[string]*huma.Response{"200": operation.JSONResponse("OK", i.api.Schema(api.FluxInputs{}))},
	}), i.flux)
}

func (i *integrations) argocd(ctx context.Context, in *pluginInput) (*pluginOutput, error) {
	// Later versions of Argo CD may send more; what users write must be known.
	var request struct {
		Input struct {
			Parameters json.RawMessage `json:"parameters"`
		} `json:"input"`
	}
	if err := json.Unmarshal(in.Payload.Data, &request); err != nil {
		return nil, problem.New(api.ProblemMalformed, "the body is not a request of a plugin generator: %s", err)
	}
	var parameters api.DecisionQuery
	if given := request.Input.Parameters; len(given) > 0 && string(given) != "null" {
		if err := operation.Decode(given, &parameters); err != nil {
			return nil, within("input.parameters.", err)
		}
	}
	query, err := gitops.NewQuery(in.Namespace, parameters)
	if err != nil {
		return nil, within("input.parameters.", err)
	}
	clusters, err := i.answer(ctx, query)
	if err != nil {
		return nil, err
	}
	return &pluginOutput{api.PluginAnswer{Output: api.PluginOutput{Parameters: clusters}}}, nil
}

// within puts the fields of an error under the part of the request that they are in.
func within(part string, err error) error {
	fields, ok := err.(api.FieldErrors) //nolint:errorlint // validation returns it as it is
	if !ok {
		return err
	}
	var under api.FieldErrors
	for _, f := range fields {
		under.Add(part+f.Field, "%s", f.Message)
	}
	return under
}

func (i *integrations) flux(ctx context.Context, in *fluxInput) (*fluxOutput, error) {
	query, err := in.Query(in.Namespace)
	if err != nil {
		return nil, err
	}
	clusters, err := i.answer(ctx, query)
	if err != nil {
		return nil, err
	}
	const narrower = "ask for fewer with decision_group, or for the objects one by one with name instead of selector"
	if len(clusters) > in.Limit {
		return nil, problem.New(api.ProblemTooLarge, "the answer has %d inputs, and flux-operator ignores those after the first %d: set both spec.filter.limit and the parameter limit in spec.url to at least %d, or %s",
			len(clusters), in.Limit, len(clusters), narrower)
	}
	text := operation.EncodeJSON(api.FluxInputs{Inputs: clusters})
	if len(text) > maxFluxAnswer {
		return nil, problem.New(api.ProblemTooLarge, "the answer has %d bytes for %d inputs, and flux-operator reads at most %d: %s",
			len(text), len(clusters), maxFluxAnswer, narrower)
	}
	return &fluxOutput{&fluxAnswer{text}}, nil
}

// answer answers a query for who makes a request.
func (i *integrations) answer(ctx context.Context, query *gitops.Query) ([]api.DecidedCluster, error) {
	who := auth.Of(ctx)
	for _, kind := range query.Kinds() {
		if err := i.rights.MayReadKey(who, api.Key{Kind: kind, Namespace: query.Namespace()}); err != nil {
			return nil, err
		}
	}
	if err := who.MayReadKind(api.KindCluster); err != nil {
		return nil, err
	}
	snapshot := i.fleet.Snapshot()
	source := gitops.Source{
		Objects: snapshot, Age: i.store.Age(snapshot.Revision()),
		MayRead: func(object api.Object) error { return i.rights.MayRead(who, object) },
	}
	clusters, err := source.Answer(query)
	if refused, ok := err.(*gitops.Refusal); ok { //nolint:errorlint // it is returned as it is
		p := problem.New(refused.Type, "%s", refused.Detail)
		if p.Status == http.StatusServiceUnavailable {
			p = p.WithHeader("Retry-After", "5")
		}
		return nil, p
	}
	return clusters, err
}

// fluxAnswer is an answer that was encoded to know its size.
type fluxAnswer struct{ text []byte }

// WriteJSON implements operation.Streamed.
func (a *fluxAnswer) WriteJSON(w io.Writer) error {
	_, err := w.Write(a.text)
	return err
}

// explainToControllers makes problems under /integrations/ readable for controllers: Argo CD shows the
// field message alone, and its documentation asks for 403 for a wrong token.
func explainToControllers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, integrationsPath) {
			next.ServeHTTP(w, r)
			return
		}
		r.Header.Del("Accept-Encoding") // problems are read here
		held := &problemHolder{ResponseWriter: w}
		next.ServeHTTP(held, r)
		if held.status == 0 {
			return
		}
		var p problem.Problem
		if err := json.Unmarshal(held.body.Bytes(), &p.Problem); err != nil {
			w.WriteHeader(held.status)
			_, _ = w.Write(held.body.Bytes()) // fails if the client has gone away
			return
		}
		if p.Type == api.ProblemUnauthenticated && strings.HasPrefix(r.URL.Path, argocdPath) {
			p = *problem.New(api.ProblemForbidden, "%s", p.Detail)
			w.Header().Del("WWW-Authenticate")
		}
		p.Message = p.Error()
		problem.Write(w, &p)
	})
}

// problemHolder holds back a problem; other responses pass.
type problemHolder struct {
	http.ResponseWriter
	status int // of the problem, 0 = it is none
	body   bytes.Buffer
}

// WriteHeader implements http.ResponseWriter.
func (h *problemHolder) WriteHeader(status int) {
	if h.Header().Get("Content-Type") == problem.MediaType {
		h.status = status
		return
	}
	h.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (h *problemHolder) Write(data []byte) (int, error) {
	if h.status != 0 {
		return h.body.Write(data)
	}
	return h.ResponseWriter.Write(data)
}

// Unwrap lets http.ResponseController reach the connection.
func (h *problemHolder) Unwrap() http.ResponseWriter { return h.ResponseWriter }
