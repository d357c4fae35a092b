package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// sessionCheck is the interval between checks of the tokens of running requests.
const sessionCheck = 200 * time.Millisecond

// ErrEnded is the cause of the cancellation of a request whose token was revoked, has expired or
// was changed since the request began.
var ErrEnded = errors.New("the token has been revoked, has expired, or now has other rights")

// Sessions authenticates requests by their tokens, and cancels running requests when their token
// ends, however long they would wait or stream. Each token is checked once for all of its requests.
// Tokens come from the fleet, so a revoked token stops working within milliseconds, and a lookup
// does not access the store, however many invalid tokens are tried.
type Sessions struct {
	fleet    *fleet.Fleet
	required bool
	logger   *slog.Logger
	now      func() time.Time

	roles    atomic.Pointer[knownRoles]
	versions atomic.Int64 // of the roles

	// decoded has the tokens that were used, by their ids: each is read once.
	decoded sync.Map // of string to decoded

	mu       sync.Mutex
	requests map[string]map[*session]struct{} // by token ID, "" for requests without token
}

// decoded is a token as it was stored at a revision.
type decoded struct {
	Token

	revision int64
}

// knownRoles are the roles at a revision.
type knownRoles struct {
	revision int64
	// The number of their objects and the newest of them tell whether they are those of another revision as well.
	number int
	newest int64
	Roles
}

// session is an authenticated request.
type session struct {
	who Identity
	end context.CancelCauseFunc
}

// NewSessions returns Sessions for the tokens and roles of a fleet. required says that a token is required even if there
// are none yet; now is the clock for their expiry.
func NewSessions(tokens *fleet.Fleet, required bool, logger *slog.Logger, now func() time.Time) *Sessions {
	return &Sessions{fleet: tokens, required: required, logger: logger, now: now, requests: map[string]map[*session]struct{}{}}
}

// Loaded reports whether the tokens are loaded: before that, a valid token must not be rejected.
func (s *Sessions) Loaded() bool {
	select {
	case <-s.fleet.Ready():
		return true
	default:
		return false
	}
}

// Required reports whether requests need a token. While a server has no tokens, everybody may be an
// administrator, because otherwise nobody could create the first one.
func (s *Sessions) Required() bool {
	if s.required {
		return true
	}
	for range s.fleet.Snapshot().AllSystem(KindToken) {
		return true
	}
	return false
}

// token returns a token by its ID.
func (s *Sessions) token(id string) (Token, bool) {
	snapshot := s.fleet.Snapshot()
	record, ok := snapshot.System(tokenKey(id))
	if !ok || snapshot.Damaged(tokenKey(id)) != nil {
		s.decoded.Delete(id)
		return Token{}, false
	}
	known, _ := s.decoded.Load(id)
	token, ok := known.(decoded)
	if !ok || token.revision != record.ModRevision {
		read, err := decodeToken(record)
		if err != nil {
			s.logger.Error("a token cannot be read and is rejected", "error", err)
			return Token{}, false
		}
		token = decoded{read, record.ModRevision}
		s.decoded.Store(id, token)
	}
	expired := token.ExpiresAt != nil && !s.now().Before(*token.ExpiresAt)
	return token.Token, !expired
}

// Verify checks the text of a token. The comparison takes the same time whether the ID is known or
// not.
func (s *Sessions) Verify(text string) (Identity, bool) {
	id, secret, _ := strings.Cut(text, ".")
	token, known := s.token(id)
	hash := sha256.Sum256([]byte(secret))
	expected := token.Hash
	if !known {
		expected = make([]byte, len(hash))
	}
	if subtle.ConstantTimeCompare(hash[:], expected) != 1 || !known {
		return Identity{}, false
	}
	return s.Roles().Resolve(token.identity()), true
}

// Roles returns the roles as they are now.
func (s *Sessions) Roles() Roles {
	snapshot := s.fleet.Snapshot()
	known := s.roles.Load()
	if known != nil && known.revision == snapshot.Revision() {
		return known.Roles
	}
	next := &knownRoles{revision: snapshot.Revision()}
	for _, kind := range []api.Kind{api.KindRole, api.KindRoleBinding} {
		for entry := range snapshot.All(kind, "") {
			next.number++
			next.newest = max(next.newest, entry.Revision())
		}
	}
	if known != nil && known.number == next.number && known.newest == next.newest {
		next.Roles = known.Roles
	} else {
		next.Roles = RolesOf(snapshot)
		next.version = s.versions.Add(1)
	}
	s.roles.Store(next)
	return next.Roles
}

// Resolve returns the identity of a token of a trusted issuer with what its role and the role bindings allow now. If that is
// nothing, the error is a *NotBoundError.
func (s *Sessions) Resolve(who Identity) (Identity, error) {
	roles := s.Roles()
	if who = roles.Resolve(who); who.Role == "" && len(who.bindings) == 0 || len(who.missing) > 0 && len(who.rules) == 0 {
		return Identity{}, roles.notBound(who)
	}
	return who, nil
}

// Tokens returns all tokens, the oldest first.
func (s *Sessions) Tokens() ([]Token, error) {
	var list []Token
	for record := range s.fleet.Snapshot().AllSystem(KindToken) {
		token, err := decodeToken(record)
		if err != nil {
			return nil, err
		}
		list = append(list, token)
	}
	slices.SortFunc(list, oldestToken)
	return list, nil
}

// Begin returns the context of a request. It is canceled when the token ends; the returned function
// ends the session.
func (s *Sessions) Begin(ctx context.Context, who Identity) (context.Context, func()) {
	ctx, end := context.WithCancelCause(with(ctx, who))
	r := &session{who, end}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests[who.TokenID] == nil {
		s.requests[who.TokenID] = map[*session]struct{}{}
	}
	s.requests[who.TokenID][r] = struct{}{}
	return ctx, func() {
		end(nil)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.requests[who.TokenID], r)
		if len(s.requests[who.TokenID]) == 0 {
			delete(s.requests, who.TokenID)
		}
	}
}

// UnderWay returns the number of running requests of a token.
func (s *Sessions) UnderWay(tokenID string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests[tokenID])
}

// check cancels the requests whose token no longer has the identity with which they began.
func (s *Sessions) check() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, requests := range s.requests {
		stored, ok := s.stored(id)
		for r := range requests {
			if r.who.issued() && s.ended(r.who) || !r.who.issued() && (!ok || !r.who.same(stored)) {
				r.end(ErrEnded)
			}
		}
	}
}

// same reports whether two identities have the same rights.
func (who Identity) same(other Identity) bool {
	return who.TokenID == other.TokenID && slices.EqualFunc(who.allowed(), other.allowed(), func(a, b api.RoleRule) bool {
		return slices.Equal(a.Verbs, b.Verbs) && slices.Equal(a.Kinds, b.Kinds) && slices.Equal(a.Namespaces, b.Namespaces)
	})
}

// ended reports whether the token of a trusted issuer has expired, or has other rights now.
func (s *Sessions) ended(who Identity) bool {
	roles := s.Roles()
	return !s.now().Before(who.ExpiresAt) || who.resolved != roles.version && !who.same(roles.Resolve(who))
}

// stored is who a token of the server stands for now, and who makes requests without one.
func (s *Sessions) stored(tokenID string) (Identity, bool) {
	if tokenID == "" {
		return Identity{Role: RoleAdmin}, !s.Required()
	}
	token, ok := s.token(tokenID)
	return s.Roles().Resolve(token.identity()), ok
}

// Watch cancels the requests of tokens that have ended, until ctx is done.
func (s *Sessions) Watch(ctx context.Context) {
	ticker := time.NewTicker(sessionCheck)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.check()
		case <-ctx.Done():
			return
		}
	}
}

// Check is called after a long wait: if the rights have changed since the request began, nothing
// more may be shown. The error is ErrEnded.
func (s *Sessions) Check(ctx context.Context) error {
	who := Of(ctx)
	if Ended(ctx) {
		return ErrEnded
	}
	if who.issued() {
		if s.ended(who) {
			return ErrEnded
		}
		return nil
	}
	if now, ok := s.stored(who.TokenID); !ok || !who.same(now) {
		return ErrEnded
	}
	return nil
}

// Ended reports whether a request was canceled because its token ended.
func Ended(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrEnded) }
