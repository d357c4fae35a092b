package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

// parseRequestTimeout returns 0 if the client sends none.
func parseRequestTimeout(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	if _, err := strconv.ParseUint(text, 10, 32); err == nil {
		text += "s"
	}
	timeout, err := api.Duration(text).Parse()
	if err != nil || timeout <= 0 {
		return 0, problem.Invalid(api.RequestTimeoutHeader, "%q must be a duration above 0, such as 5s", text)
	}
	return timeout, nil
}

// limitWork cancels a request when its client no longer waits: when the connection is closed, or
// when the time sent by the client has passed, of which a tenth is reserved for the response.
func limitWork(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		timeout, err := parseRequestTimeout(r.Header.Get(api.RequestTimeoutHeader))
		if err != nil {
			problem.Write(w, problem.Of(err))
			return
		}
		if timeout > 0 {
			ctx, cancel := context.WithTimeout(r.Context(), timeout-timeout/10)
			defer cancel()
			r = r.WithContext(ctx)
		}
		next.ServeHTTP(w, r)
	})
}

// describeDeadline documents the header on every operation.
func describeDeadline(document *huma.OpenAPI) {
	parameter := &huma.Param{
		Name: api.RequestTimeoutHeader, In: "header", Schema: &huma.Schema{Type: huma.TypeString},
		Description: "How long the client waits for the response, such as 5s. The server responds within that time: it stops waiting for decisions, and returns 503 if the store has not confirmed a write by then.",
	}
	eachOperation(document, func(op *huma.Operation) { op.Parameters = append(op.Parameters, parameter) })
}
