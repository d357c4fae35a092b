package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

// register adds an operation whose errors all pass through answer.
func register[I, O any](s *Server, op huma.Operation, handle func(context.Context, *I) (*O, error)) {
	op.Errors = append(op.Errors, http.StatusUnauthorized, http.StatusForbidden, http.StatusServiceUnavailable)
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		if err := mayAsk(ctx, &op); err != nil {
			return nil, s.answer(ctx, err)
		}
		out, err := handle(ctx, in)
		// After a long wait what was to be written is, and is not shown. Who makes the
		// first token, or revokes their own, has ended their right by that very request.
		own := op.Method == http.MethodDelete || op.OperationID == createTokenOperation
		if err == nil && !own && auth.Ended(ctx) {
			err = auth.ErrEnded
		}
		if err != nil {
			return nil, s.answer(ctx, err)
		}
		return out, nil
	})
}

// Target is the object or collection that the path of a request names. Its
// parameters depend on the kind, so the operation documents them.
type Target struct {
	namespace string // or the cluster that the object belongs to
	name      string
}

// Resolve implements huma.Resolver.
func (t *Target) Resolve(ctx huma.Context) []error {
	t.namespace, t.name = cmp.Or(ctx.Param("namespace"), ctx.Param("cluster")), ctx.Param("name")
	return nil
}

func (t *Target) key(kind api.Kind) api.Key {
	return api.Key{Kind: kind, Namespace: t.namespace, Name: t.name}
}

// Payload is the body of a request, read within the operation's limit.
type Payload struct{ data []byte }

// Resolve implements huma.Resolver.
func (p *Payload) Resolve(ctx huma.Context) []error {
	r, w := humago.Unwrap(ctx)
	data, err := readBody(w, r, ctx.Operation().MaxBodyBytes)
	if err != nil {
		return []error{problemFor(err)}
	}
	p.data = data
	return nil
}

func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
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
		// What follows may wait longer than a body may take; a read deadline left
		// in place would look like a client that went away.
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
		return nil, newProblem(api.ProblemRequestTimeout, "the body did not arrive in time")
	}
	return nil, newProblem(api.ProblemMalformed, "the body could not be read to its end").withHeader("Connection", "close")
}

// checkMediaType accepts JSON. A body without a type is taken as JSON.
func checkMediaType(header http.Header) error {
	if encoding := header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return newProblem(api.ProblemUnsupportedMediaType, "the body must not be compressed")
	}
	text := header.Get("Content-Type")
	if text == "" {
		return nil
	}
	media, parameters, err := mime.ParseMediaType(text)
	if err != nil || !isJSON(media) {
		return newProblem(api.ProblemUnsupportedMediaType, "the body must be JSON with Content-Type: application/json")
	}
	if charset, ok := parameters["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return newProblem(api.ProblemUnsupportedMediaType, "the body must be UTF-8")
	}
	return nil
}

func isJSON(media string) bool {
	return media == "application/json" || strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")
}

// decodeBody reads a document as strictly as api does, and refuses null.
func decodeBody(data []byte, into any) error {
	if err := api.DecodeInto(data, into); err != nil {
		return malformed(err)
	}
	if data = bytes.TrimSpace(data); data[0] != '{' {
		return newProblem(api.ProblemInvalid, "the body must be a JSON object")
	}
	return rejectNUL(data)
}

// malformed tells a document that is not JSON (400) from one with wrong fields
// (422).
func malformed(err error) error {
	if _, ok := errors.AsType[api.FieldErrors](err); ok {
		return err
	}
	return newProblem(api.ProblemMalformed, "%s", err)
}

// rejectNUL refuses texts with the character U+0000, which no field has a use
// for and some readers take as the end. In valid JSON it can only be escaped.
func rejectNUL(data []byte) error {
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
			return newProblem(api.ProblemInvalid, "texts must not contain the character U+0000")
		}
		rest = rest[i+1:]
	}
}

// encodeJSON renders an answer; what the API shows always has a JSON form.
func encodeJSON(v any) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return []byte(`{"title":"Internal Server Error","status":500}`)
	}
	return buffer.Bytes()
}

// jsonFormat streams answers the same way.
var jsonFormat = huma.Format{
	Marshal: func(w io.Writer, v any) error {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(v)
	},
	Unmarshal: json.Unmarshal,
}
