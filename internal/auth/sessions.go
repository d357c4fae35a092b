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
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// sessionCheck is how often the tokens of the requests under way are looked at.
const sessionCheck = 200 * time.Millisecond

// ErrEnded is why a request ends whose token no longer says what it said when the
// request began.
var ErrEnded = errors.New("the token has been revoked, has expired, or now has other rights")

// Sessions lets requests in by their tokens, and ends those under way when their token
// does, however long they would wait or stream. Each token is looked at once for all of
// its requests. The fleet follows the tokens in the store, so a revoked one stops
// working within milliseconds, and looking one up costs the store nothing, however many
// bad tokens somebody tries.
type Sessions struct {
	fleet    *fleet.Fleet
	required bool
	logger   *slog.Logger
	now      func() time.Time

	mu       sync.Mutex
	requests map[string]map[*session]struct{} // by the token's id, "" for those without
}

// session is a request that has been let in.
type session struct {
	who Identity
	end context.CancelCauseFunc
}

// NewSessions knows the tokens of a fleet. required says that nobody is let in without
// one, even while there are none; now is the clock by which they expire.
func NewSessions(tokens *fleet.Fleet, required bool, logger *slog.Logger, now func() time.Time) *Sessions {
	return &Sessions{fleet: tokens, required: required, logger: logger, now: now, requests: map[string]map[*session]struct{}{}}
}

// Loaded reports whether the tokens are known: until then a good one must not be called
// unknown.
func (s *Sessions) Loaded() bool {
	select {
	case <-s.fleet.Ready():
		return true
	default:
		return false
	}
}

// Required says whether requests need a token. A server that has none yet
// may leave everybody an administrator, or nobody could create the first.
func (s *Sessions) Required() bool {
	if s.required {
		return true
	}
	for range s.fleet.Snapshot().AllSystem(KindToken) {
		return true
	}
	return false
}

// token returns a token by its id.
func (s *Sessions) token(id string) (Token, bool) {
	snapshot := s.fleet.Snapshot()
	record, ok := snapshot.System(tokenKey(id))
	if !ok || snapshot.Damaged(tokenKey(id)) != nil {
		return Token{}, false
	}
	token, err := decodeToken(record)
	if err != nil {
		s.logger.Error("a token cannot be read and is rejected", "error", err)
		return Token{}, false
	}
	expired := token.ExpiresAt != nil && !s.now().Before(*token.ExpiresAt)
	return token, !expired
}

// Verify checks the text of a token. The comparison takes the same time
// whether the id is known or not.
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
	return token.identity(), true
}

// Tokens returns the tokens that the fleet shows, the oldest first.
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

// Begin is the context of a request of somebody. It ends with the token; the
// function returned ends it otherwise.
func (s *Sessions) Begin(ctx context.Context, who Identity) (context.Context, func()) {
	ctx, end := context.WithCancelCause(With(ctx, who))
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

// UnderWay is how many requests of a token have begun and not ended.
func (s *Sessions) UnderWay(tokenID string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests[tokenID])
}

// check ends the requests whose token no longer stands for who was let in.
func (s *Sessions) check() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, requests := range s.requests {
		stored, ok := s.stored(id)
		for r := range requests {
			if r.who.issued() && s.expired(r.who) || !r.who.issued() && (!ok || !r.who.same(stored)) {
				r.end(ErrEnded)
			}
		}
	}
}

// same reports whether two may do the same.
func (who Identity) same(other Identity) bool {
	return who.TokenID == other.TokenID && who.Role == other.Role && slices.Equal(who.Namespaces, other.Namespaces)
}

// expired reports whether the token of a trusted issuer has expired.
func (s *Sessions) expired(who Identity) bool { return !s.now().Before(who.ExpiresAt) }

// stored is who a token of the server stands for now, and who makes requests without one.
func (s *Sessions) stored(tokenID string) (Identity, bool) {
	if tokenID == "" {
		return Identity{Role: RoleAdmin}, !s.Required()
	}
	token, ok := s.token(tokenID)
	return token.identity(), ok
}

// Watch ends the requests of tokens that have ended, until ctx does.
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

// Check is asked after a long wait: who may not do any more what they might when
// the request began must not be shown anything more. The error is ErrEnded.
func (s *Sessions) Check(ctx context.Context) error {
	who := Of(ctx)
	if Ended(ctx) {
		return ErrEnded
	}
	if who.issued() {
		if s.expired(who) {
			return ErrEnded
		}
		return nil
	}
	if now, ok := s.stored(who.TokenID); !ok || !who.same(now) {
		return ErrEnded
	}
	return nil
}

// Ended reports whether a request was ended because its token did.
func Ended(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrEnded) }
