package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// problem is an error answer on its way to the client.
type problem struct {
	api.Problem
	header http.Header
}

// GetStatus tells huma the status code.
func (p *problem) GetStatus() int { return p.Status }

// GetHeaders tells huma the extra headers.
func (p *problem) GetHeaders() http.Header { return p.header }

// ContentType is the media type of RFC 9457.
func (p *problem) ContentType(string) string { return problemMediaType }

const problemMediaType = "application/problem+json"

// newProblem is a problem of a type, with the status that the type has.
func newProblem(t api.ProblemType, format string, args ...any) *problem {
	info, _ := api.LookupProblem(t)
	return &problem{Problem: api.Problem{
		Type: t, Title: info.Title, Status: info.Status, Detail: fmt.Sprintf(format, args...),
	}}
}

func (p *problem) withHeader(name, value string) *problem {
	if p.header == nil {
		p.header = http.Header{}
	}
	p.header.Set(name, value)
	return p
}

// notFound is the answer about an object that cannot be shown: it does not exist,
// or it is damaged.
func (s *Server) notFound(key api.Key) *problem {
	if s.fleet.Snapshot().Damaged(key) != nil {
		return damagedObject(key)
	}
	return newProblem(api.ProblemNotFound, "%s does not exist", key)
}

func damagedObject(key api.Key) *problem {
	return newProblem(api.ProblemDamaged, "%s is damaged in the store: write it again with PUT or delete it, or restore a backup; until then decisions that rest on it stay as they are", key)
}

func unavailable(detail string) *problem {
	return newProblem(api.ProblemUnavailable, "%s", detail).withHeader("Retry-After", "1")
}

// invalid is a 422 about one field.
func invalid(field, format string, args ...any) *problem {
	return invalidFields(api.FieldErrors{{Field: field, Message: fmt.Sprintf(format, args...)}})
}

func invalidFields(fields api.FieldErrors) *problem {
	p := newProblem(api.ProblemInvalid, "the request has an invalid field")
	if len(fields) != 1 {
		p.Detail = fmt.Sprintf("the request has %d invalid fields", len(fields))
	}
	p.Errors = fields
	return p
}

// The errors that huma itself makes take our form, too.
func init() {
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		var fields api.FieldErrors
		for _, err := range errs {
			if p, ok := errors.AsType[*problem](err); ok {
				return p
			}
			if d, ok := err.(huma.ErrorDetailer); ok {
				detail := d.ErrorDetail()
				fields.Add(humaField(detail.Location), "%s", detail.Message)
			}
		}
		p := newProblem(api.ProblemOfStatus(status), "%s", message)
		p.Errors = fields
		return p.redacted()
	}
}

// humaField drops the part of the request from huma's location of an error; the
// name of the parameter says enough.
func humaField(location string) string {
	for _, part := range []string{"body.", "query.", "path.", "header."} {
		if rest, ok := strings.CutPrefix(location, part); ok {
			return rest
		}
	}
	return location
}

// problemFor is the one place where an error becomes an answer.
func problemFor(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if fields, ok := errors.AsType[api.FieldErrors](err); ok {
		return invalidFields(fields)
	}
	if forbidden, ok := errors.AsType[*auth.ForbiddenError](err); ok {
		p := newProblem(api.ProblemForbidden, "%s", forbidden)
		p.Errors = forbidden.Fields
		return p
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return newProblem(api.ProblemTooLarge, "the body may have at most %d bytes", tooLarge.Limit).
			withHeader("Connection", "close")
	}
	if conflict, ok := errors.AsType[*store.ConflictError](err); ok {
		return newProblem(api.ProblemConflict, "%s: read the object again and repeat the request", conflict)
	}
	if stalled, ok := errors.AsType[*store.StalledError](err); ok {
		return unavailable(stalled.Error() + ": nothing was changed; repeat the request")
	}
	switch {
	case errors.Is(err, auth.ErrEnded):
		return unauthorized(err.Error())
	case errors.Is(err, auth.ErrNoToken):
		return newProblem(api.ProblemNotFound, "%s", auth.ErrNoToken)
	case errors.Is(err, store.ErrCompacted):
		return newProblem(api.ProblemRevisionGone, "the revision is no longer kept: start again without continue or resource_version")
	case errors.Is(err, store.ErrDamaged):
		return newProblem(api.ProblemDamaged, "what the request is about is damaged in the store; the server's log names it")
	case errors.Is(err, store.ErrFull):
		return newProblem(api.ProblemStoreFull, "the store is full: nothing was written; reads and deletions go on")
	case errors.Is(err, store.ErrInvalid):
		return newProblem(api.ProblemTooLarge, "the object is larger than the store can hold")
	case errors.Is(err, store.ErrUncertain):
		return newProblem(api.ProblemUnconfirmed, "the store did not confirm the write, and it may have happened: read the object, then repeat the request").
			withHeader("Retry-After", "1")
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrFenced):
		return unavailable("the store does not answer at present: repeat the request")
	case errors.Is(err, context.Canceled):
		return newProblem(api.ProblemClientClosed, "the client went away")
	case errors.Is(err, context.DeadlineExceeded):
		return unavailable("the request took too long: nothing was changed")
	}
	return newProblem(api.ProblemInternal, "the server failed; its log says why")
}

// redacted is a problem that repeats nothing that looks like a secret in a wrong place.
func (p *problem) redacted() *problem {
	shown := *p
	shown.Detail = api.Redact(p.Detail)
	shown.Errors = nil
	for _, e := range p.Errors {
		shown.Errors = append(shown.Errors, api.FieldError{Field: api.Redact(e.Field), Message: api.Redact(e.Message)})
	}
	return &shown
}

// answer turns the error of a handler into its problem, and logs what the
// client is not told.
func (s *Server) answer(ctx context.Context, err error) *problem {
	p := problemFor(err)
	if auth.Ended(ctx) {
		p = unauthorized(auth.ErrEnded.Error())
	}
	if p.Status >= http.StatusInternalServerError {
		s.logger.LogAttrs(ctx, slog.LevelError, "request failed",
			slog.String("request_id", requestOf(ctx).id), slog.Int("status", p.Status), slog.Any("error", err))
	}
	return p.redacted()
}

// writeProblem answers outside of huma: before a route is found, or after a
// panic.
func writeProblem(w http.ResponseWriter, p *problem) {
	for name, values := range p.header {
		w.Header()[name] = values
	}
	body := encodeJSON(p.redacted())
	w.Header().Set("Content-Type", problemMediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // the client went away: there is nobody to tell
}
