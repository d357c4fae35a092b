// Package problem converts errors to problem documents for clients (RFC 9457). All conversions are
// in Of.
package problem

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/reconcile/previewcommit"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Problem is an error response.
type Problem struct {
	api.Problem
	header http.Header
}

// GetStatus returns the status code for huma.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders returns the additional headers for huma.
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType returns the media type of RFC 9457.
func (p *Problem) ContentType(string) string { return MediaType }

// MediaType is the media type of problems.
const MediaType = "application/problem+json"

// New returns a problem of a type, with its status.
func New(t api.ProblemType, format string, args ...any) *Problem {
	info, _ := api.LookupProblem(t)
	return &Problem{Problem: api.Problem{
		Type: t, Title: info.Title, Status: info.Status, Detail: fmt.Sprintf(format, args...),
	}}
}

// WithHeader sets a header of the response.
func (p *Problem) WithHeader(name, value string) *Problem {
	if p.header == nil {
		p.header = http.Header{}
	}
	p.header.Set(name, value)
	return p
}

// Damaged returns the problem for an object that is damaged in the store.
func Damaged(key api.Key) *Problem {
	return New(api.ProblemDamaged, "%s is damaged in the store: write it again with PUT or delete it, or restore a backup; until then decisions that depend on it stay as they are", key)
}

// NotFound returns the problem for an object that cannot be shown: it does not exist or is damaged.
func NotFound(key api.Key, damaged bool) *Problem {
	if damaged {
		return Damaged(key)
	}
	return New(api.ProblemNotFound, "%s does not exist", key)
}

// Challenge requests a token. It tells clients that their token is the problem, even if the status
// is 429 because of too many such requests: retrying does not help.
const Challenge = `Bearer realm="scheduler"`

// Unauthorized returns a 401.
func Unauthorized(detail string) *Problem {
	return New(api.ProblemUnauthenticated, "%s", detail).WithHeader("WWW-Authenticate", Challenge)
}

// Unavailable returns a 503: the request may be retried in a moment.
func Unavailable(detail string) *Problem {
	return New(api.ProblemUnavailable, "%s", detail).WithHeader("Retry-After", "1")
}

// Invalid returns a 422 about one field.
func Invalid(field, format string, args ...any) *Problem {
	var fields api.FieldErrors
	fields.Add(field, format, args...)
	return InvalidFields(fields)
}

// InvalidFields returns a 422 about several fields.
func InvalidFields(fields api.FieldErrors) *Problem {
	p := New(api.ProblemInvalid, "the request has an invalid field")
	if n := fields.Count(); n != 1 {
		p.Detail = fmt.Sprintf("the request has %d invalid fields", n)
	}
	p.Errors = fields
	return p
}

// Errors created by huma have the same form.
func init() {
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		var fields api.FieldErrors
		for _, err := range errs {
			if p, ok := errors.AsType[*Problem](err); ok {
				return p
			}
			if d, ok := err.(huma.ErrorDetailer); ok {
				detail := d.ErrorDetail()
				fields.Add(humaField(detail.Location), "%s", detail.Message)
			}
		}
		p := New(api.ProblemOfStatus(status), "%s", message)
		p.Errors = fields
		return p.Redacted()
	}
}

// humaField removes the part of the request from huma's location of an error; the name of the
// parameter is enough.
func humaField(location string) string {
	for _, part := range []string{"body.", "query.", "path.", "header."} {
		if rest, ok := strings.CutPrefix(location, part); ok {
			return rest
		}
	}
	return location
}

// Of converts an error to a problem. It is the only place that does.
func Of(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if fields, ok := errors.AsType[api.FieldErrors](err); ok {
		return InvalidFields(fields)
	}
	if forbidden, ok := errors.AsType[*auth.ForbiddenError](err); ok {
		p := New(api.ProblemForbidden, "%s", forbidden)
		p.Errors = forbidden.Fields
		return p
	}
	if broken, ok := errors.AsType[*previewcommit.StalePreviewError](err); ok {
		return New(api.ProblemFleetChanged, "%s", broken)
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return New(api.ProblemTooLarge, "the body may have at most %d bytes", tooLarge.Limit).
			WithHeader("Connection", "close")
	}
	if conflict, ok := errors.AsType[*store.ConflictError](err); ok {
		return New(api.ProblemConflict, "%s: read the object again and repeat the request", conflict)
	}
	if older, ok := errors.AsType[*store.OlderServerError](err); ok {
		return New(api.ProblemConflict, "%s", older)
	}
	if stalled, ok := errors.AsType[*store.StalledError](err); ok {
		return Unavailable(stalled.Error() + ": nothing was changed; repeat the request")
	}
	switch {
	case errors.Is(err, auth.ErrEnded):
		return Unauthorized(err.Error())
	case errors.Is(err, auth.ErrLastAdministrator):
		return New(api.ProblemConflict, "%s", auth.ErrLastAdministrator)
	case errors.Is(err, auth.ErrNoToken):
		return New(api.ProblemNotFound, "%s", auth.ErrNoToken)
	case errors.Is(err, store.ErrCompacted):
		return New(api.ProblemRevisionGone, "the revision is no longer kept: start again without continue or resource_version")
	case errors.Is(err, store.ErrDamaged):
		return New(api.ProblemDamaged, "an object that the request needs is damaged in the store; the server's log names it")
	case errors.Is(err, store.ErrFull):
		return New(api.ProblemStoreFull, "the store is full: nothing was written; reads and deletions still work")
	case errors.Is(err, store.ErrInvalid):
		return New(api.ProblemTooLarge, "the object is larger than the store can hold")
	case errors.Is(err, store.ErrUncertain):
		return New(api.ProblemUnconfirmed, "the store did not confirm the write, and it may have happened: read the object, then repeat the request").
			WithHeader("Retry-After", "1")
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrFenced):
		return Unavailable("the store does not respond at present: repeat the request")
	case errors.Is(err, context.Canceled):
		return New(api.ProblemClientClosed, "the client disconnected")
	case errors.Is(err, context.DeadlineExceeded):
		return Unavailable("the request took too long: nothing was changed")
	}
	return New(api.ProblemInternal, "the server failed; its log says why")
}

// Redacted returns the problem with misplaced secrets redacted.
func (p *Problem) Redacted() *Problem {
	shown := *p
	shown.Detail = api.Redact(p.Detail)
	shown.Errors = nil
	for _, e := range p.Errors {
		shown.Errors = append(shown.Errors, api.FieldError{Field: api.Redact(e.Field), Message: api.Redact(e.Message)})
	}
	return &shown
}

// Write writes a response outside of huma: before a route is found, or after a panic.
func Write(w http.ResponseWriter, p *Problem) {
	for name, values := range p.header {
		w.Header()[name] = values
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(p.Redacted()) // strings and numbers can always be encoded
	w.Header().Set("Content-Type", MediaType)
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(p.Status)
	_, _ = w.Write(body.Bytes()) // fails if the client has gone away
}
