package httpapi

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth/jwt"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/serve"
)

// open are the paths that need no token: health checks, the description of the API and of logins,
// and messages between servers, which are encrypted.
var open = map[string]bool{"/healthz": true, "/readyz": true, openAPIPath: true, loginsPath: true, relayPath: true, historyPartPath: true, uiPath: true}

// isOpen reports whether a path needs no token. The files of the page contain no data; a path that
// leads out of their directory is not one of them.
func isOpen(path string) bool {
	file, ofPage := strings.CutPrefix(path, uiPath+"/")
	return open[path] || ofPage && !strings.Contains(file, "/")
}

// authenticate determines who makes a request. If no token is required, everybody is an
// administrator: the server then listens on loopback only, or was started with --insecure.
func (s *Server) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isOpen(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		// Until the tokens are loaded, a valid one must not be rejected.
		if !s.sessions.Loaded() {
			problem.Write(w, problem.Unavailable("the server is still loading its objects: repeat the request"))
			return
		}
		scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		text = strings.TrimSpace(text)
		given := strings.EqualFold(scheme, "Bearer") && text != ""
		required := s.sessions.Required()
		// The first token may just have been created through another server.
		if !required && given && s.waits.leader.behind(r.Context()) {
			required = s.sessions.Required()
		}
		if !required {
			s.serveAs(auth.Identity{Role: auth.RoleAdmin}, next, w, r)
			return
		}
		if given && s.letIn(text, next, w, r) {
			return
		}
		var issued error // why the token of an issuer is not accepted
		if given && s.options.Issuers != nil && jwt.Looks(text) {
			var who auth.Identity
			if who, issued = s.options.Issuers.Verify(r.Context(), text); issued == nil {
				who, issued = s.sessions.Resolve(who)
			}
			if issued == nil {
				s.serveAs(who, next, w, r)
				return
			}
		}
		// A valid token never gets here, so clients that share an attacker's address are not locked
		// out.
		if !s.logins.Allow(serve.ClientOf(r.RemoteAddr)) {
			s.metrics.authFailures.Inc()
			problem.Write(w, problem.New(api.ProblemTooManyLogins, "too many failed logins from this address").WithHeader("Retry-After", "5").WithHeader("WWW-Authenticate", problem.Challenge))
			return
		}
		// Except for a token that was just created through another server.
		if given && s.waits.leader.behind(r.Context()) && s.letIn(text, next, w, r) {
			return
		}
		s.metrics.authFailures.Inc()
		refusal, detail := refuse(given, issued)
		var keys *jwt.KeysError
		if errors.As(issued, &keys) {
			detail += ": " + keys.Cause.Error()
		}
		s.logger.LogAttrs(r.Context(), slog.LevelWarn, "login failed", slog.String("reason", detail),
			slog.String("request_id", requestOf(r.Context()).id), slog.String("client", serve.ClientOf(r.RemoteAddr)))
		requestOf(r.Context()).audited.refusal = refusal.Redacted()
		problem.Write(w, refusal)
	})
}

// refuse is the answer to a request whose token is missing or not accepted, and what it
// says. issued is why the token of an issuer is not.
func refuse(given bool, issued error) (*problem.Problem, string) {
	var unbound *auth.NotBoundError
	var keys *jwt.KeysError
	switch {
	case errors.As(issued, &unbound):
		return problem.New(api.ProblemForbidden, "%s", issued.Error()), issued.Error()
	case errors.As(issued, &keys):
		return problem.Unavailable(issued.Error()), issued.Error()
	case issued != nil:
		return problem.Unauthorized(issued.Error()), issued.Error()
	case given:
		const detail = "the token is unknown, revoked or expired"
		return problem.Unauthorized(detail), detail
	}
	const detail = "a token is required: send Authorization: Bearer <token>"
	return problem.Unauthorized(detail), detail
}

// letIn serves a request if its token is valid, and reports whether it is.
func (s *Server) letIn(token string, next http.Handler, w http.ResponseWriter, r *http.Request) bool {
	who, ok := s.sessions.Verify(token)
	if !ok {
		return false
	}
	s.serveAs(who, next, w, r)
	return true
}

// serveAs serves a request as long as its token is valid.
func (s *Server) serveAs(who auth.Identity, next http.Handler, w http.ResponseWriter, r *http.Request) {
	ctx, release := s.sessions.Begin(r.Context(), who)
	defer release()
	note := requestOf(ctx)
	note.who, note.server = who, s.options.Name
	next.ServeHTTP(w, r.WithContext(ctx))
}
