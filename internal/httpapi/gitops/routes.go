package gitops

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

// Paths of the answers. Argo CD appends the end of argocdPath to the baseUrl that it has.
const (
	argocdPath = argocdPrefix + "{namespace}/api/v1/getparams.execute"
	fluxPath   = prefix + "flux/{namespace}/inputs"

	prefix       = "/integrations/"
	argocdPrefix = prefix + "argocd/"
)

// maxFluxAnswer is how much of an answer flux-operator reads, in bytes.
const maxFluxAnswer = 900 << 10

// Backend is the part of the API that the routes need.
type Backend interface {
	// Age returns how long ago the store was last known to have nothing newer than a revision.
	Age(revision int64) time.Duration
	// Shown returns an object for a reader.
	Shown(who auth.Identity, object api.Object) api.Object
}

// handler answers from memory, on every server.
type handler struct {
	backend Backend
	fleet   *fleet.Fleet
	rights  auth.Rights
}

// Register adds the routes to an API.
func Register(to *operation.API, backend Backend, objects *fleet.Fleet) {
	h := &handler{backend: backend, fleet: objects, rights: auth.NewRights(objects)}
	const rule = "The controller deletes what it has made for a cluster that is missing in the answer. So an answer has no clusters only if the specs ask for none, or 'allow_empty' is set. Otherwise it is an error, and the controller keeps what it has."
	failures := []int{http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusInternalServerError}
	plugin := operation.Declare(auth.AccessRead, huma.Operation{
		OperationID: "argocd-plugin", Method: http.MethodPost, Path: argocdPath, Tags: []string{"gitops"},
		Summary: "Clusters of decisions, for the plugin generator of an Argo CD ApplicationSet", Description: rule,
		MaxBodyBytes: to.MaxBody, Errors: append(failures, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType),
	})
	operation.Register(to, plugin, h.argocd)
	to.DescribeBody(plugin, to.Schema(api.PluginRequest{}), true)
	inputs := operation.Declare(auth.AccessRead, huma.Operation{
		OperationID: "flux-inputs", Method: http.MethodGet, Path: fluxPath, Tags: []string{"gitops"},
		Summary: "Clusters of decisions, for a ResourceSetInputProvider of flux-operator", Description: rule,
		Errors:    append(failures, http.StatusRequestEntityTooLarge),
		Responses: map[string]*huma.Response{"200": operation.JSONResponse("OK", to.Schema(api.FluxInputs{}))},
	})
	operation.Register(to, inputs, h.flux)
	to.DescribeQuery(inputs, reflect.TypeFor[api.DecisionQuery]())
}

type pluginInput struct {
	Namespace string `path:"namespace" doc:"Namespace of the decisions."`
	Payload   operation.Payload
}

type pluginOutput struct{ Body api.PluginAnswer }

func (h *handler) argocd(ctx context.Context, in *pluginInput) (*pluginOutput, error) {
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
			return nil, inParameters(err)
		}
	}
	clusters, err := h.answer(ctx, in.Namespace, parameters)
	if err != nil {
		return nil, inParameters(err)
	}
	return &pluginOutput{api.PluginAnswer{Output: api.PluginOutput{Parameters: clusters}}}, nil
}

// inParameters says of invalid fields where they are in the request of Argo CD.
func inParameters(err error) error {
	fields, ok := errors.AsType[api.FieldErrors](err)
	if !ok {
		return err
	}
	var inside api.FieldErrors
	for _, f := range fields {
		inside.Add("input.parameters."+f.Field, "%s", f.Message)
	}
	return inside
}

// fluxInput has the same query as the input of Argo CD, in a URL. Parameters without a text have that
// of the field.
type fluxInput struct {
	Namespace       string `path:"namespace" doc:"Namespace of the decisions."`
	Kind            string `query:"kind" enum:"placement,workload,policy" default:"placement"`
	Name            string `query:"name"`
	Selector        string `query:"selector" doc:"Instead of a name: all objects that have these labels, as 'app=web,tier=front'. If one of them cannot be answered, none is."`
	DecisionGroup   string `query:"decision_group"`
	IncludeEvicting bool   `query:"include_evicting" default:"true"`
	AllowEmpty      bool   `query:"allow_empty"`
	ServerFrom      string `query:"server_from"`
	Limit           int    `query:"limit" minimum:"1" maximum:"10000" default:"100" doc:"'spec.filter.limit' of the ResourceSetInputProvider, which ignores further inputs, so that what they made is deleted. If there are more clusters, this is an error."`
}

type fluxOutput struct{ Body any } // encodedJSON

func (h *handler) flux(ctx context.Context, in *fluxInput) (*fluxOutput, error) {
	parameters := api.DecisionQuery{
		Kind: api.DecisionKind(in.Kind), Name: in.Name, DecisionGroup: in.DecisionGroup,
		IncludeEvicting: &in.IncludeEvicting, AllowEmpty: in.AllowEmpty, ServerFrom: in.ServerFrom,
	}
	if in.Selector != "" {
		var err error
		if parameters.Selector, err = parseLabels(in.Selector); err != nil {
			return nil, err
		}
	}
	clusters, err := h.answer(ctx, in.Namespace, parameters)
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
	return &fluxOutput{encodedJSON(text)}, nil
}

// encodedJSON is a body that was encoded to know its size.
type encodedJSON []byte

// WriteJSON implements operation.Streamed.
func (e encodedJSON) WriteJSON(w io.Writer) error {
	_, err := w.Write(e)
	return err
}

// answer returns the clusters of decisions for who makes a request.
func (h *handler) answer(ctx context.Context, namespace string, parameters api.DecisionQuery) ([]api.DecidedCluster, error) {
	who := auth.Of(ctx)
	q, err := newQuery(namespace, parameters)
	if err != nil {
		return nil, err
	}
	for _, kind := range q.kinds() {
		if err := h.rights.MayReadKey(who, api.Key{Kind: kind, Namespace: namespace}); err != nil {
			return nil, err
		}
	}
	if err := who.MayReadKind(api.KindCluster); err != nil {
		return nil, err
	}
	snapshot := h.fleet.Snapshot()
	s := &source{
		objects: snapshot, age: h.backend.Age(snapshot.Revision()),
		mayRead: func(object api.Object) error { return h.rights.MayRead(who, object) },
		shown:   func(object api.Object) api.Object { return h.backend.Shown(who, object) },
	}
	return s.answer(q)
}
