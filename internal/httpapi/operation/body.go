package operation

import (
	"bytes"
	"errors"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

// Payload is the body of a request, read within the operation's limit.
type Payload struct{ Data []byte }

// Resolve implements huma.Resolver.
func (p *Payload) Resolve(ctx huma.Context) []error {
	r, w := humago.Unwrap(ctx)
	data, err := ReadBody(w, r, ctx.Operation().MaxBodyBytes)
	if err != nil {
		return []error{problem.Of(err)}
	}
	p.Data = data
	return nil
}

// ReadBody reads the body of a request within a limit.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if err := checkMediaType(r.Header); err != nil {
		return nil, err
	}
	if r.ContentLength > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}
	var buffer bytes.Buffer
	if r.ContentLength > 0 {
		buffer.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	_, err := buffer.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	if err == nil {
		// The operation may wait longer than a body may take; a remaining read deadline would look
		// like a client that has gone away.
		err = http.NewResponseController(w).SetReadDeadline(time.Time{})
		if errors.Is(err, http.ErrNotSupported) {
			err = nil
		}
		return buffer.Bytes(), err
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, err
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return nil, problem.New(api.ProblemRequestTimeout, "the body did not arrive in time")
	}
	return nil, problem.New(api.ProblemMalformed, "the body could not be read to its end").WithHeader("Connection", "close")
}

// checkMediaType accepts JSON. A body without a type is assumed to be JSON.
func checkMediaType(header http.Header) error {
	if encoding := header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return problem.New(api.ProblemUnsupportedMediaType, "the body must not be compressed")
	}
	text := header.Get("Content-Type")
	if text == "" || text == "application/json" { // mostly
		return nil
	}
	media, parameters, err := mime.ParseMediaType(text)
	if err != nil || !isJSON(media) {
		return problem.New(api.ProblemUnsupportedMediaType, "the body must be JSON with Content-Type: application/json")
	}
	if charset, ok := parameters["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return problem.New(api.ProblemUnsupportedMediaType, "the body must be UTF-8")
	}
	return nil
}

func isJSON(media string) bool {
	return media == "application/json" || strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")
}

// Decode decodes a document as strictly as package api, and rejects null.
func Decode(data []byte, into any) error {
	if err := api.DecodeInto(data, into); err != nil {
		return malformed(err)
	}
	if data = bytes.TrimSpace(data); data[0] != '{' {
		return problem.New(api.ProblemInvalid, "the body must be a JSON object")
	}
	return RejectNUL(data)
}

// malformed distinguishes a document that is not JSON (400) from one with invalid fields (422).
func malformed(err error) error {
	if _, ok := errors.AsType[api.FieldErrors](err); ok {
		return err
	}
	return problem.New(api.ProblemMalformed, "%s", err)
}

// RejectNUL rejects strings with the character U+0000, which no field needs and some parsers treat
// as the end. In valid JSON it must be escaped.
func RejectNUL(data []byte) error {
	for rest := data; ; {
		i := bytes.Index(rest, []byte(`\u0000`))
		if i < 0 {
			return nil
		}
		backslashes := 1
		for backslashes <= i && rest[i-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 1 {
			return problem.New(api.ProblemInvalid, "texts must not contain the character U+0000")
		}
		rest = rest[i+1:]
	}
}
