//go:build integration

package integration

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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// openIDProvider logs in everybody who is sent to it, as alice, for an hour.
type openIDProvider struct {
	*httptest.Server
	t   *testing.T
	key *rsa.PrivateKey

	mu    sync.Mutex
	codes map[string]url.Values // guarded by mu; the requests that they were given for
	given []string              // guarded by mu; tokens
}

func startOpenIDProvider(t *testing.T) *openIDProvider {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	o := &openIDProvider{t: t, key: key, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		o.answer(w, http.StatusOK, map[string]any{
			"issuer": o.URL, "authorization_endpoint": o.URL + "/authorize", "token_endpoint": o.URL + "/token", "jwks_uri": o.URL + "/keys",
			"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		o.answer(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "k", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("GET /authorize", o.authorize)
	mux.HandleFunc("POST /token", o.token)
	o.Server = httptest.NewServer(mux)
	t.Cleanup(o.Close)
	return o
}

// answer responds with a document that pages of any origin may read.
func (o *openIDProvider) answer(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(document) // fails if the browser has gone away
}

func (o *openIDProvider) authorize(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query()
	if asked.Get("response_type") != "code" || asked.Get("client_id") != "scheduler-page" || asked.Get("code_challenge_method") != "S256" ||
		asked.Get("state") == "" || asked.Get("nonce") == "" || !strings.Contains(asked.Get("scope"), "openid") {
		o.t.Errorf("the page asks for %s", asked)
	}
	code := rand.Text()
	o.mu.Lock()
	o.codes[code] = asked
	o.mu.Unlock()
	back := asked.Get("redirect_uri") + "?" + url.Values{"code": {code}, "state": {asked.Get("state")}}.Encode()
	http.Redirect(w, r, back, http.StatusFound)
}

func (o *openIDProvider) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm() // an incomplete form has no code
	o.mu.Lock()
	asked := o.codes[r.PostForm.Get("code")]
	delete(o.codes, r.PostForm.Get("code"))
	o.mu.Unlock()
	challenge := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
	if asked == nil || r.PostForm.Get("grant_type") != "authorization_code" || r.PostForm.Get("redirect_uri") != asked.Get("redirect_uri") ||
		base64.RawURLEncoding.EncodeToString(challenge[:]) != asked.Get("code_challenge") {
		o.answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": "the code is not for this verifier"})
		return
	}
	claims, err := json.Marshal(map[string]any{
		"iss": o.URL, "sub": "alice", "aud": "scheduler-page", "nonce": asked.Get("nonce"), "groups": []string{"operators"},
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	})
	if err != nil {
		o.t.Error(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: o.key, KeyID: "k"}}, nil)
	if err != nil {
		o.t.Error(err)
		return
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		o.t.Error(err)
		return
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		o.t.Error(err)
	}
	o.mu.Lock()
	o.given = append(o.given, text)
	o.mu.Unlock()
	o.answer(w, http.StatusOK, map[string]any{"id_token": text, "access_token": "unused", "token_type": "Bearer", "expires_in": 3600})
}

// People log in to the page with their issuer, until the token that it gave them expires.
func TestPageLogin(t *testing.T) {
	t.Parallel()
	provider := startOpenIDProvider(t)
	file := filepath.Join(t.TempDir(), "config.yaml")
	configuration := fmt.Sprintf(`
auth:
  jwt:
    - name: corp
      issuer: %s
      audiences: [scheduler-page]
      login: { client_id: scheduler-page }
      bindings:
        - claims: { groups: operators }
          role: viewer
`, provider.URL)
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startServer(t, t.TempDir(), "--config", file, "--log-level", "debug")
	p.browse("login.js", "UI_ISSUER="+provider.URL)
	provider.mu.Lock()
	defer provider.mu.Unlock()
	if len(provider.given) == 0 {
		t.Fatal("nobody logged in")
	}
	for _, token := range provider.given {
		if strings.Contains(p.stderr.String(), token) {
			t.Error("a token is in the log of the server")
		}
	}
}
