package auth

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
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

func openTokens(t *testing.T) TokenStore {
	s, err := store.Open(t.Context(), store.Options{DataDir: t.TempDir(), NoFsync: true, MinFreeBytes: 1, RequestTimeout: storetest.Patience, Patience: storetest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
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

func revokeButLast(t *testing.T, tokens TokenStore, id string) error {
	_, err := RevokeButLast(t.Context(), tokens, id, Roles{}, time.Now())
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
	tokens := openTokens(t)
	for name, test := range map[string]struct {
		roles           []Role
		revoked, second int // indexes of the token, and of the one that is revoked in between
		err             error
	}{
		"the older administrator first":              {[]Role{RoleAdmin, RoleAdmin, RoleEditor}, 1, 0, ErrLastAdministrator},
		"the newer administrator first":              {[]Role{RoleAdmin, RoleAdmin, RoleEditor}, 0, 1, ErrLastAdministrator},
		"nothing but the two":                        {[]Role{RoleAdmin, RoleAdmin}, 0, 1, nil},
		"a third administrator stays":                {[]Role{RoleAdmin, RoleAdmin, RoleAdmin, RoleEditor}, 2, 0, nil},
		"an editor and an administrator":             {[]Role{RoleAdmin, RoleAdmin, RoleEditor}, 2, 0, nil},
		"the last administrator after the only user": {[]Role{RoleAdmin, RoleAdmin, RoleEditor}, 0, 2, nil},
		"the same token":                             {[]Role{RoleAdmin, RoleAdmin, RoleEditor}, 0, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ids := addTokens(t, tokens, test.roles...)
			meets := &interrupted{tokens, func() {
				if err := revokeButLast(t, tokens, ids[test.second]); err != nil {
					t.Error(err)
				}
			}}
			if err := revokeButLast(t, meets, ids[test.revoked]); !errors.Is(err, test.err) {
				t.Errorf("got %v, want %v", err, test.err)
			}
			if meets.before != nil {
				t.Error("nothing was revoked in between")
			}
			if left := stored(t, tokens); left[ids[test.revoked]] != (test.err != nil) || left[ids[test.second]] {
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

// TestRevocationsAtOnce revokes two administrators at once: one is refused.
func TestRevocationsAtOnce(t *testing.T) {
	tokens := openTokens(t)
	addTokens(t, tokens, RoleEditor)
	ids := addTokens(t, tokens, RoleAdmin)
	for range 20 {
		ids = append(ids, addTokens(t, tokens, RoleAdmin)...)
		errs := make([]error, len(ids))
		var all sync.WaitGroup
		for i, id := range ids {
			all.Go(func() { errs[i] = revokeButLast(t, tokens, id) })
		}
		all.Wait()
		refused := 0
		if !errors.Is(errs[refused], ErrLastAdministrator) {
			refused = 1
		}
		if !errors.Is(errs[refused], ErrLastAdministrator) || errs[1-refused] != nil {
			t.Fatalf("got %v, want one refused", errs)
		}
		ids = ids[refused : refused+1]
	}
}
