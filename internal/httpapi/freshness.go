package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// describe sets the headers of a response that is about to be written.
func (r *request) describe(header http.Header) {
	if r.server != "" {
		header.Set(api.ServerHeader, r.server)
	}
	if !r.lastContact.IsZero() {
		header.Set(api.LastContactHeader, strconv.FormatInt(time.Since(r.lastContact).Milliseconds(), 10))
	}
}

// describeFreshness documents the headers on every response with a body of the API.
func describeFreshness(document *huma.OpenAPI) {
	age := &huma.Param{
		Description: "Milliseconds since the server last knew that it had everything in the store. Grows while the store does not respond; reads continue.",
		Schema:      &huma.Schema{Type: huma.TypeInteger, Format: "int64"},
	}
	server := &huma.Param{
		Description: "Name of the server that responded, as in GET /v1/server.",
		Schema:      &huma.Schema{Type: huma.TypeString},
	}
	eachOperation(document, func(op *huma.Operation) {
		for status, response := range op.Responses {
			if status[0] == '2' {
				if response.Headers == nil {
					response.Headers = map[string]*huma.Param{}
				}
				response.Headers[api.LastContactHeader], response.Headers[api.ServerHeader] = age, server
			}
		}
	})
}

func eachOperation(document *huma.OpenAPI, do func(*huma.Operation)) {
	for _, path := range document.Paths {
		for _, op := range []*huma.Operation{path.Get, path.Put, path.Post, path.Patch, path.Delete} {
			if op != nil {
				do(op)
			}
		}
	}
}
