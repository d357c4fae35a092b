package auth

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/tempstore"
)

// interrupted is a store in which something else happens just before the first commit.
type interrupted struct {
	TokenStore
	before func()
}

func (i *interrupted) Commit(ctx context.Context, writes ...store.Write) (int64, error) {
	if before := i.before; before != nil {
		i.before = nil
		before()
	}
	return i.TokenStore.Commit(ctx, writes...)
}

func addTokens(t *testing.T, tokens TokenStore, roles ...Role) (ids []string) {
	t.Helper()
	for _, role := range roles {
		_, token, _, err := CreateToken(t.Context(), tokens, TokenRequest{Role: role}, Roles{}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, token.ID)
	}
	return ids
}

func revokeButLast(t *testing.T, tokens TokenStore, by, id string) error {
	_, err := RevokeButLast(t.Context(), tokens, Identity{TokenID: by, Role: RoleAdmin}, id, time.Now())
	return err
}

// stored returns the tokens that are there, by ID.
func stored(t *testing.T, tokens TokenStore) map[string]bool {
	t.Helper()
	list, err := ListTokens(t.Context(), tokens)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, token := range list {
		ids[token.ID] = true
	}
	return ids
}

// TestRevocationsThatMeet revokes a token while the revocation of another has been checked and is not yet written.
func TestRevocationsThatMeet(t *testing.T) {
	tokens := tempstore.Open(t)
	type revocation struct{ by, of int } // indexes of tokens; by -1: somebody of an issuer
	two, user := []Role{RoleAdmin, RoleAdmin}, []Role{RoleAdmin, RoleAdmin, RoleEditor}
	for name, test := range map[string]struct {
		roles         []Role
		first, within revocation // within is written while first waits
		err           error      // of first
	}{
		"each other, the newer waits":        {user, revocation{1, 0}, revocation{0, 1}, ErrEnded},
		"each other, the older waits":        {user, revocation{0, 1}, revocation{1, 0}, ErrEnded},
		"each other, and there are no more":  {two, revocation{0, 1}, revocation{1, 0}, ErrEnded},
		"both their own, the newer waits":    {user, revocation{1, 1}, revocation{0, 0}, ErrLastAdministrator},
		"both their own, the older waits":    {user, revocation{0, 0}, revocation{1, 1}, ErrLastAdministrator},
		"both their own, and there are none": {two, revocation{0, 0}, revocation{1, 1}, nil},
		"its own, and a third stays":         {append(two, RoleAdmin), revocation{0, 0}, revocation{1, 1}, nil},
		"another's, by somebody who is gone": {append(two, RoleAdmin), revocation{0, 2}, revocation{1, 0}, ErrEnded},
		"a user's, and another's own":        {user, revocation{0, 2}, revocation{1, 1}, nil},
		"its own, while the user's ends":     {user, revocation{0, 0}, revocation{1, 2}, nil},
		"the same, by two":                   {user, revocation{0, 0}, revocation{1, 0}, nil},
		"an issuer's, while all others end":  {two, revocation{-1, 1}, revocation{-1, 0}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ids := addTokens(t, tokens, test.roles...)
			by := func(r revocation) string {
				if r.by < 0 {
					return issuedTokenID("pipelines", "release")
				}
				return ids[r.by]
			}
			meets := &interrupted{tokens, func() {
				if err := revokeButLast(t, tokens, by(test.within), ids[test.within.of]); err != nil {
					t.Error(err)
				}
			}}
			if err := revokeButLast(t, meets, by(test.first), ids[test.first.of]); !errors.Is(err, test.err) {
				t.Errorf("got %v, want %v", err, test.err)
			}
			if meets.before != nil {
				t.Error("nothing was revoked in between")
			}
			if left := stored(t, tokens); left[ids[test.first.of]] != (test.err != nil) || left[ids[test.within.of]] {
				t.Errorf("left: %v of %v", left, ids)
			}
			for id := range stored(t, tokens) {
				if _, err := RevokeToken(t.Context(), tokens, id); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestRevocationsAtOnce has the last two administrators revoke each other, or themselves, at once: one is refused.
func TestRevocationsAtOnce(t *testing.T) {
	for name, own := range map[string]bool{"each other": false, "themselves": true} {
		t.Run(name, func(t *testing.T) {
			tokens := tempstore.Open(t)
			addTokens(t, tokens, RoleEditor)
			left := addTokens(t, tokens, RoleAdmin)
			for range 20 {
				ids := slices.Concat(left, addTokens(t, tokens, RoleAdmin))
				errs := make([]error, len(ids))
				var all sync.WaitGroup
				for i, id := range ids {
					of := ids[1-i]
					if own {
						of = id
					}
					all.Go(func() { errs[i] = revokeButLast(t, tokens, id, of) })
				}
				all.Wait()
				left = slices.DeleteFunc(ids, func(id string) bool { return !stored(t, tokens)[id] })
				if len(left) != 1 || (errs[0] == nil) == (errs[1] == nil) {
					t.Fatalf("got %v and %d administrators, want one refused and one left", errs, len(left))
				}
			}
		})
	}
}
