package operation

import (
	"cmp"
	"context"
	"maps"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"k8s.io/apimachinery/pkg/util/validation"
)

// API registers operations.
type API struct {
	huma huma.API
	// MaxBody is the maximum size of a request body.
	MaxBody int64
	answer  func(ctx context.Context, err error) *problem.Problem
}

// atLeader marks operations in huma.Operation.Metadata.
const atLeader = "at-leader"

// AtLeader marks an operation that only the leader can serve.
func AtLeader(op huma.Operation) huma.Operation {
	return mark(op, atLeader, true)
}

func mark(op huma.Operation, as string, value any) huma.Operation {
	op.Metadata = maps.Clone(op.Metadata)
	if op.Metadata == nil {
		op.Metadata = map[string]any{}
	}
	op.Metadata[as] = value
	return op
}

// PassOn makes elsewhere serve the operations marked with AtLeader; it returns false if this server
// must serve the request. repeatable says that doing it twice is like doing it once. PassOn must be
// called before they are registered.
func (a *API) PassOn(elsewhere func(w http.ResponseWriter, r *http.Request, repeatable bool) bool) {
	a.huma.UseMiddleware(func(ctx huma.Context, next func(huma.Context)) {
		if ctx.Operation().Metadata[atLeader] == true {
			repeatable := ctx.Operation().Method != http.MethodPost || ctx.Operation().Metadata[routine] == true
			if r, w := humago.Unwrap(ctx); elsewhere(w, r, repeatable) {
				return
			}
		}
		next(ctx)
	})
}

// routine marks operations in huma.Operation.Metadata.
const routine = "routine"

// Routine marks an operation that agents call again and again, and that changes nothing that users
// write. It has no line in the audit log unless it is refused.
func Routine(op huma.Operation) huma.Operation { return mark(op, routine, true) }

// writes reports whether an operation belongs into the audit log.
func writes(op *huma.Operation) bool {
	access := op.Extensions[AccessExtension]
	return op.Method != http.MethodGet && op.Metadata[routine] != true &&
		access != string(auth.AccessRead) && access != string(auth.AccessReadReports)
}

// Audit makes begin see every operation before it runs, with the object in its path; if begin
// returns a problem, it does not run. Audit must be called before they are registered, and before
// PassOn.
func (a *API) Audit(begin func(r *http.Request, op *huma.Operation, writes bool, object *api.Key) *problem.Problem) {
	a.huma.UseMiddleware(func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		if refused := begin(r, ctx.Operation(), writes(ctx.Operation()), named(ctx)); refused != nil {
			problem.Write(w, refused)
			return
		}
		next(ctx)
	})
}

// named returns the object in a path. Other text in a path is not logged, because it might be a
// misplaced secret.
func named(ctx huma.Context) *api.Key {
	var target Target
	_ = target.Resolve(ctx) // returns no errors
	tags := ctx.Operation().Tags
	if target.Name == "" || len(tags) == 0 {
		return nil
	}
	key := target.Key(api.Kind(tags[0]))
	if _, known := api.LookupKind(key.Kind); !known || !Addressable(key) {
		return nil
	}
	return &key
}

// New returns an API that registers operations on a mux. answer converts an error of an operation
// to a problem, and logs it.
func New(mux *http.ServeMux, config huma.Config, maxBody int64, answer func(ctx context.Context, err error) *problem.Problem) *API {
	return &API{huma: humago.New(mux, config), MaxBody: maxBody, answer: answer}
}

// Document returns the OpenAPI document of the registered operations.
func (a *API) Document() *huma.OpenAPI { return a.huma.OpenAPI() }

// Problem converts an error of a handler that is not an operation.
func (a *API) Problem(ctx context.Context, err error) *problem.Problem { return a.answer(ctx, err) }

// Refuse responds with an error from the middleware of an operation.
func (a *API) Refuse(ctx huma.Context, status int, detail string) {
	_ = huma.WriteErr(a.huma, ctx, status, detail) // fails if the client has gone away
}

// mayEndToken marks operations in huma.Operation.Metadata.
const mayEndToken = "may-end-token"

// MayEndToken marks an operation that may end the requester's own access: creating the first token,
// or revoking their own.
func MayEndToken(op huma.Operation) huma.Operation {
	return mark(op, mayEndToken, true)
}

// Register adds an operation whose errors all pass through the API's answer. It returns
// what the operation does, for requests that are read without huma.
func Register[I, O any](a *API, op huma.Operation, handle func(context.Context, *I) (*O, error)) func(context.Context, *I) (*O, error) {
	op.Errors = append(op.Errors, http.StatusUnauthorized, http.StatusForbidden, http.StatusServiceUnavailable)
	own := op.Metadata[mayEndToken] == true || op.Method == http.MethodDelete
	guarded := func(ctx context.Context, in *I) (*O, error) {
		if err := mayAsk(ctx, &op); err != nil {
			return nil, a.answer(ctx, err)
		}
		out, err := handle(ctx, in)
		// After a long wait the write has happened, but its result must not be shown.
		if err == nil && !own && auth.Ended(ctx) {
			err = auth.ErrEnded
		}
		if err != nil {
			return nil, a.answer(ctx, err)
		}
		return out, nil
	}
	huma.Register(a.huma, op, guarded)
	return guarded
}

// Target is the object or collection in a path. Its parameters depend on the kind, so the operation
// documents them.
type Target struct {
	Namespace string // or the cluster that the object belongs to
	Name      string
}

// Resolve implements huma.Resolver.
func (t *Target) Resolve(ctx huma.Context) []error {
	t.Namespace, t.Name = cmp.Or(ctx.Param("namespace"), ctx.Param("cluster")), ctx.Param("name")
	return nil
}

// Key returns the key of the object.
func (t *Target) Key(kind api.Kind) api.Key {
	return api.Key{Kind: kind, Namespace: t.Namespace, Name: t.Name}
}

// Addressable reports whether an object with this key can exist. A path may contain anything,
// including "../x", and the store derives its keys from it.
func Addressable(key api.Key) bool {
	return len(validation.IsDNS1123Label(key.Name)) == 0 &&
		(key.Namespace == "" || len(validation.IsDNS1123Label(key.Namespace)) == 0)
}
