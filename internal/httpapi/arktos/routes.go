package arktos

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"golang.org/x/sync/semaphore"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	clusterhealth "github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
)

const basePath = "/globalscheduler/v1"

// Backend is the part of the API that the routes need. They show and write the same clusters and
// workloads, in another form.
type Backend interface {
	// Create stores an object that must not exist yet, and returns it as stored.
	Create(ctx context.Context, object api.Object) (created api.Object, revision int64, err error)
	// Load reads an object from the store, or returns nil.
	Load(ctx context.Context, key api.Key) (api.Object, error)
	// Remove deletes an object that the requester may write.
	Remove(ctx context.Context, key api.Key) (revision int64, err error)
	// Await waits until what follows from a revision is decided and visible, for a limited time.
	Await(ctx context.Context, revision int64, wait time.Duration)
	// CatchUp waits until the decisions have reached what the fleet shows.
	CatchUp(ctx context.Context)
	// Shown returns an object for a reader.
	Shown(who auth.Identity, object api.Object) api.Object
	// NotFound returns the error for an object that cannot be shown.
	NotFound(key api.Key) error
	// PreviewWorkload returns the status that a workload would get, with the explanation.
	PreviewWorkload(ctx context.Context, workload *api.Workload) (api.WorkloadStatus, *api.Explanation, error)
	// Explain returns the explanation of a workload.
	Explain(key api.Key) (*api.Explanation, error)
	// Report records amounts that somebody other than its agent reports about a cluster.
	Report(ctx context.Context, cluster string, amounts clusterhealth.Amounts) (revision int64, err error)
}

// handler serves the requests.
type handler struct {
	api     *operation.API
	backend Backend
	fleet   *fleet.Fleet
	rights  auth.Rights
	faults  *recovery.Recorder
	// allocating is held while an allocation is decided and written.
	allocating *semaphore.Weighted
	// registering is held while a cluster is registered for a site.
	registering *semaphore.Weighted
}

// Register adds the routes to an API.
func Register(to *operation.API, backend Backend, objects *fleet.Fleet, faults *recovery.Recorder) {
	h := &handler{
		api: to, backend: backend, fleet: objects, rights: auth.NewRights(objects), faults: faults,
		allocating: semaphore.NewWeighted(1), registering: semaphore.NewWeighted(1),
	}
	h.clusterRoutes()
	h.pushRoutes()
	h.podRoutes()
	h.allocationRoutes()
}

// operation describes an operation of this API. answer is the body of the success status.
func (h *handler) operation(method, path, id, summary string, success int, answer any, errs ...int) huma.Operation {
	op := huma.Operation{
		OperationID: "globalscheduler-" + id, Method: method, Path: basePath + path, Summary: summary,
		Tags: []string{"globalscheduler"}, DefaultStatus: success, Errors: slices.Concat(errs, []int{http.StatusUnprocessableEntity}),
	}
	if method == http.MethodPost || method == http.MethodPatch {
		op.MaxBodyBytes = h.api.MaxBody
		op.Errors = append(op.Errors, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusInsufficientStorage)
	}
	switch method {
	case http.MethodGet:
		op = operation.Declare(auth.AccessRead, op)
	case http.MethodDelete:
		op = operation.AtLeader(operation.Declare(auth.AccessDelete, op))
	default: // serialized; some of them report
		op = operation.AtLeader(operation.Declare(auth.AccessWrite, op))
	}
	op.Responses = map[string]*huma.Response{strconv.Itoa(success): operation.JSONResponse(http.StatusText(success), h.api.Schema(answer))}
	return op
}

// describeBody documents a body that may have several forms.
func (h *handler) describeBody(op huma.Operation, description string) {
	h.api.DescribeBody(op, &huma.Schema{Type: huma.TypeObject, Description: description}, true)
}

// badRequest converts an error about a body: this API has one status for all invalid documents.
func badRequest(err error) error {
	if fields, ok := errors.AsType[api.FieldErrors](err); ok {
		p := problem.New(api.ProblemMalformed, "%s", problem.InvalidFields(fields).Detail)
		p.Errors = fields
		return p
	}
	return problem.New(api.ProblemMalformed, "%s", err)
}

// checkBody rejects what no document may contain, before it is decoded.
func checkBody(data []byte) error {
	if operation.RejectNUL(data) != nil {
		return problem.New(api.ProblemMalformed, "texts must not contain the character U+0000")
	}
	return nil
}

// resultOutput is a response without data.
type resultOutput struct {
	Body Result
}

// site returns a cluster as a site, with its status completed; ok is false if it is not one, or not
// visible.
func (h *handler) site(who auth.Identity, object api.Object) (site zoneSite, ok bool) {
	cluster, ok := object.(*api.Cluster)
	if !ok || !who.Reads(api.KindCluster, auth.Owners(cluster)...) {
		return zoneSite{}, false
	}
	shown, ok := h.backend.Shown(who, cluster).(*api.Cluster)
	if !ok {
		return zoneSite{}, false
	}
	return siteOf(shown)
}

// visibleCluster returns a function that returns clusters by name if they are visible.
func (h *handler) visibleCluster(who auth.Identity) func(name string) *api.Cluster {
	return func(name string) *api.Cluster {
		entry := h.fleet.Snapshot().Get(auth.ClusterKey(name))
		if entry == nil {
			return nil
		}
		cluster, ok := entry.Object.(*api.Cluster)
		if !ok || !who.Reads(api.KindCluster, auth.Owners(cluster)...) {
			return nil
		}
		return cluster
	}
}

// decided waits for what follows from a write, and returns the object as it then is.
func (h *handler) decided(ctx context.Context, written api.Object, revision int64, wait time.Duration) api.Object {
	h.backend.Await(ctx, revision, wait)
	if entry := h.fleet.Snapshot().Get(api.KeyOf(written)); entry != nil && entry.Revision() >= revision {
		return entry.Object
	}
	return written
}

// workloadByID returns a workload of this API by its UID, or nil if there is none that is visible.
func (h *handler) workloadByID(who auth.Identity, id string, is func(*api.Workload) bool) *api.Workload {
	for entry := range h.fleet.Snapshot().All(api.KindWorkload, "") {
		if entry.Object.Meta().UID != id {
			continue
		}
		if w, ok := entry.Object.(*api.Workload); ok && is(w) && who.Reads(api.KindWorkload, auth.Owners(w)...) {
			return w
		}
		return nil
	}
	return nil
}

// afterPath parses where a list continues: namespace/name, as returned by the previous page.
func afterPath(kind api.Kind, text string) (api.Key, error) {
	namespace, name, ok := strings.Cut(text, "/")
	key := api.Key{Kind: kind, Namespace: namespace, Name: name}
	if !ok || !operation.Addressable(key) {
		return api.Key{}, problem.New(api.ProblemBadContinue, "continue: %q is not what a list ended with", text)
	}
	return key, nil
}

// removed deletes an object if it still has the given UID.
func (h *handler) removed(ctx context.Context, key api.Key, uid string, wait time.Duration) (*resultOutput, error) {
	current, err := h.backend.Load(ctx, key)
	if err != nil {
		return nil, err
	}
	if current == nil || current.Meta().UID != uid {
		return nil, h.backend.NotFound(key)
	}
	revision, err := h.backend.Remove(ctx, key)
	if err != nil {
		return nil, err
	}
	h.backend.Await(ctx, revision, wait)
	return &resultOutput{Result{Result: resultOK}}, nil
}

// workloadByName returns a workload of this API, or nil if there is none that is visible.
func (h *handler) workloadByName(who auth.Identity, namespace, name string, is func(*api.Workload) bool) *api.Workload {
	entry := h.fleet.Snapshot().Get(api.Key{Kind: api.KindWorkload, Namespace: namespace, Name: name})
	if entry == nil {
		return nil
	}
	if w, ok := entry.Object.(*api.Workload); ok && is(w) && who.Reads(api.KindWorkload, auth.Owners(w)...) {
		return w
	}
	return nil
}

// deleteWorkload deletes a pod or an allocation; namespace is empty if the request does not name
// it.
func (h *handler) deleteWorkload(ctx context.Context, namespace, waitText string, find func(who auth.Identity) *api.Workload) (*resultOutput, error) {
	wait, err := operation.ParseWait(waitText, operation.DefaultWait)
	if err != nil {
		return nil, err
	}
	who := auth.Of(ctx)
	if who.MayDeleteKey(api.Key{Kind: api.KindWorkload, Namespace: namespace}) != nil {
		return nil, who.Forbidden("delete pods and allocations there")
	}
	w := find(who)
	if w == nil {
		return nil, problem.New(api.ProblemNotFound, "there is no object with this name or ID")
	}
	return h.removed(ctx, api.KeyOf(w), w.Metadata.UID, wait)
}

// Payload is the body of a request to this API. Its specification names no media type, and curl's
// default is not JSON, so such bodies are accepted as JSON too. It is exported because huma sets
// it.
type Payload struct{ Data []byte }

// Resolve implements huma.Resolver.
func (p *Payload) Resolve(ctx huma.Context) []error {
	r, w := humago.Unwrap(ctx)
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && media == "application/x-www-form-urlencoded" {
		r = r.WithContext(r.Context())
		r.Header = r.Header.Clone()
		r.Header.Del("Content-Type")
	}
	data, err := operation.ReadBody(w, r, ctx.Operation().MaxBodyBytes)
	if err != nil {
		return []error{problem.Of(err)}
	}
	p.Data = data
	return nil
}
