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

// API is where operations are registered.
type API struct {
	huma huma.API
	// MaxBody is how large the body of a request may be.
	MaxBody int64
	answer  func(ctx context.Context, err error) *problem.Problem
}

// atLeader marks operations in huma.Operation.Metadata.
const atLeader = "at-leader"

// AtLeader is an operation that only the server that decides can answer.
func AtLeader(op huma.Operation) huma.Operation {
	return mark(op, atLeader)
}

func mark(op huma.Operation, as string) huma.Operation {
	op.Metadata = maps.Clone(op.Metadata)
	if op.Metadata == nil {
		op.Metadata = map[string]any{}
	}
	op.Metadata[as] = true
	return op
}

// PassOn has elsewhere answer the operations that are AtLeader, where it reports true.
// It is called before they are registered.
func (a *API) PassOn(elsewhere func(w http.ResponseWriter, r *http.Request) bool) {
	a.huma.UseMiddleware(func(ctx huma.Context, next func(huma.Context)) {
		if ctx.Operation().Metadata[atLeader] == true {
			if r, w := humago.Unwrap(ctx); elsewhere(w, r) {
				return
			}
		}
		next(ctx)
	})
}

// New puts operations on a mux. answer turns an error of an operation into its problem,
// and logs it.
func New(mux *http.ServeMux, config huma.Config, maxBody int64, answer func(ctx context.Context, err error) *problem.Problem) *API {
	return &API{huma: humago.New(mux, config), MaxBody: maxBody, answer: answer}
}

// Document is the OpenAPI document of what has been registered.
func (a *API) Document() *huma.OpenAPI { return a.huma.OpenAPI() }

// Problem is the answer to an error of a handler that is no operation.
func (a *API) Problem(ctx context.Context, err error) *problem.Problem { return a.answer(ctx, err) }

// Refuse answers with an error in place of an operation, from its middleware.
func (a *API) Refuse(ctx huma.Context, status int, detail string) {
	_ = huma.WriteErr(a.huma, ctx, status, detail) // the client went away: there is nobody to tell
}

// mayEndToken marks operations in huma.Operation.Metadata.
const mayEndToken = "may-end-token"

// MayEndToken is an operation after which the right of who asked may have ended by that
// very request: who makes the first token, or revokes their own.
func MayEndToken(op huma.Operation) huma.Operation {
	return mark(op, mayEndToken)
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
		// After a long wait what was to be written is, and is not shown.
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

// Target is the object or collection that the path of a request names. Its
// parameters depend on the kind, so the operation documents them.
type Target struct {
	Namespace string // or the cluster that the object belongs to
	Name      string
}

// Resolve implements huma.Resolver.
func (t *Target) Resolve(ctx huma.Context) []error {
	t.Namespace, t.Name = cmp.Or(ctx.Param("namespace"), ctx.Param("cluster")), ctx.Param("name")
	return nil
}

// Key is the key of the object.
func (t *Target) Key(kind api.Kind) api.Key {
	return api.Key{Kind: kind, Namespace: t.Namespace, Name: t.Name}
}

// Addressable reports whether an object of this key can exist at all. A path
// may hold anything, "../x" among it, and the store builds its keys from it.
func Addressable(key api.Key) bool {
	return len(validation.IsDNS1123Label(key.Name)) == 0 &&
		(key.Namespace == "" || len(validation.IsDNS1123Label(key.Namespace)) == 0)
}
