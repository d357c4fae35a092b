package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// KindToken is the kind of the system records that hold tokens.
const KindToken api.Kind = "token"

// Token is the record of a bearer token, without its secret.
type Token struct {
	ID string `json:"id" doc:"ID of the token: the part before the dot. It is not secret."`
	// Hash is the SHA-256 of the secret. The secret has 256 random bits, so a slow password hash is
	// not needed.
	Hash        []byte     `json:"hash,omitempty" hidden:"true"`
	Role        Role       `json:"role" doc:"A built-in role (admin, editor, viewer or agent) or the name of an object of the kind role."`
	Namespaces  []string   `json:"namespaces,omitempty" doc:"Namespaces that the token is limited to. If omitted, all."`
	Description string     `json:"description,omitempty"`
	CreatedAt   time.Time  `json:"created_at"`
	ExpiresAt   *time.Time `json:"expires_at,omitempty" doc:"When the token expires. Absent if it does not."`

	// revision is the one that stored the record, if the token was listed.
	revision int64
}

// TokenRequest describes a token to create.
type TokenRequest struct {
	Role        Role       `json:"role" doc:"A built-in role (admin, editor, viewer or agent) or the name of an object of the kind role."`
	Namespaces  []string   `json:"namespaces,omitempty" doc:"Namespaces to limit the token to. If omitted, all. Not allowed for the role admin."`
	Description string     `json:"description,omitempty" doc:"What the token is for, at most 256 characters."`
	ExpiresAt   *time.Time `json:"expires_at,omitempty" doc:"When the token expires. If omitted, never."`
}

// Validate returns all validation errors of the request.
func (r *TokenRequest) Validate(roles Roles, now time.Time) api.FieldErrors {
	var errs api.FieldErrors
	roles.check(r.Role, r.Namespaces, &errs)
	if len(r.Description) > 256 {
		errs.Add("description", "must have at most 256 characters, has %d", len(r.Description))
	}
	if r.ExpiresAt != nil && !r.ExpiresAt.After(now) {
		errs.Add("expires_at", "%s must be in the future", r.ExpiresAt.UTC().Format(time.RFC3339))
	}
	return errs
}

// TokenStore is the part of the store that tokens need.
type TokenStore interface {
	Commit(ctx context.Context, writes ...store.Write) (int64, error)
	Read(ctx context.Context, key api.Key) (spec, status *store.Record, err error)
	Page(ctx context.Context, kind api.Kind, namespace, after string, limit int, at int64) (specs []store.Record, statuses map[api.Key]store.Record, next string, revision int64, err error)
}

func tokenKey(id string) api.Key { return api.Key{Kind: KindToken, Name: id} }

// CreateToken stores a new token. The returned text is the only copy of the secret.
func CreateToken(ctx context.Context, tokens TokenStore, request TokenRequest, roles Roles, now time.Time) (text string, token Token, revision int64, err error) {
	if err := request.Validate(roles, now).Err(); err != nil {
		return "", Token{}, 0, err
	}
	var id [8]byte
	var secret [32]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand crashes the program instead
	_, _ = rand.Read(secret[:])
	encoded := base64.RawURLEncoding.EncodeToString(secret[:])
	hash := sha256.Sum256([]byte(encoded))
	token = Token{
		ID: hex.EncodeToString(id[:]), Hash: hash[:], Role: request.Role, Namespaces: request.Namespaces,
		Description: request.Description, CreatedAt: now.UTC(), ExpiresAt: request.ExpiresAt,
	}
	value, err := json.Marshal(token)
	if err != nil {
		return "", Token{}, 0, fmt.Errorf("encode token %s: %w", token.ID, err)
	}
	revision, err = tokens.Commit(ctx, store.Write{Key: tokenKey(token.ID), Part: store.Spec, Value: value, Expect: 0})
	if err != nil {
		return "", Token{}, 0, fmt.Errorf("store token %s: %w", token.ID, err)
	}
	return token.ID + "." + encoded, token, revision, nil
}

// KeepsAdministrator checks the request for a token of somebody who needs none. From the first token on everybody does,
// so that there must be one that can make and revoke others.
func KeepsAdministrator(ctx context.Context, tokens TokenStore, request TokenRequest, roles Roles, now time.Time) error {
	if err := request.Validate(roles, now).Err(); err != nil || request.Role == RoleAdmin {
		return err
	}
	stored, err := ListTokens(ctx, tokens)
	if err != nil || slices.ContainsFunc(stored, func(t Token) bool { return t.administers(now) }) {
		return err
	}
	return api.FieldErrors{{Field: "role", Message: fmt.Sprintf("%s cannot be the role of the first token: once there is a token, every request needs one, and nobody could create or revoke any. "+
		"Create the token of an administrator first (scheduler-server token create --role admin), then this one with it", request.Role)}}
}

// ErrLastAdministrator says that a token is not revoked because nobody could manage the others.
var ErrLastAdministrator = errors.New("this is the last token that may manage tokens, and there are others: " +
	"create another token of an administrator first (scheduler-server token create --role admin), or revoke the others before")

// RevokeButLast deletes a token for somebody, unless it is the own one and nobody could manage the others that there
// are: then it returns ErrLastAdministrator. Somebody whose own token has ended gets ErrEnded, so that of two
// administrators who revoke each other at once, on one server or on two, one stays.
func RevokeButLast(ctx context.Context, tokens TokenStore, who Identity, id string, now time.Time) (revision int64, err error) {
	if !api.IsTokenID(who.TokenID) {
		return RevokeToken(ctx, tokens, id) // who logs in with an issuer needs no stored token to create the next one
	}
	for {
		stored, err := ListTokens(ctx, tokens)
		if err != nil {
			return 0, err
		}
		own := slices.IndexFunc(stored, func(t Token) bool { return t.ID == who.TokenID && t.administers(now) })
		stays := own
		if id == who.TokenID {
			stays = slices.IndexFunc(stored, func(t Token) bool { return t.ID != id && t.administers(now) })
		}
		switch {
		case own < 0:
			return 0, ErrEnded
		case stays < 0 && len(stored) > 1:
			return 0, ErrLastAdministrator
		case stays < 0:
			return RevokeToken(ctx, tokens, id)
		}
		revision, err = RevokeToken(ctx, tokens, id, stored[stays])
		if _, changed := errors.AsType[*store.ConflictError](err); !changed {
			return revision, err
		}
	}
}

// administers reports whether a token may manage tokens.
func (t Token) administers(now time.Time) bool {
	return t.Role == RoleAdmin && len(t.Namespaces) == 0 && (t.ExpiresAt == nil || now.Before(*t.ExpiresAt))
}

// ListTokens returns all tokens, the oldest first.
func ListTokens(ctx context.Context, tokens TokenStore) ([]Token, error) {
	var list []Token
	var after string
	var at int64
	for {
		records, _, next, revision, err := tokens.Page(ctx, KindToken, "", after, 1000, at)
		if err != nil {
			return nil, fmt.Errorf("list tokens: %w", err)
		}
		for _, record := range records {
			token, err := decodeToken(record)
			if err != nil {
				// It still counts as a token and can be revoked, but it is rejected.
				token = Token{ID: record.Key.Name, Description: "damaged: it is rejected; revoke it and create another"}
			}
			token.revision = record.ModRevision
			list = append(list, token)
		}
		if next == "" {
			break
		}
		after, at = next, revision
	}
	slices.SortFunc(list, oldestToken)
	return list, nil
}

func oldestToken(a, b Token) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
}

// identity returns the identity that the token proves. It has to be resolved.
func (t Token) identity() Identity {
	return Identity{TokenID: t.ID, Role: t.Role, Namespaces: t.Namespaces}
}

func decodeToken(record store.Record) (Token, error) {
	var token Token
	if err := json.Unmarshal(record.Value, &token); err != nil {
		return Token{}, fmt.Errorf("decode token %s: %w", record.Key.Name, err)
	}
	return token, nil
}

// ErrNoToken says that there is no token with the given ID.
var ErrNoToken = errors.New("the token does not exist: give its ID, the part before the dot")

// RevokeToken deletes a token. Running servers reject it at once. If one of those that must stay, which were listed,
// was revoked or changed since, it deletes nothing and returns a *store.ConflictError.
func RevokeToken(ctx context.Context, tokens TokenStore, id string, stay ...Token) (revision int64, err error) {
	if !api.IsTokenID(id) {
		return 0, ErrNoToken
	}
	spec, _, err := tokens.Read(ctx, tokenKey(id))
	if err != nil {
		return 0, fmt.Errorf("read token %s: %w", id, err)
	}
	if spec == nil {
		return 0, ErrNoToken
	}
	writes := []store.Write{{Key: tokenKey(id), Part: store.Spec, Expect: store.Any}}
	for _, other := range stay {
		writes = append(writes, store.Write{Key: tokenKey(other.ID), Part: store.Spec, Expect: other.revision, CheckOnly: true})
	}
	revision, err = tokens.Commit(ctx, writes...)
	if err != nil {
		return 0, fmt.Errorf("delete token %s: %w", id, err)
	}
	return revision, nil
}
