package jwks

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/scheduler/terraform-provider-scheduler/internal/auth/jwt"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// issuer is an issuer that a test controls.
type issuer struct {
	*httptest.Server

	mu        sync.Mutex
	keys      any
	discovery func(base string) any
	broken    bool
	token     string // the token that it requires
	requests  []string
}

func newIssuer(t *testing.T, secure bool) *issuer {
	i := &issuer{}
	handler := http.HandlerFunc(i.answer)
	if secure {
		i.Server = httptest.NewTLSServer(handler)
	} else {
		i.Server = proxytest.NewServer(t, handler)
	}
	t.Cleanup(i.Close)
	i.discovery = func(base string) any { return map[string]string{"issuer": base, "jwks_uri": base + "/keys"} }
	return i
}

func (i *issuer) answer(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.requests = append(i.requests, r.URL.Path)
	switch {
	case i.broken:
		http.Error(w, "down", http.StatusBadGateway)
	case i.token != "" && r.Header.Get("Authorization") != "Bearer "+i.token:
		http.Error(w, "who are you", http.StatusUnauthorized)
	case r.URL.Path == "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(i.discovery(i.URL))
	case r.URL.Path == "/keys":
		if text, ok := i.keys.(string); ok {
			_, _ = io.WriteString(w, text)
			return
		}
		_ = json.NewEncoder(w).Encode(i.keys)
	default:
		http.NotFound(w, r)
	}
}

func (i *issuer) set(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

func (i *issuer) asked() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.requests)
}

func keySet(t *testing.T, ids ...string) jose.JSONWebKeySet {
	t.Helper()
	var set jose.JSONWebKeySet
	for _, id := range ids {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		set.Keys = append(set.Keys, jose.JSONWebKey{KeyID: id, Key: &key.PublicKey})
	}
	return set
}

// clock is a clock that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newKeys(t *testing.T, i jwt.Issuer) (*Keys, *clock) {
	t.Helper()
	network, err := addresspolicy.New(addresspolicy.Options{Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	c := &clock{now: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)}
	return New(Options{Issuer: i, Network: network, Logger: slog.New(slog.DiscardHandler), Now: c.Now, Timeout: eventually.Limit}), c
}

func has(id string) func(jose.JSONWebKeySet) bool {
	return func(set jose.JSONWebKeySet) bool { return len(set.Key(id)) > 0 }
}

// ids requests a key, and returns the IDs of all known keys.
func ids(t *testing.T, keys *Keys, wanted string) string {
	t.Helper()
	set, err := keys.Keys(t.Context(), has(wanted))
	if err != nil {
		return err.Error()
	}
	var list []string
	for _, key := range set.Keys {
		list = append(list, key.KeyID)
	}
	return strings.Join(list, " ")
}

func TestRotation(t *testing.T) {
	i := newIssuer(t, false)
	i.keys = keySet(t, "a")
	keys, clock := newKeys(t, jwt.Issuer{Name: "ci", Issuer: i.URL})
	if got := ids(t, keys, "a"); got != "a" {
		t.Fatalf("got %q", got)
	}
	for range 100 {
		ids(t, keys, "a")
	}
	if n := i.asked(); n != 2 {
		t.Errorf("%d requests for 101 tokens of one key, want 2", n)
	}
	// An unknown key is fetched, but not for every token that names one.
	i.set(func() { i.keys = keySet(t, "a", "b") })
	clock.pass(retryAfter)
	if got := ids(t, keys, "b"); got != "a b" {
		t.Errorf("after a rotation: got %q", got)
	}
	before := i.asked()
	for range 100 {
		ids(t, keys, "made up")
	}
	if n := i.asked() - before; n > 2 {
		t.Errorf("%d requests for 100 tokens with an unknown key, want at most 2", n)
	}
	// A key that the issuer withdraws is removed, even if no unknown key is requested.
	i.set(func() { i.keys = keySet(t, "b") })
	clock.pass(refreshAfter)
	ids(t, keys, "a")
	eventually.True(t, "the withdrawn key is removed", func() bool { return ids(t, keys, "b") == "b" })
}

func TestIssuerDown(t *testing.T) {
	i := newIssuer(t, false)
	i.keys = keySet(t, "a")
	i.broken = true
	keys, clock := newKeys(t, jwt.Issuer{Name: "ci", Issuer: i.URL})
	if got := ids(t, keys, "a"); !strings.Contains(got, "/.well-known/openid-configuration answers with status 502") {
		t.Errorf("before the first success: got %q", got)
	}
	i.set(func() { i.broken = false })
	if got := ids(t, keys, "a"); !strings.Contains(got, "502") {
		t.Errorf("shortly afterwards: got %q, want no new request", got)
	}
	clock.pass(retryAfter)
	if got := ids(t, keys, "a"); got != "a" {
		t.Errorf("after the recovery: got %q", got)
	}
	i.Close()
	clock.pass(usableFor - time.Second)
	if got := ids(t, keys, "a"); got != "a" {
		t.Errorf("during an outage: got %q", got)
	}
	// The fetch that was started for that response has ended.
	_, _, _ = keys.flight.Do("", func() (any, error) { return nil, nil })
	clock.pass(time.Minute)
	if got := ids(t, keys, "a"); !strings.Contains(got, "connection refused") {
		t.Errorf("after an outage of a day: got %q", got)
	}
}

// An issuer that does not respond does not delay tokens with known keys, and delays others no longer than their own
// timeout.
func TestIssuerHangs(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	keys, _ := newKeys(t, jwt.Issuer{Name: "ci", Issuer: server.URL})
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() {
		_, err := keys.Keys(ctx, has("a"))
		answered <- err
	}()
	cancel()
	if err := <-answered; err == nil {
		t.Error("got the keys of an issuer that does not respond")
	}
	close(release)
	server.Close()
	_, _, _ = keys.flight.Do("", func() (any, error) { return nil, nil })
}

func TestDocuments(t *testing.T) {
	sound := keySet(t, "a")
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name      string
		discovery func(base string) any
		keys      any
		want      string
	}{
		{"valid", nil, sound, "a"},
		{"another issuer", func(base string) any { return map[string]string{"issuer": base + "/", "jwks_uri": base + "/keys"} }, sound, "is that of issuer"},
		{"keys over http", func(base string) any { return map[string]string{"issuer": base, "jwks_uri": "http://192.0.2.1/keys"} }, sound, "must begin with https://"},
		{"no jwks_uri", func(base string) any { return map[string]string{"issuer": base} }, sound, "is not a URL"},
		{"not JSON", nil, "<html>", "/keys: it is not a JSON object with a list of keys"},
		{"no keys", nil, jose.JSONWebKeySet{}, "no public key that can be used"},
		{"private key", nil, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{KeyID: "p", Key: private}}}, "no public key that can be used"},
		{"symmetric key", nil, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{KeyID: "s", Key: []byte("secret")}}}, "no public key that can be used"},
		{"a symmetric and a public key", nil, jose.JSONWebKeySet{Keys: append([]jose.JSONWebKey{{KeyID: "s", Key: []byte("secret")}}, sound.Keys...)}, "a"},
		{"a key of an unknown kind and a public key", nil, map[string]any{"keys": []any{map[string]string{"kty": "AKP", "kid": "b"}, nil, sound.Keys[0]}}, "a"},
		{"too large", nil, strings.Repeat(" ", maxDocument+1) + "{}", "too large"},
	} {
		t.Run(test.name, func(t *testing.T) {
			i := newIssuer(t, false)
			i.keys = test.keys
			if test.discovery != nil {
				i.discovery = test.discovery
			}
			keys, _ := newKeys(t, jwt.Issuer{Name: "ci", Issuer: i.URL})
			if got := ids(t, keys, "a"); !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q in it", got, test.want)
			}
		})
	}
}

// What Kubernetes needs: its own certificate authority, and a token.
func TestCertificateAndToken(t *testing.T) {
	i := newIssuer(t, true)
	i.keys, i.token = keySet(t, "a"), "s3cret"
	dir := t.TempDir()
	ca, token := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "token")
	for path, text := range map[string][]byte{ca: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw}), token: []byte("s3cret\n")} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name   string
		issuer jwt.Issuer
		want   string
	}{
		{"discovery", jwt.Issuer{Issuer: i.URL, CAFile: ca, TokenFile: token}, "a"},
		{"given jwks_uri", jwt.Issuer{Issuer: "https://kubernetes.default.svc", JWKSURL: i.URL + "/keys", CAFile: ca, TokenFile: token}, "a"},
		{"without the CA", jwt.Issuer{Issuer: i.URL, TokenFile: token}, "certificate"},
		{"without the token", jwt.Issuer{Issuer: i.URL, CAFile: ca}, "status 401"},
		{"missing file", jwt.Issuer{Issuer: i.URL, CAFile: ca, TokenFile: token + "x"}, "no such file"},
		{"no certificate in the file", jwt.Issuer{Issuer: i.URL, CAFile: token}, "no PEM certificate"},
	} {
		t.Run(test.name, func(t *testing.T) {
			keys, _ := newKeys(t, test.issuer)
			if got := ids(t, keys, "a"); !strings.Contains(got, test.want) || strings.Contains(got, "s3cret") {
				t.Errorf("got %q, want %q in it", got, test.want)
			}
		})
	}
}

// The token is for the issuer, not for whoever its documents point to.
func TestTokenStaysWithTheIssuer(t *testing.T) {
	elsewhere := newIssuer(t, false)
	var got string
	elsewhere.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		_ = json.NewEncoder(w).Encode(keySet(t, "a"))
	})
	i := newIssuer(t, false)
	i.token = "s3cret"
	i.discovery = func(base string) any { return map[string]string{"issuer": base, "jwks_uri": elsewhere.URL + "/keys"} }
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, _ := newKeys(t, jwt.Issuer{Issuer: i.URL, TokenFile: token})
	if ids(t, keys, "a") != "a" || got != "" {
		t.Errorf("another host received the token: %q", got)
	}
}
