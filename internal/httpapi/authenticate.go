package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// token returns a token by its id. The fleet follows the tokens in the store, so
// a revoked one stops working within milliseconds, and looking one up costs the
// store nothing, however many bad tokens somebody tries.
func (s *Server) token(id string) (Token, bool) {
	snapshot := s.fleet.Snapshot()
	record, ok := snapshot.System(tokenKey(id))
	if !ok || snapshot.Damaged(tokenKey(id)) != nil {
		return Token{}, false
	}
	token, err := decodeToken(record)
	if err != nil {
		s.logger.Error("a token cannot be read and does not work", "error", err)
		return Token{}, false
	}
	expired := token.ExpiresAt != nil && !s.now().Before(*token.ExpiresAt)
	return token, !expired
}

// verify checks the text of a bearer token. The comparison takes the same time
// whether the id is known or not.
func (s *Server) verify(text string) (identity, bool) {
	id, secret, _ := strings.Cut(text, ".")
	token, known := s.token(id)
	hash := sha256.Sum256([]byte(secret))
	expected := token.Hash
	if !known {
		expected = make([]byte, len(hash))
	}
	if subtle.ConstantTimeCompare(hash[:], expected) != 1 || !known {
		return identity{}, false
	}
	return identity{tokenID: token.ID, role: token.Role, namespaces: token.Namespaces}, true
}

// challenge asks for a token. It tells a client that its token is the matter, also
// where the answer is that there were too many such requests: repeating does not help.
const challenge = `Bearer realm="scheduler"`

func unauthorized(detail string) *problem {
	return newProblem(api.ProblemUnauthenticated, "%s", detail).withHeader("WWW-Authenticate", challenge)
}

// open are the paths that need no token: what a load balancer asks, and the
// description of the API.
var open = map[string]bool{"/healthz": true, "/readyz": true, openAPIPath: true}

// loaded reports whether the server knows its objects, tokens among them.
func (s *Server) loaded() bool {
	select {
	case <-s.fleet.Ready():
		return true
	default:
		return false
	}
}

// demandsToken says whether requests need a token. A server that has none yet
// may leave everybody an administrator, or nobody could create the first.
func (s *Server) demandsToken() bool {
	if s.options.Authenticate {
		return true
	}
	for range s.fleet.Snapshot().AllSystem(KindToken) {
		return true
	}
	return false
}

// authenticate finds out who makes a request. Where no token is demanded
// everybody is an administrator: the server then listens on loopback only, or
// was told to be insecure.
func (s *Server) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if open[r.URL.Path] {
			next.ServeHTTP(w, r)
			return
		}
		// Until the tokens are known, a good one must not be called unknown.
		if !s.loaded() {
			writeProblem(w, unavailable("the server is still loading its objects: repeat the request"))
			return
		}
		if !s.demandsToken() {
			s.serveAs(identity{role: RoleAdmin}, next, w, r)
			return
		}
		scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		given := strings.EqualFold(scheme, "Bearer") && text != ""
		if given {
			if who, ok := s.verify(strings.TrimSpace(text)); ok {
				requestOf(r.Context()).tokenID = who.tokenID
				s.serveAs(who, next, w, r)
				return
			}
		}
		s.metrics.authFailures.Inc()
		// A good token never gets here, so whoever shares the address of an
		// attacker is not locked out.
		if !s.logins.allow(r.RemoteAddr) {
			writeProblem(w, newProblem(api.ProblemTooManyLogins, "too many failed logins from this address").withHeader("Retry-After", "5").withHeader("WWW-Authenticate", challenge))
			return
		}
		detail := "a token is required: send Authorization: Bearer <token>"
		if given {
			detail = "the token is unknown, revoked or expired"
		}
		s.logger.LogAttrs(r.Context(), slog.LevelWarn, "login failed",
			slog.String("request_id", requestOf(r.Context()).id), slog.String("client", clientIP(r.RemoteAddr)))
		writeProblem(w, unauthorized(detail))
	})
}

// serveAs answers the request of somebody, for as long as he is let in.
func (s *Server) serveAs(who identity, next http.Handler, w http.ResponseWriter, r *http.Request) {
	ctx, release := s.tokens.follow(r.Context(), who)
	defer release()
	next.ServeHTTP(w, r.WithContext(ctx))
}
