package httpapi

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth/jwt"
)

// issuer signs tokens for tests. The subject selects the binding.
type issuer struct {
	key    *ecdsa.PrivateKey
	config jwt.Issuer
}

func newIssuer(t *testing.T) *issuer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key, config: jwt.Issuer{
		Name: "ci", Issuer: "https://issuer.example.com", Audiences: []string{"scheduler"}, ClockSkew: "0s",
		PublicKeys: []string{string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))},
	}}
	for _, role := range (auth.Roles{}).Names() {
		for _, namespaces := range [][]string{nil, {"shop"}} {
			if role != auth.RoleAdmin || namespaces == nil {
				i.config.Bindings = append(i.config.Bindings, jwt.Binding{Claims: map[string]string{"sub": i.subjectOf(role, namespaces...)}, Role: role, Namespaces: namespaces})
			}
		}
	}
	return i
}

func (i *issuer) subjectOf(role auth.Role, namespaces ...string) string {
	return strings.Join(append([]string{string(role)}, namespaces...), ":")
}

// trusted configures a server to trust the issuer.
func (i *issuer) trusted(o *Options) {
	verifier, err := jwt.New([]jwt.Issuer{i.config}, nil, time.Now)
	if err != nil {
		panic(err)
	}
	o.Issuers = verifier
}

func (i *issuer) sign(t *testing.T, subject string, expires time.Time) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: i.key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	claims, err := json.Marshal(map[string]any{"iss": i.config.Issuer, "aud": "scheduler", "sub": subject, "exp": expires.Unix()})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// With a trusted issuer, tokens are required, even if none has been created.
func TestTrustedIssuer(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := startServer(t, i.trusted)
	hour := time.Now().Add(time.Hour)
	good := i.sign(t, "editor:shop", hour)
	stranger := newIssuer(t).sign(t, "admin", hour)
	for _, test := range []struct {
		name   string
		token  string
		status int
		detail string
	}{
		{"no token", "", http.StatusUnauthorized, "a token is required"},
		{"bound", good, http.StatusOK, ""},
		{"signed by another key", stranger, http.StatusUnauthorized, "any of the issuer's keys"},
		{"expired", i.sign(t, "editor:shop", time.Now().Add(-time.Minute)), http.StatusUnauthorized, "it expired at"},
		{"not bound", i.sign(t, "somebody", hour), http.StatusForbidden, `no binding of issuer "ci" matches its claims; the bindings read sub`},
		{"unknown server token", "0123456789abcdef.secret", http.StatusUnauthorized, "unknown, revoked or expired"},
		{"server token", s.addToken(auth.RoleViewer), http.StatusOK, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.token = test.token
			a := s.do(http.MethodGet, "/v1/namespaces/shop/placements", "")
			if a.StatusCode != test.status || test.detail != "" && !strings.Contains(a.problem(t).Detail, test.detail) {
				t.Errorf("got %d %s, want %d and %q", a.StatusCode, a.body, test.status, test.detail)
			}
			if test.status == http.StatusUnauthorized && a.Header.Get("WWW-Authenticate") == "" {
				t.Error("401 without WWW-Authenticate")
			}
		})
	}
	s.token = good
	s.do(http.MethodGet, "/v1/namespaces/other/placements", "")
	if text := s.logs.String(); !strings.Contains(text, "ci:editor:shop") || strings.Contains(text, good) || strings.Contains(text, stranger) {
		t.Errorf("the log must name the subject of the token, and contain no token:\n%s", text)
	}
}

// unreachable is the key set of an issuer that does not respond.
type unreachable struct{}

func (unreachable) Keys(context.Context, func(jose.JSONWebKeySet) bool) (jose.JSONWebKeySet, error) {
	return jose.JSONWebKeySet{}, errors.New("https://10.0.0.1/keys: connection refused")
}

// If an issuer cannot be reached, the error tells the client to retry.
func TestIssuerCannotBeReached(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	token := i.sign(t, "admin", time.Now().Add(time.Hour))
	i.config.PublicKeys = nil
	verifier, err := jwt.New([]jwt.Issuer{i.config}, func(jwt.Issuer) jwt.Keys { return unreachable{} }, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, func(o *Options) { o.Issuers = verifier })
	s.token = token
	a := s.do(http.MethodGet, "/v1/clusters", "")
	if a.StatusCode != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" || strings.Contains(string(a.body), "10.0.0.1") {
		t.Errorf("got %d %s, want 503 with Retry-After and without the cause", a.StatusCode, a.body)
	}
	if !s.logs.Contains("connection refused") {
		t.Error("the log does not contain the cause")
	}
}

// A watch ends when its token expires.
func TestWatchEndsWithItsToken(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	var clock struct {
		sync.Mutex
		ahead time.Duration
	}
	now := func() time.Time {
		clock.Lock()
		defer clock.Unlock()
		return time.Now().Add(clock.ahead)
	}
	s := startServer(t, i.trusted, func(o *Options) { o.Now = now })
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/watch", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+i.sign(t, "viewer", time.Now().Add(time.Hour)))
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	clock.Lock()
	clock.ahead = 2 * time.Hour
	clock.Unlock()
	// It can be read until the server ends it.
	if _, err := io.Copy(io.Discard, resp.Body); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the watch ended with %v", err)
	}
}
