package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/serve"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

// request is the state of a request while it is served.
type request struct {
	id    string
	route string
	began time.Time
	// span is the part of a trace that the request is, if that is recorded.
	span tracing.Span
	// who is the identity of the client, once it is authenticated.
	who auth.Identity
	// audited is for the audit log.
	audited audited
	// lastContact is when the snapshot that is shown was last known to be complete; zero if none of it
	// is shown.
	lastContact time.Time
	// server is the name of this server, if the client may know it. A response from another server
	// has the headers of that server.
	server string
}

type requestKey struct{}

// requestOf returns the request state in a context.
func requestOf(ctx context.Context) *request {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		return r
	}
	return &request{}
}

var requestIDShape = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// requestID uses the client's ID, so that both logs have the same one, or generates one.
func requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); id != "" && requestIDShape.MatchString(id) {
		return id
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand crashes the program instead
	return hex.EncodeToString(id[:])
}

// knownMethods limits the values of the method label: a client may send any word.
var knownMethods = []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodPatch, http.MethodOptions}

// methodOf returns the method of a request, or "other".
func methodOf(r *http.Request) string {
	if !slices.Contains(knownMethods, r.Method) {
		return "other"
	}
	return r.Method
}

// observe logs and counts every request. Queries, headers and bodies are not logged, because they
// may contain secrets.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		note := &request{id: requestID(r), route: "none", began: started}
		w.Header().Set("X-Request-Id", note.id)
		if !isOpen(r.URL.Path) {
			note.lastContact = s.waits.lastContact()
		}
		answer := &answerWriter{ResponseWriter: w, note: note, begin: func(status int) { s.audit.end(r, note, status) }}
		s.metrics.inFlight.Inc()
		defer s.metrics.inFlight.Dec()
		next.ServeHTTP(answer, r.WithContext(context.WithValue(r.Context(), requestKey{}, note)))

		method := methodOf(r)
		status := answer.code()
		if answer.status == 0 {
			s.audit.end(r, note, status)
		}
		took := time.Since(started)
		ctx := note.span.In(r.Context())
		s.metrics.observe(ctx, note.route, method, status, took)
		note.span.Answered(method, note.route, serve.ClientOf(r.RemoteAddr), note.id, status)
		level := slog.LevelDebug
		if status >= http.StatusBadRequest {
			level = slog.LevelInfo
		}
		if !s.logger.Enabled(ctx, level) {
			return
		}
		s.logger.LogAttrs(ctx, level, "request",
			slog.String("request_id", note.id), slog.String("method", method), slog.String("route", note.route),
			slog.Int("status", status), slog.Duration("took", took),
			slog.String("client", serve.ClientOf(r.RemoteAddr)), slog.String("token", note.who.TokenID))
	})
}

// untraced are the paths of requests that are no part of a trace: they tell nothing, come all the time, or do not
// end.
var untraced = map[string]bool{"/metrics": true, watchPath: true}

// trace makes the request a part of the trace that the client sends, or of one of its own. It comes after
// authentication: otherwise anyone could fill the queue of traces.
func (s *Server) trace(next http.Handler) http.Handler {
	if s.options.Tracer == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if open[r.URL.Path] || untraced[r.URL.Path] {
			next.ServeHTTP(w, r)
			return
		}
		note := requestOf(r.Context())
		ctx, span := s.options.Tracer.Serve(r.Context(), r.Header, note.began)
		note.span = span
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// survive responds with 500 if a handler panics.
func (s *Server) survive(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer s.recovered(r.Context(), w)
		next.ServeHTTP(w, r)
	})
}

// recovered must be deferred. It does nothing unless there was a panic.
func (s *Server) recovered(ctx context.Context, w http.ResponseWriter) {
	cause := recover()
	if cause == nil {
		return
	}
	if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		breakOff()
	}
	s.metrics.panics.Inc()
	note := requestOf(ctx)
	s.options.Faults.Component("http").Note(&recovery.Panic{Object: note.id, Cause: cause, Stack: debug.Stack()})
	s.logger.LogAttrs(note.span.In(ctx), slog.LevelError, "panic in a request",
		slog.String("request_id", note.id), slog.String("route", note.route),
		slog.Any("panic", cause), slog.String("stack", string(debug.Stack())))
	if answer, ok := w.(*answerWriter); ok && answer.status != 0 {
		breakOff()
	}
	clear(w.Header())
	w.Header().Set("X-Request-Id", note.id)
	problem.Write(w, problem.New(api.ProblemInternal, "the server failed; its log says why"))
}

// breakOff aborts a response, so that the client does not mistake a partial response for a complete
// one. net/http has no other way to do that.
func breakOff() {
	panic(http.ErrAbortHandler) //nolint:forbidigo // see above; net/http recovers it
}

// answerWriter records the status.
type answerWriter struct {
	http.ResponseWriter
	note   *request
	begin  func(status int) // called before the response begins
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *answerWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
		w.note.describe(w.Header())
		w.begin(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *answerWriter) Write(data []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(data)
}

// Unwrap supports http.ResponseController.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *answerWriter) code() int {
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}

// answer converts the error of a handler to a problem, and logs what the client is not told.
func (s *Server) answer(ctx context.Context, err error) *problem.Problem {
	p := problem.Of(err)
	if auth.Ended(ctx) {
		p = problem.Unauthorized(auth.ErrEnded.Error())
	}
	if p.Status >= http.StatusInternalServerError {
		s.logger.LogAttrs(ctx, slog.LevelError, "request failed",
			slog.String("request_id", requestOf(ctx).id), slog.Int("status", p.Status), slog.Any("error", err))
	}
	p = p.Redacted()
	requestOf(ctx).audited.refusal = p
	return p
}
