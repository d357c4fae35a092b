package jwt

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

const issuerURL = "https://issuer.example.com"

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// keyring has one key of each type. Generating RSA keys is slow, so it is done once.
var keyring = sync.OnceValue(func() (k struct {
	rsa, other, short *rsa.PrivateKey
	p256              *ecdsa.PrivateKey
	ed                ed25519.PrivateKey
}) {
	k.rsa, k.other = rsaKey(2048), rsaKey(2048)
	k.short = rsaKey(1024)
	k.p256, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, k.ed, _ = ed25519.GenerateKey(rand.Reader)
	return k
})

func rsaKey(bits int) *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		panic(err)
	}
	return key
}

// changing is a set of keys that a test can replace.
type changing struct {
	mu    sync.Mutex
	set   jose.JSONWebKeySet
	err   error
	asked int
}

func (c *changing) Keys(_ context.Context, wanted func(jose.JSONWebKeySet) bool) (jose.JSONWebKeySet, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !wanted(c.set) {
		c.asked++
	}
	return jose.JSONWebKeySet{Keys: slices.DeleteFunc(slices.Clone(c.set.Keys), func(k jose.JSONWebKey) bool { return !usable(k) })}, c.err
}

func (c *changing) replace(keys ...jose.JSONWebKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set = jose.JSONWebKeySet{Keys: keys}
}

func public(id string, key crypto.PublicKey) jose.JSONWebKey {
	return jose.JSONWebKey{KeyID: id, Key: key, Use: "sig"}
}

// sign makes a token with any header and claims.
func sign(t *testing.T, header map[string]any, claims any, key crypto.Signer) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	algorithm, _ := header["alg"].(string)
	o := (&jose.SignerOptions{}).WithType("JWT")
	for name, value := range header {
		if name != "alg" {
			o = o.WithHeader(jose.HeaderKey(name), value)
		}
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(algorithm), Key: key}, o)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// raw assembles a token from its parts.
func raw(header, payload string, signature []byte) string {
	e := base64.RawURLEncoding
	return e.EncodeToString([]byte(header)) + "." + e.EncodeToString([]byte(payload)) + "." + e.EncodeToString(signature)
}

func claimsAnd(changes map[string]any) map[string]any {
	claims := map[string]any{
		"iss": issuerURL, "sub": "repo:shop/web:ref:refs/heads/main", "aud": "scheduler", "repository": "shop/web",
		"iat": now.Add(-time.Minute).Unix(), "nbf": now.Add(-time.Minute).Unix(), "exp": now.Add(10 * time.Minute).Unix(),
	}
	for name, value := range changes {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	return claims
}

func issuers(change func(*Issuer)) []Issuer {
	i := Issuer{
		Name: "ci", Issuer: issuerURL, Audiences: []string{"scheduler"}, Algorithms: []string{"RS256", "ES256", "EdDSA"},
		Bindings: []Binding{
			{Claims: map[string]string{"sub": "repo:shop/*:ref:refs/heads/main"}, Role: auth.RoleEditor, Namespaces: []string{"shop"}},
			{Claims: map[string]string{"repository": "shop/*"}, Role: auth.RoleViewer, Namespaces: []string{"shop"}},
		},
	}
	if change != nil {
		change(&i)
	}
	return []Issuer{i}
}

func verifier(t *testing.T, list []Issuer, keys Keys) *Verifier {
	t.Helper()
	if errs := Validate("auth.jwt", list); len(errs) > 0 {
		t.Fatal(errs)
	}
	v, err := New(list, func(Issuer) Keys { return keys }, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVerify(t *testing.T) {
	k := keyring()
	keys := &changing{}
	keys.replace(public("rsa", &k.rsa.PublicKey), public("ec", &k.p256.PublicKey), public("ed", k.ed.Public()))
	editor := auth.Identity{TokenID: "ci:repo:shop/web:ref:refs/heads/main", Role: auth.RoleEditor, Namespaces: []string{"shop"}, ExpiresAt: now.Add(10*time.Minute + 30*time.Second)}
	viewer := editor
	viewer.Role, viewer.TokenID = auth.RoleViewer, "ci:repo:shop/web:pull_request"
	for _, test := range []struct {
		name   string
		header map[string]any
		claims map[string]any
		key    crypto.Signer
		want   auth.Identity
	}{
		{"RSA", map[string]any{"alg": "RS256", "kid": "rsa"}, nil, k.rsa, editor},
		{"ECDSA", map[string]any{"alg": "ES256", "kid": "ec"}, nil, k.p256, editor},
		{"Ed25519", map[string]any{"alg": "EdDSA", "kid": "ed"}, nil, k.ed, editor},
		{"no key ID", map[string]any{"alg": "RS256"}, nil, k.rsa, editor},
		{"several audiences", map[string]any{"alg": "RS256", "kid": "rsa"}, map[string]any{"aud": []string{"vault", "scheduler"}}, k.rsa, editor},
		{"second binding", map[string]any{"alg": "RS256", "kid": "rsa"}, map[string]any{"sub": "repo:shop/web:pull_request"}, k.rsa, viewer},
		{"expired within the clock skew", map[string]any{"alg": "RS256", "kid": "rsa"}, map[string]any{"exp": now.Add(-20 * time.Second).Unix()}, k.rsa,
			auth.Identity{TokenID: editor.TokenID, Role: auth.RoleEditor, Namespaces: []string{"shop"}, ExpiresAt: now.Add(10 * time.Second)}},
		{"issued within the clock skew", map[string]any{"alg": "RS256", "kid": "rsa"}, map[string]any{"iat": now.Add(20 * time.Second).Unix(), "nbf": now.Add(20 * time.Second).Unix()}, k.rsa, editor},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := verifier(t, issuers(nil), keys)
			text := sign(t, test.header, claimsAnd(test.claims), test.key)
			for _, call := range []string{"first", "again"} {
				who, err := v.Verify(t.Context(), text)
				if err != nil {
					t.Fatalf("%s: %v", call, err)
				}
				told := func(who auth.Identity) string {
					return fmt.Sprint(who.TokenID, who.Role, who.Namespaces, who.ExpiresAt)
				}
				if told(who) != told(test.want) {
					t.Errorf("%s:\n got %s\nwant %s", call, told(who), told(test.want))
				}
			}
		})
	}
}

func TestRejects(t *testing.T) {
	k := keyring()
	good := map[string]any{"alg": "RS256", "kid": "rsa"}
	rsaPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: func() []byte { b, _ := x509.MarshalPKIXPublicKey(&k.rsa.PublicKey); return b }()})
	payload := func(changes map[string]any) string {
		text, _ := json.Marshal(claimsAnd(changes))
		return string(text)
	}
	mac := func(secret []byte, header, payload string) []byte {
		h := hmac.New(sha256.New, secret)
		h.Write([]byte(base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(payload))))
		return h.Sum(nil)
	}
	tamper := func(text string, part int, with string) string {
		parts := strings.Split(text, ".")
		parts[part] = base64.RawURLEncoding.EncodeToString([]byte(with))
		return strings.Join(parts, ".")
	}
	signed := func(header, payload string) string { return raw(header, payload, signature(t, k.rsa, header, payload)) }
	embedded, _ := jose.JSONWebKey{Key: &k.other.PublicKey, KeyID: "mine"}.MarshalJSON()
	for _, test := range []struct {
		name string
		text string
		want string
	}{
		{"empty", "..", "not a signed token"},
		{"not base64", "a.b.!", "not a signed token"},
		{"algorithm none", raw(`{"alg":"none"}`, payload(nil), nil), `"none" is never accepted`},
		{"algorithm None", raw(`{"alg":"None"}`, payload(nil), nil), `"None" is never accepted`},
		{"no algorithm", raw(`{"kid":"rsa"}`, payload(nil), []byte("x")), "not a signed token"},
		{"public key as the secret of an HMAC", raw(`{"alg":"HS256","kid":"rsa"}`, payload(nil), mac(rsaPEM, `{"alg":"HS256","kid":"rsa"}`, payload(nil))), `"HS256" is never accepted`},
		{"algorithm not configured", sign(t, map[string]any{"alg": "PS256", "kid": "rsa"}, claimsAnd(nil), k.rsa), `"PS256" is not among the accepted`},
		{"key of another type", sign(t, map[string]any{"alg": "ES256", "kid": "rsa"}, claimsAnd(nil), k.p256), "any of the issuer's keys"},
		{"key of another issuer", sign(t, good, claimsAnd(nil), k.other), "any of the issuer's keys"},
		{"unknown key ID", sign(t, map[string]any{"alg": "RS256", "kid": "gone"}, claimsAnd(nil), k.rsa), "any of the issuer's keys"},
		{"key in the header", raw(`{"alg":"RS256","jwk":`+string(embedded)+`}`, payload(nil), signature(t, k.other, `{"alg":"RS256","jwk":`+string(embedded)+`}`, payload(nil))), "any of the issuer's keys"},
		{"address of a key in the header", sign(t, map[string]any{"alg": "RS256", "jku": "http://127.0.0.1:1/keys"}, claimsAnd(nil), k.other), "any of the issuer's keys"},
		{"critical header", raw(`{"alg":"RS256","kid":"rsa","crit":["x"],"x":1}`, payload(nil), signature(t, k.rsa, `{"alg":"RS256","kid":"rsa","crit":["x"],"x":1}`, payload(nil))), "any of the issuer's keys"},
		{"short RSA key", sign(t, map[string]any{"alg": "RS256", "kid": "short"}, claimsAnd(nil), k.short), "any of the issuer's keys"},
		{"key for encryption", sign(t, map[string]any{"alg": "RS256", "kid": "enc"}, claimsAnd(nil), k.other), "any of the issuer's keys"},
		{"changed claims", tamper(sign(t, good, claimsAnd(nil), k.rsa), 1, payload(map[string]any{"repository": "shop/admin"})), "any of the issuer's keys"},
		{"no signature", strings.TrimRight(sign(t, good, claimsAnd(nil), k.rsa), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"), "any of the issuer's keys"},
		{"another issuer", sign(t, good, claimsAnd(map[string]any{"iss": "https://evil.example.com"}), k.rsa), `"https://evil.example.com" is not trusted`},
		{"issuer with a slash", sign(t, good, claimsAnd(map[string]any{"iss": issuerURL + "/"}), k.rsa), "is not trusted"},
		{"no issuer", sign(t, good, claimsAnd(map[string]any{"iss": nil}), k.rsa), `"" is not trusted`},
		{"issuer that is a list", sign(t, good, claimsAnd(map[string]any{"iss": []string{issuerURL}}), k.rsa), "its claim iss must be a string, not a list"},
		{"other audience", sign(t, good, claimsAnd(map[string]any{"aud": "vault"}), k.rsa), "its audience (aud) must be scheduler"},
		{"no audience", sign(t, good, claimsAnd(map[string]any{"aud": nil}), k.rsa), "its audience (aud) must be scheduler"},
		{"part of the audience", sign(t, good, claimsAnd(map[string]any{"aud": "scheduler2"}), k.rsa), "its audience (aud) must be scheduler"},
		{"expired", sign(t, good, claimsAnd(map[string]any{"exp": now.Add(-31 * time.Second).Unix()}), k.rsa), "it expired at 2026-11-23T11:59:29Z"},
		{"no expiry", sign(t, good, claimsAnd(map[string]any{"exp": nil}), k.rsa), "exp is required"},
		{"null expiry", raw(`{"alg":"RS256","kid":"rsa"}`, strings.Replace(payload(nil), fmt.Sprintf(`"exp":%d`, now.Add(10*time.Minute).Unix()), `"exp":null`, 1), signature(t, k.rsa, `{"alg":"RS256","kid":"rsa"}`, strings.Replace(payload(nil), fmt.Sprintf(`"exp":%d`, now.Add(10*time.Minute).Unix()), `"exp":null`, 1))), "exp is required"},
		{"text as the expiry", sign(t, good, claimsAnd(map[string]any{"exp": "never"}), k.rsa), "its claim exp must be a number, the seconds since 1970, not a string"},
		{"expiry in milliseconds", sign(t, good, claimsAnd(map[string]any{"exp": now.UnixMilli()}), k.rsa), "are these milliseconds?"},
		{"list as the start", sign(t, good, claimsAnd(map[string]any{"nbf": []int{1}}), k.rsa), "its claim nbf must be a number, the seconds since 1970, not a list"},
		{"boolean as the time of issue", sign(t, good, claimsAnd(map[string]any{"iat": true}), k.rsa), "its claim iat must be a number, the seconds since 1970, not a boolean"},
		{"number as the audience", sign(t, good, claimsAnd(map[string]any{"aud": 5}), k.rsa), "its claim aud must be a string or a list of strings, not a number"},
		{"object in the audience", sign(t, good, claimsAnd(map[string]any{"aud": []any{"scheduler", map[string]any{}}}), k.rsa), "and the list contains an object"},
		{"list as the subject", sign(t, good, claimsAnd(map[string]any{"sub": []string{"a"}}), k.rsa), "its claim sub must be a string, not a list"},
		{"wrong types with a wrong signature", sign(t, good, claimsAnd(map[string]any{"sub": 5, "aud": 5, "exp": "x"}), k.other), "any of the issuer's keys"},
		{"claim given twice", signed(`{"alg":"RS256","kid":"rsa"}`, strings.Replace(payload(nil), "{", `{"aud":"vault",`, 1)), `its claims are not clear: "aud" is given twice`},
		{"claim in a claim given twice", signed(`{"alg":"RS256","kid":"rsa"}`, strings.Replace(payload(nil), "{", `{"a":{"b":1,"b":2},`, 1)), `"b" is given twice`},
		{"text after the claims", signed(`{"alg":"RS256","kid":"rsa"}`, payload(nil)+"{}"), "its claims are not a JSON object"},
		{"header given twice", signed(`{"alg":"RS256","kid":"rsa","kid":"ec"}`, payload(nil)), `its header is not clear: "kid" is given twice`},
		{"number as the key ID", signed(`{"alg":"RS256","kid":5}`, payload(nil)), "kid in its header must be a string, not a number"},
		{"header that is a list", signed(`[]`, payload(nil)), "its header is not a JSON object"},

		{"not yet valid", sign(t, good, claimsAnd(map[string]any{"nbf": now.Add(time.Minute).Unix()}), k.rsa), "not valid before 2026-11-23T12:01:00Z"},
		{"issued in the future", sign(t, good, claimsAnd(map[string]any{"iat": now.Add(time.Hour).Unix()}), k.rsa), "issued in the future"},
		{"claims that are not an object", sign(t, good, []string{issuerURL}, k.rsa), "not a JSON object"},
		{"oversized", sign(t, good, claimsAnd(map[string]any{"padding": strings.Repeat("x", maxSize)}), k.rsa), "at most 16384 are accepted"},
		{"two signatures", `{"payload":"e30","signatures":[.{"signature":""},.{}]}`, "not a signed token"},
		{"encrypted", "a.b.c.d.e", "not a signed token"},
	} {
		t.Run(test.name, func(t *testing.T) {
			keys := &changing{}
			enc := public("enc", &k.other.PublicKey)
			enc.Use = "enc"
			keys.replace(public("rsa", &k.rsa.PublicKey), public("ec", &k.p256.PublicKey), public("short", &k.short.PublicKey), enc)
			v := verifier(t, issuers(nil), keys)
			who, err := v.Verify(t.Context(), test.text)
			var rejected *RejectedError
			if !errors.As(err, &rejected) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, %v; want a rejection that contains %q", who, err, test.want)
			}
			if err != nil && len(test.text) > 40 && strings.Contains(err.Error(), test.text[len(test.text)-20:]) {
				t.Errorf("the error contains the token: %v", err)
			}
			if who.Role != "" {
				t.Errorf("a rejected token has the identity %v", who)
			}
		})
	}
}

// signature signs a header and payload that no library would sign.
func signature(t *testing.T, key *rsa.PrivateKey, header, payload string) []byte {
	t.Helper()
	sum := sha256.Sum256([]byte(base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(payload))))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return signature
}

// The ID of a key is a hint (RFC 7515, section 4.1.4): a key without one is tried for every token.
func TestKeysWithoutAnID(t *testing.T) {
	k := keyring()
	certificate := func(key crypto.PublicKey) string {
		text, err := x509.MarshalPKIXPublicKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: text}))
	}
	keys := &changing{}
	keys.replace(public("other", &k.other.PublicKey), public("", &k.rsa.PublicKey), public("", k.ed.Public()))
	for source, v := range map[string]*Verifier{
		"public_keys": verifier(t, issuers(func(i *Issuer) {
			i.PublicKeys = []string{certificate(&k.other.PublicKey), certificate(&k.rsa.PublicKey) + certificate(k.ed.Public())}
		}), nil),
		"key set": verifier(t, issuers(nil), keys),
	} {
		for _, header := range []map[string]any{{"alg": "RS256", "kid": "2026-11"}, {"alg": "RS256"}} {
			for _, call := range []string{"first", "again"} {
				if _, err := v.Verify(t.Context(), sign(t, header, claimsAnd(nil), k.rsa)); err != nil {
					t.Errorf("%s, header %v, %s: %v", source, header, call, err)
				}
			}
		}
		if _, err := v.Verify(t.Context(), sign(t, map[string]any{"alg": "EdDSA", "kid": "2026-11"}, claimsAnd(nil), k.ed)); err != nil {
			t.Errorf("%s: %v", source, err)
		}
		if _, err := v.Verify(t.Context(), sign(t, map[string]any{"alg": "ES256", "kid": "2026-11"}, claimsAnd(nil), k.p256)); err == nil {
			t.Errorf("%s: a token of a stranger was accepted", source)
		}
	}
	// Keys without an ID that were replaced are asked for again.
	keys.replace(public("", &k.other.PublicKey))
	keys.asked = 0
	if _, err := verifier(t, issuers(nil), keys).Verify(t.Context(), sign(t, map[string]any{"alg": "RS256", "kid": "b"}, claimsAnd(nil), k.rsa)); err == nil || keys.asked != 1 {
		t.Errorf("got %v, and %d requests for newer keys, want 1", err, keys.asked)
	}
}

// A key that is not understood costs the others nothing.
func TestParseKeySet(t *testing.T) {
	k := keyring()
	text := func(key jose.JSONWebKey) string {
		document, err := key.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return string(document)
	}
	good, x := text(public("good", &k.rsa.PublicKey)), base64.RawURLEncoding.EncodeToString(make([]byte, 32))
	brokenChain := strings.Replace(good, "{", `{"x5c":["AAAA"],`, 1)
	for name, other := range map[string]string{
		"null": `null`, "number": `5`, "text": `"key"`, "list": `[]`, "empty": `{}`, "unknown kind": `{"kty":"AKP","alg":"ML-DSA-44","pub":"` + x + `"}`,
		"unknown curve": `{"kty":"EC","crv":"secp256k1","x":"` + x + `","y":"` + x + `"}`, "key for encryption": `{"kty":"OKP","crv":"X25519","x":"` + x + `"}`,
		"broken certificates": brokenChain, "number as the kind": `{"kty":5}`, "number as the ID": strings.Replace(good, `"good"`, `5`, 1),
		"not on the curve": `{"kty":"EC","crv":"P-256","x":"` + x + `","y":"` + x + `"}`, "no modulus": `{"kty":"RSA","e":"AQAB"}`,
		"symmetric": `{"kty":"oct","k":"` + x + `"}`, "short": text(public("short", &k.short.PublicKey)), "private": text(jose.JSONWebKey{KeyID: "private", Key: k.p256}),
		"member given twice": strings.Replace(good, "{", `{"kid":"a",`, 1),
	} {
		for _, document := range []string{`{"keys":[` + other + `,` + good + `]}`, `{"keys":[` + good + `,` + other + `]}`} {
			set, others, err := ParseKeySet([]byte(document))
			if err != nil || others != 1 || len(set.Keys) != 1 || set.Keys[0].KeyID != "good" {
				t.Errorf("%s: keys %v, %d others, %v", name, set.Keys, others, err)
			}
		}
		if set, _, err := ParseKeySet([]byte(`{"keys":[` + other + `]}`)); err == nil {
			t.Errorf("%s alone: keys %v", name, set.Keys)
		}
	}
	for _, document := range []string{``, `[]`, `null`, `{}`, `{"keys":null}`, `{"keys":{}}`, `{"keys":[]}`, `<html>`} {
		if set, _, err := ParseKeySet([]byte(document)); err == nil {
			t.Errorf("%s: keys %v", document, set.Keys)
		}
	}
}

// A token whose signature has been verified is accepted no longer than its key.
func TestRotatedKeys(t *testing.T) {
	k := keyring()
	keys := &changing{}
	keys.replace(public("old", &k.rsa.PublicKey))
	v := verifier(t, issuers(nil), keys)
	old := sign(t, map[string]any{"alg": "RS256", "kid": "old"}, claimsAnd(nil), k.rsa)
	fresh := sign(t, map[string]any{"alg": "RS256", "kid": "new"}, claimsAnd(nil), k.other)
	if _, err := v.Verify(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(t.Context(), fresh); err == nil {
		t.Fatal("a token was accepted before its key was known")
	}
	if keys.asked != 1 {
		t.Errorf("%d requests for newer keys, want 1", keys.asked)
	}
	keys.replace(public("old", &k.rsa.PublicKey), public("new", &k.other.PublicKey))
	for name, text := range map[string]string{"old": old, "new": fresh} {
		if _, err := v.Verify(t.Context(), text); err != nil {
			t.Errorf("%s with both keys: %v", name, err)
		}
	}
	keys.replace(public("new", &k.other.PublicKey))
	if _, err := v.Verify(t.Context(), old); err == nil {
		t.Error("a token of a withdrawn key was accepted")
	}
	// The same ID for another key.
	keys.replace(public("old", &k.other.PublicKey))
	if _, err := v.Verify(t.Context(), old); err == nil {
		t.Error("a token of a replaced key was accepted")
	}
}

func TestKeysCannotBeRead(t *testing.T) {
	keys := &changing{err: errors.New("connection refused")}
	v := verifier(t, issuers(nil), keys)
	_, err := v.Verify(t.Context(), sign(t, map[string]any{"alg": "RS256", "kid": "rsa"}, claimsAnd(nil), keyring().rsa))
	var unread *KeysError
	if !errors.As(err, &unread) || !errors.Is(err, keys.err) {
		t.Errorf("got %v, want a KeysError with its cause", err)
	}
}

// A remembered token expires like any other.
func TestRememberedTokenExpires(t *testing.T) {
	k := keyring()
	keys := &changing{}
	keys.replace(public("rsa", &k.rsa.PublicKey))
	clock := now
	v, err := New(issuers(nil), func(Issuer) Keys { return keys }, func() time.Time { return clock })
	if err != nil {
		t.Fatal(err)
	}
	text := sign(t, map[string]any{"alg": "RS256", "kid": "rsa"}, claimsAnd(nil), k.rsa)
	if _, err := v.Verify(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	clock = now.Add(11 * time.Minute)
	if _, err := v.Verify(t.Context(), text); err == nil {
		t.Error("an expired token was accepted because it was valid before")
	}
	// The number of remembered tokens is limited.
	clock = now
	for n := range maxKnown + 10 {
		v.remember(sha256.Sum256(fmt.Append(nil, n)), proven{who: auth.Identity{ExpiresAt: now.Add(time.Hour)}})
	}
	if len(v.known) > maxKnown {
		t.Errorf("%d tokens are remembered, want at most %d", len(v.known), maxKnown)
	}
}

// Two entries may trust the same issuer, for different audiences.
func TestSameIssuerTwice(t *testing.T) {
	k := keyring()
	keys := &changing{}
	keys.replace(public("rsa", &k.rsa.PublicKey))
	list := append(issuers(nil), issuers(func(i *Issuer) {
		i.Name, i.Audiences = "agents", []string{"agents"}
		i.Bindings = []Binding{{Claims: map[string]string{"repository": "shop/*"}, Role: auth.RoleAgent}}
	})...)
	v := verifier(t, list, keys)
	for audience, want := range map[string]auth.Role{"scheduler": auth.RoleEditor, "agents": auth.RoleAgent} {
		who, err := v.Verify(t.Context(), sign(t, map[string]any{"alg": "RS256", "kid": "rsa"}, claimsAnd(map[string]any{"aud": audience}), k.rsa))
		if err != nil || who.Role != want {
			t.Errorf("audience %s: got %v, %v; want role %s", audience, who, err, want)
		}
	}
}

func TestBindings(t *testing.T) {
	k := keyring()
	keys := &changing{}
	keys.replace(public("rsa", &k.rsa.PublicKey))
	nested := map[string]any{"kubernetes.io": map[string]any{"namespace": "shop", "serviceaccount": map[string]any{"name": "agent"}}, "groups": []any{"dev", "ops"}, "protected": true, "id": 12345678901234567, "none": nil, "lists": []any{[]any{"ops"}}}
	for _, test := range []struct {
		name   string
		claims map[string]string
		match  bool
	}{
		{"exact", map[string]string{"repository": "shop/web"}, true},
		{"prefix", map[string]string{"repository": "shop/*"}, true},
		{"star in the middle", map[string]string{"sub": "repo:shop/*:ref:refs/heads/main"}, true},
		{"anchored at the start", map[string]string{"repository": "hop/web"}, false},
		{"anchored at the end", map[string]string{"repository": "shop/we"}, false},
		{"not a regular expression", map[string]string{"repository": "shop.web"}, false},
		{"case", map[string]string{"repository": "Shop/web"}, false},
		{"all must match", map[string]string{"repository": "shop/web", "sub": "x"}, false},
		{"absent claim", map[string]string{"repository": "shop/web", "environment": "*"}, false},
		{"pointer", map[string]string{"/kubernetes.io/serviceaccount/name": "agent"}, true},
		{"pointer to an object", map[string]string{"/kubernetes.io/serviceaccount": "agent*"}, false},
		{"pointer to a missing claim", map[string]string{"/kubernetes.io/pod/name": "agent"}, false},
		{"element of a list", map[string]string{"groups": "ops"}, true},
		{"not an element of the list", map[string]string{"groups": "dev,ops"}, false},
		{"list in a list", map[string]string{"lists": "ops"}, false},
		{"boolean", map[string]string{"protected": "true"}, true},
		{"large number", map[string]string{"id": "12345678901234567"}, true},
		{"null", map[string]string{"repository": "shop/web", "none": "*"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := verifier(t, issuers(func(i *Issuer) { i.Bindings = []Binding{{Claims: test.claims, Role: auth.RoleViewer}} }), keys)
			claims := claimsAnd(nested)
			claims["none"] = nil
			who, err := v.Verify(t.Context(), sign(t, map[string]any{"alg": "RS256", "kid": "rsa"}, claims, k.rsa))
			if err != nil || test.match != (who.Role == auth.RoleViewer) {
				t.Errorf("role %q, %v, want a match: %t", who.Role, err, test.match)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	k := keyring()
	x25519 := "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VuAyEACQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n-----END PUBLIC KEY-----\n"
	short := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: func() []byte { b, _ := x509.MarshalPKIXPublicKey(&k.short.PublicKey); return b }()}))
	for _, test := range []struct {
		name   string
		change func(*Issuer)
		want   map[string]string
	}{
		{"empty", func(i *Issuer) { *i = Issuer{} }, map[string]string{
			"auth.jwt[0].name": "lowercase", "auth.jwt[0].issuer": "required", "auth.jwt[0].audiences": "at least one",
		}},
		{"http", func(i *Issuer) { i.Issuer = "http://issuer.example.com" }, map[string]string{"auth.jwt[0].issuer": "https://"}},
		{"not a URL", func(i *Issuer) { i.Issuer = "issuer" }, map[string]string{"auth.jwt[0].issuer": "not a URL"}},
		{"password", func(i *Issuer) { i.Issuer = "https://a:b@issuer.example.com" }, map[string]string{"auth.jwt[0].issuer": "password"}},
		{"http keys", func(i *Issuer) { i.JWKSURL = "http://10.0.0.1/keys" }, map[string]string{"auth.jwt[0].jwks_url": "https://"}},
		{"two sources", func(i *Issuer) { i.JWKSURL, i.PublicKeys = "https://a/keys", []string{"x"} }, map[string]string{"auth.jwt[0].jwks_url": "choose one"}},
		{"not PEM", func(i *Issuer) { i.PublicKeys = []string{"x"} }, map[string]string{"auth.jwt[0].public_keys": "not PEM"}},
		{"key for encryption", func(i *Issuer) { i.PublicKeys = []string{x25519} }, map[string]string{"auth.jwt[0].public_keys": "number 1: it is no key for signatures"}},
		{"short key", func(i *Issuer) { i.PublicKeys = []string{short} }, map[string]string{"auth.jwt[0].public_keys": "2048 bits"}},
		{"empty audience", func(i *Issuer) { i.Audiences = []string{""} }, map[string]string{"auth.jwt[0].audiences": "none may be empty"}},
		{"symmetric", func(i *Issuer) { i.Algorithms = []string{"HS256"} }, map[string]string{"auth.jwt[0].algorithms[0]": "is not one of"}},
		{"none", func(i *Issuer) { i.Algorithms = []string{"none"} }, map[string]string{"auth.jwt[0].algorithms[0]": "is not one of"}},
		{"skew", func(i *Issuer) { i.ClockSkew = "1h" }, map[string]string{"auth.jwt[0].clock_skew": "between 0s and 5m0s"}},
		{"not a duration", func(i *Issuer) { i.ClockSkew = "soon" }, map[string]string{"auth.jwt[0].clock_skew": "soon"}},
		{"binding of everybody", func(i *Issuer) { i.Bindings[0].Claims = nil }, map[string]string{"auth.jwt[0].bindings[0].claims": "restrict"}},
		{"binding of everybody with stars", func(i *Issuer) { i.Bindings[0].Claims = map[string]string{"sub": "**", "ref": "*"} }, map[string]string{"auth.jwt[0].bindings[0].claims": "restrict"}},
		{"empty pattern", func(i *Issuer) { i.Bindings[0].Claims["ref"] = "" }, map[string]string{"auth.jwt[0].bindings[0].claims": "empty"}},
		{"role", func(i *Issuer) { i.Bindings[0].Role = "Owner" }, map[string]string{"auth.jwt[0].bindings[0].role": "not a valid name of a role"}},
		{"bound administrator", func(i *Issuer) { i.Bindings[0].Role = auth.RoleAdmin }, map[string]string{"auth.jwt[0].bindings[0].namespaces": "admin"}},
		{"namespace", func(i *Issuer) { i.Bindings[1].Namespaces = []string{"A b"} }, map[string]string{"auth.jwt[0].bindings[1].namespaces[0]": "namespace name"}},
		{"strangers of a public issuer", func(i *Issuer) {
			i.Issuer = "https://token.actions.githubusercontent.com"
			i.Bindings = []Binding{{Claims: map[string]string{"ref": "refs/heads/main", "repository": "*"}, Role: auth.RoleEditor}}
		}, map[string]string{"auth.jwt[0].bindings[0].claims": "signs tokens for the public"}},
		{"users of a public issuer", func(i *Issuer) {
			i.Issuer = "https://token.actions.githubusercontent.com"
			i.Bindings = []Binding{{Claims: map[string]string{"repository": "shop/web"}, Role: auth.RoleEditor}}
		}, nil},
		{"login", func(i *Issuer) { i.Login = &Login{ClientID: "scheduler", Scopes: []string{"groups"}} }, nil},
		{"login of another client", func(i *Issuer) { i.Login = &Login{ClientID: "page"} }, map[string]string{"auth.jwt[0].login.client_id": "must be one of audiences"}},
		{"login without a client", func(i *Issuer) { i.Login = &Login{} }, map[string]string{"auth.jwt[0].login.client_id": "must be one of audiences"}},
		{"login with two scopes in one", func(i *Issuer) { i.Login = &Login{ClientID: "scheduler", Scopes: []string{"a b"}} }, map[string]string{"auth.jwt[0].login.scopes": "is not a scope"}},
		{"login without a discovery document", func(i *Issuer) {
			i.Issuer, i.JWKSURL, i.Login = "issuer", "https://a/keys", &Login{ClientID: "scheduler"}
		}, map[string]string{"auth.jwt[0].login": "needs the discovery document"}},
		{"valid", nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := map[string]string{}
			for _, err := range Validate("auth.jwt", issuers(test.change)) {
				got[err.Field] = err.Message
			}
			for field, want := range test.want {
				if !strings.Contains(got[field], want) {
					t.Errorf("%s: got %q, want %q in it", field, got[field], want)
				}
			}
			if len(got) != len(test.want) {
				t.Errorf("got errors of %d fields, want %d: %v", len(got), len(test.want), maps.Collect(maps.All(got)))
			}
		})
	}
	if errs := Validate("auth.jwt", append(issuers(nil), issuers(nil)...)); len(errs) != 1 || errs[0].Field != "auth.jwt[1].name" {
		t.Errorf("two issuers of the same name: %v", errs)
	}
}

func FuzzVerify(f *testing.F) {
	k := keyring()
	keys := &changing{}
	keys.replace(public("ec", &k.p256.PublicKey))
	v, err := New(issuers(nil), func(Issuer) Keys { return keys }, func() time.Time { return now })
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw(`{"alg":"ES256","kid":"ec"}`, `{"iss":"`+issuerURL+`"}`, make([]byte, 64)))
	f.Add(raw(`{"alg":"none"}`, `{}`, nil))
	f.Fuzz(func(t *testing.T, text string) {
		// Only the holder of the key can make a token.
		if who, err := v.Verify(t.Context(), text); err == nil || who.Role != "" {
			t.Fatalf("%q was accepted as %v", text, who)
		}
	})
}
