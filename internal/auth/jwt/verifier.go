package jwt

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	josejwt "github.com/go-jose/go-jose/v4/jwt"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

// maxSize is the largest accepted token, in bytes.
const maxSize = 16 << 10

// Keys supplies the public keys of one issuer. Its methods may be called from many
// goroutines.
type Keys interface {
	// Keys returns the current keys. wanted reports whether a set contains the required key. If it does not, an
	// implementation may fetch the keys again, at a limited rate. An error means that no keys have been fetched at all.
	Keys(ctx context.Context, wanted func(jose.JSONWebKeySet) bool) (jose.JSONWebKeySet, error)
}

// A RejectedError says why a token is not accepted. It reveals nothing that the token's holder must not know.
type RejectedError struct {
	Issuer string // name of the issuer in the configuration; empty if there is none
	Reason string
}

// Error implements error.
func (e *RejectedError) Error() string {
	if e.Issuer == "" {
		return "the JSON Web Token is rejected: " + e.Reason
	}
	return fmt.Sprintf("the JSON Web Token is rejected by issuer %q of the configuration: %s", e.Issuer, e.Reason)
}

// A KeysError says that a token cannot be verified because the keys of its issuer cannot be fetched. The text omits the
// cause, which may contain internal addresses.
type KeysError struct {
	Issuer string
	Cause  error
}

// Error implements error.
func (e *KeysError) Error() string {
	return fmt.Sprintf("the JSON Web Token cannot be checked because the keys of issuer %q cannot be read; the log of the server has the cause", e.Issuer)
}

// Unwrap returns the cause.
func (e *KeysError) Unwrap() error { return e.Cause }

// Verifier verifies tokens of trusted issuers. Its methods may be called concurrently.
type Verifier struct {
	issuers []*trusted
	now     func() time.Time

	mu    sync.Mutex
	known map[[sha256.Size]byte]proven // verified tokens; at most maxKnown
}

// trusted is an issuer with a verifier.
type trusted struct {
	name       string
	issuer     string
	audiences  josejwt.Audience
	algorithms []jose.SignatureAlgorithm
	skew       time.Duration
	bindings   []matcher
	reads      []string
	keys       Keys
}

// matcher is a compiled Binding.
type matcher struct {
	*Binding
	claims auth.ClaimPatterns
}

// proven is a token whose signature was verified with a key.
type proven struct {
	issuer *trusted
	key    jose.JSONWebKey
	who    auth.Identity
}

// maxKnown is the number of verified tokens that are remembered. Verifying a signature takes about 30 microseconds, a
// lookup in the map less than one.
const maxKnown = 1024

// New creates a verifier for issuers that Validate accepts. keys returns the source of the keys of an issuer without
// PublicKeys.
func New(issuers []Issuer, keys func(Issuer) Keys, now func() time.Time) (*Verifier, error) {
	v := &Verifier{now: now, known: map[[sha256.Size]byte]proven{}}
	for _, i := range issuers {
		skew, err := i.clockSkew()
		if err != nil {
			return nil, fmt.Errorf("issuer %q: clock_skew: %w", i.Name, err)
		}
		t := &trusted{
			name: i.Name, issuer: i.Issuer, audiences: i.Audiences, algorithms: i.signatureAlgorithms(), skew: skew,
		}
		for n := range i.Bindings {
			b := &i.Bindings[n]
			t.bindings = append(t.bindings, matcher{b, auth.CompileClaims(b.Claims)})
			for name := range b.Claims {
				t.reads = append(t.reads, name)
			}
		}
		slices.Sort(t.reads)
		t.reads = slices.Compact(t.reads)
		if len(i.PublicKeys) > 0 {
			if t.keys, err = parsePublicKeys(i.PublicKeys); err != nil {
				return nil, fmt.Errorf("issuer %q: public_keys: %w", i.Name, err)
			}
		} else {
			t.keys = keys(i)
		}
		v.issuers = append(v.issuers, t)
	}
	return v, nil
}

// Looks reports whether a text has the form of a JSON Web Token, which has three parts. The server's own tokens have
// two.
func Looks(text string) bool { return strings.Count(text, ".") == 2 }

// CheckBinding returns what is wrong with a role binding for an issuer: that there is no such issuer, or that its patterns
// would match tokens of strangers. Other objects have nothing wrong. A nil Verifier has no issuers.
func (v *Verifier) CheckBinding(object api.Object) (errs api.FieldErrors) {
	b, ok := object.(*api.RoleBinding)
	if !ok || b.Spec.Issuer == "" {
		return nil
	}
	var names []string
	if v != nil {
		for _, t := range v.issuers {
			if names = append(names, t.name); t.name != b.Spec.Issuer {
				continue
			}
			if err := checkTenant(t.issuer, b.Spec.Claims); err != nil {
				errs.Add("spec.claims", "%v", err)
			}
			return errs
		}
	}
	errs.Add("spec.issuer", "%q is not an issuer in the configuration of the server (auth.jwt), which has %s", b.Spec.Issuer, cmp.Or(strings.Join(names, ", "), "none"))
	return errs
}

// Verify verifies a token, and returns its identity and expiry, which auth.Sessions resolves. The error is a *RejectedError
// or *KeysError, or that of ctx.
func (v *Verifier) Verify(ctx context.Context, text string) (auth.Identity, error) {
	if len(text) > maxSize {
		return auth.Identity{}, &RejectedError{Reason: fmt.Sprintf("it has %d bytes, at most %d are accepted", len(text), maxSize)}
	}
	hash := sha256.Sum256([]byte(text))
	if who, ok := v.remembered(ctx, hash); ok {
		return who, nil
	}
	named, err := unverifiedIssuer(text)
	if err != nil {
		return auth.Identity{}, err
	}
	err = &RejectedError{Reason: fmt.Sprintf("its issuer %.100q is not trusted", named)}
	for _, t := range v.issuers {
		if t.issuer != named {
			continue
		}
		var p proven
		if p, err = t.verify(ctx, text, v.now()); err == nil {
			v.remember(hash, p)
			return p.who, nil
		}
		// Another entry may have the same issuer, for another audience.
	}
	return auth.Identity{}, err
}

// remembered returns the identity of a token that was verified before, as long as it has not expired and its key is
// still one of the issuer's.
func (v *Verifier) remembered(ctx context.Context, hash [sha256.Size]byte) (auth.Identity, bool) {
	v.mu.Lock()
	p, ok := v.known[hash]
	v.mu.Unlock()
	if !ok || !v.now().Before(p.who.ExpiresAt) {
		return auth.Identity{}, false
	}
	present, err := p.issuer.keys.Keys(ctx, func(jose.JSONWebKeySet) bool { return true })
	if err != nil || !slices.ContainsFunc(present.Keys, func(k jose.JSONWebKey) bool { return equal(k, p.key) }) {
		return auth.Identity{}, false
	}
	return p.who, true
}

func (v *Verifier) remember(hash [sha256.Size]byte, p proven) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) >= maxKnown {
		now := v.now()
		for h, other := range v.known {
			if !now.Before(other.who.ExpiresAt) {
				delete(v.known, h)
			}
		}
		if len(v.known) >= maxKnown {
			clear(v.known)
		}
	}
	v.known[hash] = p
}

// unverifiedIssuer returns the claim iss, to find the keys with which to verify the token.
func unverifiedIssuer(text string) (string, error) {
	token, err := jose.ParseSignedCompact(text, allAlgorithms())
	if err != nil {
		return "", &RejectedError{Reason: "it cannot be read: " + parseReason(text, err)}
	}
	all, err := parseClaims(token.UnsafePayloadWithoutVerification())
	if err != nil {
		return "", &RejectedError{Reason: err.Error()}
	}
	issuer, err := all.text("iss")
	if err != nil {
		return "", &RejectedError{Reason: err.Error()}
	}
	return issuer, nil
}

// parseReason returns why a token cannot be parsed, without its text.
func parseReason(text string, err error) string {
	var algorithm *jose.ErrUnexpectedSignatureAlgorithm
	if errors.As(err, &algorithm) && algorithm.Got != "" {
		return fmt.Sprintf("its signature algorithm %.20q is never accepted", string(algorithm.Got))
	}
	if reason := headerReason(text); reason != "" {
		return reason
	}
	return "it is not a signed token in compact form"
}

// headerReason returns what is wrong with the header of a token, or "".
func headerReason(text string) string {
	part, _, _ := strings.Cut(text, ".")
	header, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil || len(header) == 0 {
		return ""
	}
	var names map[string]any
	if err := decodeStrictly("its header is", header, &names); err != nil {
		return err.Error()
	}
	for _, name := range []string{"alg", "kid", "typ"} {
		switch value := names[name].(type) {
		case nil, string:
		default:
			return fmt.Sprintf("%s in its header must be a string, not %s", name, describe(value))
		}
	}
	return ""
}

func allAlgorithms() []jose.SignatureAlgorithm {
	list := make([]jose.SignatureAlgorithm, len(algorithms))
	for i, name := range algorithms {
		list[i] = jose.SignatureAlgorithm(name)
	}
	return list
}

// verify checks the signature first, so that errors about forged tokens reveal nothing else.
func (t *trusted) verify(ctx context.Context, text string, now time.Time) (proven, error) {
	reject := func(format string, args ...any) (proven, error) {
		return proven{}, &RejectedError{Issuer: t.name, Reason: fmt.Sprintf(format, args...)}
	}
	token, err := jose.ParseSignedCompact(text, t.algorithms)
	if err != nil {
		var algorithm *jose.ErrUnexpectedSignatureAlgorithm
		if errors.As(err, &algorithm) {
			return reject("its signature algorithm %.20q is not among the accepted ones (algorithms)", string(algorithm.Got))
		}
		return reject("it cannot be read")
	}
	header := token.Signatures[0].Header // the compact form has exactly one signature
	suits := func(k jose.JSONWebKey) bool {
		return (header.KeyID == "" || k.KeyID == "" || k.KeyID == header.KeyID) && (k.Use == "" || k.Use == "sig") && (k.Algorithm == "" || k.Algorithm == header.Algorithm)
	}
	verifies := func(k jose.JSONWebKey) bool {
		if !suits(k) {
			return false
		}
		_, err := token.Verify(k.Key)
		return err == nil
	}
	// A key without an ID may have been replaced by another one; only the signature says so.
	named := func(k jose.JSONWebKey) bool { return suits(k) && k.KeyID != "" && k.KeyID == header.KeyID }
	present, err := t.keys.Keys(ctx, func(set jose.JSONWebKeySet) bool {
		return slices.ContainsFunc(set.Keys, named) || slices.ContainsFunc(set.Keys, verifies)
	})
	if err != nil {
		return proven{}, &KeysError{t.name, err}
	}
	by := slices.IndexFunc(present.Keys, verifies)
	if by < 0 {
		return reject("its signature does not match any of the issuer's keys")
	}
	all, err := parseClaims(token.UnsafePayloadWithoutVerification()) // verified above
	if err != nil {
		return reject("%v", err)
	}
	claims, err := all.registered()
	if err != nil {
		return reject("%v", err)
	}
	switch err := claims.ValidateWithLeeway(josejwt.Expected{Issuer: t.issuer, AnyAudience: t.audiences, Time: now}, t.skew); {
	case errors.Is(err, josejwt.ErrExpired):
		return reject("it expired at %s", claims.Expiry.Time().UTC().Format(time.RFC3339))
	case errors.Is(err, josejwt.ErrInvalidAudience):
		return reject("its audience (aud) must be %s", strings.Join(t.audiences, " or "))
	case errors.Is(err, josejwt.ErrNotValidYet):
		return reject("it is not valid before %s (nbf)", claims.NotBefore.Time().UTC().Format(time.RFC3339))
	case errors.Is(err, josejwt.ErrIssuedInTheFuture):
		return reject("it was issued in the future (iat): compare the clocks of the issuer and of this server")
	case err != nil:
		return reject("its claims are not valid")
	case claims.Expiry == nil:
		return reject("it never expires: the claim exp is required")
	}
	who := auth.Issued(t.name, claims.Subject, all, t.reads, claims.Expiry.Time().Add(t.skew))
	for _, m := range t.bindings {
		if m.claims.Match(all) {
			who.Role, who.Namespaces = m.Role, m.Namespaces
			break
		}
	}
	return proven{issuer: t, key: present.Keys[by], who: who}, nil
}
