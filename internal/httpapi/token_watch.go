package httpapi

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// tokenCheck is how often the tokens of the requests under way are looked at.
const tokenCheck = 200 * time.Millisecond

// errTokenEnded is why a request ends whose token no longer says what it said when
// the request began.
var errTokenEnded = errors.New("the token has been revoked, has expired, or is for something else now")

// tokenWatch ends the requests under way when their token does, however long they
// would wait or stream. Each token is looked at once for all of its requests.
type tokenWatch struct {
	mu       sync.Mutex
	requests map[string]map[*underWay]struct{} // by the token's id, "" for those without
}

// underWay is a request that has been let in.
type underWay struct {
	who identity
	end context.CancelCauseFunc
}

func newTokenWatch() *tokenWatch {
	return &tokenWatch{requests: map[string]map[*underWay]struct{}{}}
}

// follow is the context of a request of somebody. It ends with the token; the
// function returned ends it otherwise.
func (t *tokenWatch) follow(ctx context.Context, who identity) (context.Context, func()) {
	ctx, end := context.WithCancelCause(withIdentity(ctx, who))
	r := &underWay{who, end}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.requests[who.tokenID] == nil {
		t.requests[who.tokenID] = map[*underWay]struct{}{}
	}
	t.requests[who.tokenID][r] = struct{}{}
	return ctx, func() {
		end(nil)
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.requests[who.tokenID], r)
		if len(t.requests[who.tokenID]) == 0 {
			delete(t.requests, who.tokenID)
		}
	}
}

// check ends the requests whose token no longer stands for who was let in. present
// is who a token stands for now; false where it is for nobody.
func (t *tokenWatch) check(present func(tokenID string) (identity, bool)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, requests := range t.requests {
		now, ok := present(id)
		for r := range requests {
			if !ok || !r.who.same(now) {
				r.end(errTokenEnded)
			}
		}
	}
}

// same reports whether two may do the same.
func (i identity) same(other identity) bool {
	return i.tokenID == other.tokenID && i.role == other.role && slices.Equal(i.namespaces, other.namespaces)
}

// present is who a token stands for now, and who makes requests without one.
func (s *Server) present(tokenID string) (identity, bool) {
	if tokenID == "" {
		return identity{role: RoleAdmin}, !s.demandsToken()
	}
	token, ok := s.token(tokenID)
	return identity{tokenID: token.ID, role: token.Role, namespaces: token.Namespaces}, ok
}

// watchTokens checks the tokens of the requests under way until ctx ends.
func (s *Server) watchTokens(ctx context.Context) {
	ticker := time.NewTicker(tokenCheck)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.tokens.check(s.present)
		case <-ctx.Done():
			return
		}
	}
}

// stillValid is asked after a long wait: who may not do any more what he might when
// the request began must not be shown anything more.
func (s *Server) stillValid(ctx context.Context) error {
	who := identityOf(ctx)
	if now, ok := s.present(who.tokenID); !ok || !who.same(now) || errors.Is(context.Cause(ctx), errTokenEnded) {
		return unauthorized(errTokenEnded.Error())
	}
	return nil
}
