package httpapi

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	gs "github.com/scheduler/terraform-provider-scheduler/internal/httpapi/globalscheduler"
)

// What follows is the API of the Arktos global scheduler. It shows and writes the
// same clusters and workloads as the rest; only their shape is another one.

const globalSchedulerPath = "/globalscheduler/v1"

// globalSchedulerRoutes adds the API of the Arktos global scheduler.
func (s *Server) globalSchedulerRoutes() {
	s.globalClusterRoutes()
	s.globalPushRoutes()
	s.globalPodRoutes()
	s.globalAllocationRoutes()
}

// globalOperation describes an operation of this API. body is nil where it takes
// none; answer is that of the success status.
func (s *Server) globalOperation(method, path, id, summary string, success int, answer any, errs ...int) huma.Operation {
	op := huma.Operation{
		OperationID: "globalscheduler-" + id, Method: method, Path: globalSchedulerPath + path, Summary: summary,
		Tags: []string{"globalscheduler"}, DefaultStatus: success, Errors: slices.Concat(errs, []int{http.StatusUnprocessableEntity}),
	}
	if method == http.MethodPost || method == http.MethodPatch {
		op.MaxBodyBytes = s.options.MaxBodyBytes
		op.Errors = append(op.Errors, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusInsufficientStorage)
	}
	op = accessWrite.declares(op)
	if method == http.MethodGet {
		op = accessRead.declares(op)
	}
	op.Responses = map[string]*huma.Response{statusText(success): jsonResponse(http.StatusText(success), s.schema(answer))}
	return op
}

func statusText(status int) string {
	if status == http.StatusCreated {
		return "201"
	}
	return "200"
}

// describeGlobalBody documents a body, of which several shapes are taken.
func (s *Server) describeGlobalBody(op huma.Operation, description string) {
	s.describeBody(op, &huma.Schema{Type: huma.TypeObject, Description: description}, true)
}

// badRequest is the answer to a body that this API cannot use: its documents have
// one status for all that is wrong with one.
func badRequest(err error) error {
	if fields, ok := errors.AsType[api.FieldErrors](err); ok {
		p := newProblem(api.ProblemMalformed, "%s", invalidFields(fields).Detail)
		p.Errors = fields
		return p
	}
	return newProblem(api.ProblemMalformed, "%s", err)
}

// checkGlobalBody refuses what no document may hold, before it is read.
func checkGlobalBody(data []byte) error {
	if rejectNUL(data) != nil {
		return newProblem(api.ProblemMalformed, "texts must not contain the character U+0000")
	}
	return nil
}

// resultOutput says that something was done of which there is nothing to show.
type resultOutput struct {
	Body gs.Result
}

// site is a cluster as a site, with its status completed; ok is false where it is
// none, or not to be seen.
func (s *Server) site(who auth.Identity, object api.Object) (site gs.Site, ok bool) {
	cluster, ok := object.(*api.Cluster)
	if !ok || !who.Sees(auth.Owners(cluster)...) {
		return gs.Site{}, false
	}
	shown, ok := s.shown(who, cluster).(*api.Cluster)
	if !ok {
		return gs.Site{}, false
	}
	return gs.SiteOf(shown)
}

// visibleCluster finds clusters by name, as far as they may be seen.
func (s *Server) visibleCluster(who auth.Identity) func(name string) *api.Cluster {
	return func(name string) *api.Cluster {
		cluster := s.cluster(name)
		if cluster == nil || !who.Sees(auth.Owners(cluster)...) {
			return nil
		}
		return cluster
	}
}

// createOnly stores an object that must not exist yet.
func (s *Server) createOnly(ctx context.Context, object api.Object) (*stored, error) {
	key := api.KeyOf(object)
	if err := auth.Of(ctx).MayWrite(object); err != nil {
		return nil, err
	}
	return s.change(ctx, key, precondition{}, func(current *stored) (*successor, error) {
		if current != nil {
			return nil, newProblem(api.ProblemAlreadyExists, "%s exists already", key)
		}
		next := object.Copy()
		created(next.Meta(), s.now().UTC())
		return &successor{object: next}, nil
	})
}

// settledObject waits for what follows from a write, and returns the object as it
// then is.
func (s *Server) settledObject(ctx context.Context, written *stored, wait time.Duration) api.Object {
	s.settle(ctx, written.revision, wait)
	if entry := s.fleet.Snapshot().Get(api.KeyOf(written.object)); entry != nil && entry.Revision() >= written.revision {
		return entry.Object
	}
	return written.object
}

// workloadByID finds a workload of this API by the id that the server gave it, nil
// where there is none that may be seen.
func (s *Server) workloadByID(who auth.Identity, id string, is func(*api.Workload) bool) *api.Workload {
	for entry := range s.fleet.Snapshot().All(api.KindWorkload, "") {
		if entry.Object.Meta().UID != id {
			continue
		}
		if w, ok := entry.Object.(*api.Workload); ok && is(w) && who.Sees(auth.Owners(w)...) {
			return w
		}
		return nil
	}
	return nil
}

// afterPath reads where a list goes on: namespace/name, as the list before said.
func afterPath(kind api.Kind, text string) (api.Key, error) {
	namespace, name, ok := strings.Cut(text, "/")
	key := api.Key{Kind: kind, Namespace: namespace, Name: name}
	if !ok || !addressable(key) {
		return api.Key{}, newProblem(api.ProblemBadContinue, "continue: %q is not what a list ended with", text)
	}
	return key, nil
}

// removed deletes an object, if it is still the one that was meant.
func (s *Server) removed(ctx context.Context, key api.Key, uid string, wait time.Duration) (*resultOutput, error) {
	current, err := s.load(ctx, key)
	if err != nil {
		return nil, err
	}
	if current == nil || current.object.Meta().UID != uid {
		return nil, s.notFound(key)
	}
	revision, err := s.remove(ctx, key, precondition{})
	if err != nil {
		return nil, err
	}
	s.settle(ctx, revision, wait)
	return &resultOutput{gs.Result{Result: gs.ResultOK}}, nil
}

// workloadByName finds a workload of this API, nil where there is none that may be
// seen.
func (s *Server) workloadByName(who auth.Identity, namespace, name string, is func(*api.Workload) bool) *api.Workload {
	entry := s.fleet.Snapshot().Get(api.Key{Kind: api.KindWorkload, Namespace: namespace, Name: name})
	if entry == nil {
		return nil
	}
	if w, ok := entry.Object.(*api.Workload); ok && is(w) && who.Sees(auth.Owners(w)...) {
		return w
	}
	return nil
}

// deleteWorkload deletes a pod or an allocation; namespace is empty where the
// request does not say it.
func (s *Server) deleteWorkload(ctx context.Context, namespace, waitText string, find func(who auth.Identity) *api.Workload) (*resultOutput, error) {
	wait, err := parseWait(waitText, defaultWait)
	if err != nil {
		return nil, err
	}
	who := auth.Of(ctx)
	if who.MayWriteKey(api.Key{Kind: api.KindWorkload, Namespace: namespace}) != nil {
		return nil, who.Forbidden("delete pods and allocations there")
	}
	w := find(who)
	if w == nil {
		return nil, newProblem(api.ProblemNotFound, "there is nothing of this name or id")
	}
	return s.removed(ctx, api.KeyOf(w), w.Metadata.UID, wait)
}

// GlobalPayload is the body of a request to this API. Its documents name no media
// type, and curl gives what it sends one that says nothing: such a body is taken as
// JSON, too. It is exported because huma fills it in.
type GlobalPayload struct{ data []byte }

// Resolve implements huma.Resolver.
func (p *GlobalPayload) Resolve(ctx huma.Context) []error {
	r, w := humago.Unwrap(ctx)
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && media == "application/x-www-form-urlencoded" {
		r = r.WithContext(r.Context())
		r.Header = r.Header.Clone()
		r.Header.Del("Content-Type")
	}
	data, err := readBody(w, r, ctx.Operation().MaxBodyBytes)
	if err != nil {
		return []error{problemFor(err)}
	}
	p.data = data
	return nil
}
