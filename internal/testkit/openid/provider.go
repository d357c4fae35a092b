// Package openid is an OpenID provider for tests of logins. It is test code.
package openid

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Provider logs in everybody who is sent to it, as alice, for an hour: with a code (RFC 6749, with PKCE), and on another
// device (RFC 8628) once Approve was called.
type Provider struct {
	*httptest.Server
	// Alter changes the claims of the tokens, and Refuse, if it is not empty, is the error of all logins. Both are set
	// before the first login.
	Alter  func(claims map[string]any)
	Refuse string

	t        testing.TB
	clientID string
	key      *rsa.PrivateKey

	mu       sync.Mutex
	codes    map[string]url.Values // guarded by mu; the requests that they were given for
	approved bool                  // guarded by mu; the login on another device
	given    []string              // guarded by mu; tokens
}

// Start starts a provider with a public client for one test.
func Start(t testing.TB, clientID string) *Provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	o := &Provider{t: t, clientID: clientID, key: key, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		o.answer(w, http.StatusOK, map[string]any{
			"issuer": o.URL, "authorization_endpoint": o.URL + "/authorize", "token_endpoint": o.URL + "/token", "jwks_uri": o.URL + "/keys",
			"device_authorization_endpoint": o.URL + "/device",
			"response_types_supported":      []string{"code"}, "subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		o.answer(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "k", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("GET /authorize", o.authorize)
	mux.HandleFunc("POST /device", func(w http.ResponseWriter, _ *http.Request) {
		o.answer(w, http.StatusOK, map[string]any{"device_code": "the device", "user_code": "ABCD-EFGH", "verification_uri": o.URL + "/activate", "expires_in": 300, "interval": 1})
	})
	mux.HandleFunc("POST /token", o.token)
	o.Server = httptest.NewServer(mux)
	t.Cleanup(o.Close)
	return o
}

// Configuration returns the path of a server configuration that trusts the provider, with a login, and gives operators a
// role.
func (o *Provider) Configuration(role string) string {
	o.t.Helper()
	file := filepath.Join(o.t.TempDir(), "config.yaml")
	text := fmt.Sprintf(`
auth:
  jwt:
    - name: corp
      issuer: %[1]s
      audiences: [%[2]s]
      login: { client_id: %[2]s }
      bindings:
        - claims: { groups: operators }
          role: %[3]s
`, o.URL, o.clientID, role)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
	return file
}

// Approve lets whoever waits with a code for another device in.
func (o *Provider) Approve() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.approved = true
}

// Given returns the tokens that the provider has given.
func (o *Provider) Given() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.given)
}

// answer responds with a document that pages of any origin may read.
func (o *Provider) answer(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(document) // fails if the client has gone away
}

func (o *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query()
	if asked.Get("response_type") != "code" || asked.Get("client_id") != o.clientID || asked.Get("code_challenge_method") != "S256" ||
		asked.Get("state") == "" || asked.Get("nonce") == "" || !strings.Contains(asked.Get("scope"), "openid") {
		o.t.Errorf("a client asks for %s", asked)
	}
	back := url.Values{"state": {asked.Get("state")}}
	if o.Refuse != "" {
		back.Set("error", "access_denied")
		back.Set("error_description", o.Refuse)
	} else {
		code := rand.Text()
		o.mu.Lock()
		o.codes[code] = asked
		o.mu.Unlock()
		back.Set("code", code)
	}
	w.Header().Set("Location", asked.Get("redirect_uri")+"?"+back.Encode())
	w.WriteHeader(http.StatusFound)
}

func (o *Provider) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm() // an incomplete form has no code
	refuse := func(code, why string) {
		o.answer(w, http.StatusBadRequest, map[string]string{"error": code, "error_description": why})
	}
	o.mu.Lock()
	asked, approved := o.codes[r.PostForm.Get("code")], o.approved
	delete(o.codes, r.PostForm.Get("code"))
	o.mu.Unlock()
	challenge := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
	switch grant := r.PostForm.Get("grant_type"); {
	case grant == "urn:ietf:params:oauth:grant-type:device_code" && o.Refuse != "":
		refuse("access_denied", o.Refuse)
		return
	case grant == "urn:ietf:params:oauth:grant-type:device_code" && !approved:
		refuse("authorization_pending", "nobody has typed the code yet")
		return
	case grant == "urn:ietf:params:oauth:grant-type:device_code" && r.PostForm.Get("device_code") == "the device":
	case grant != "authorization_code", asked == nil, r.PostForm.Get("redirect_uri") != asked.Get("redirect_uri"),
		base64.RawURLEncoding.EncodeToString(challenge[:]) != asked.Get("code_challenge"):
		refuse("invalid_grant", "the code is not for this verifier")
		return
	}
	text, err := o.sign(asked.Get("nonce"))
	if err != nil {
		o.t.Error(err)
	}
	o.mu.Lock()
	o.given = append(o.given, text)
	o.mu.Unlock()
	o.answer(w, http.StatusOK, map[string]any{"id_token": text, "access_token": "unused", "token_type": "Bearer", "expires_in": 3600})
}

// sign returns a token for alice.
func (o *Provider) sign(nonce string) (string, error) {
	claims := map[string]any{
		"iss": o.URL, "sub": "alice", "aud": o.clientID, "groups": []string{"operators"},
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	if o.Alter != nil {
		o.Alter(claims)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: o.key, KeyID: "k"}}, nil)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(text)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
