package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// lastContactHeader says on every answer how many milliseconds ago the store was
// last known to hold nothing newer than what the answer shows. Reads come from
// memory and go on without the store, so it is how old they may be.
const lastContactHeader = "Scheduler-Last-Contact"

// showAge sets the header of an answer that begins now.
func (r *request) showAge(header http.Header) {
	if !r.picture.IsZero() {
		header.Set(lastContactHeader, strconv.FormatInt(time.Since(r.picture).Milliseconds(), 10))
	}
}

// describeFreshness documents the header on every answer that has a body of the
// API.
func describeFreshness(document *huma.OpenAPI) {
	header := &huma.Param{
		Description: "Milliseconds since the store was last known to hold nothing newer than what this answer shows. It grows while the store does not answer; reads go on.",
		Schema:      &huma.Schema{Type: huma.TypeInteger, Format: "int64"},
	}
	eachOperation(document, func(op *huma.Operation) {
		for status, response := range op.Responses {
			if status[0] == '2' {
				if response.Headers == nil {
					response.Headers = map[string]*huma.Param{}
				}
				response.Headers[lastContactHeader] = header
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
