package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

func TestTrustedIssuerSettings(t *testing.T) {
	const sound = `
auth:
  jwt:
    - name: ci
      issuer: https://issuer.example.com
      audiences: [scheduler]
      clock_skew: 1m
      bindings:
        - claims: { sub: "repo:shop/*" }
          role: editor
          namespaces: [shop]
`
	for _, test := range []struct {
		name, file string
		env        map[string]string
		want       []string // parts of the error; none = no error
	}{
		{name: "valid", file: sound},
		{name: "JSON in a variable", env: map[string]string{"SCHEDULER_AUTH": `{"jwt":[{"name":"ci","issuer":"https://issuer.example.com","audiences":["scheduler"],"bindings":[{"claims":{"sub":"x"},"role":"viewer"}]}]}`}},
		{name: "unknown key", file: strings.Replace(sound, "audiences", "audience", 1), want: []string{"jwt[0].audience", "is not a known field"}},
		{name: "unknown field of auth", file: "auth: { oidc: [] }", want: []string{"oidc", "is not a known field"}},
		{name: "wrong type", file: "auth: [ci]", want: []string{"configuration key auth", "not a list"}},
		{name: "text", file: "auth: ci", want: []string{"configuration key auth"}},
		{name: "rules", file: strings.Replace(strings.Replace(sound, "https://", "http://", 1), "role: editor", "role: Owner", 1), want: []string{"auth.jwt[0].issuer", "https://", "auth.jwt[0].bindings[0].role"}},
		{name: "a binding to a role that is an object", file: strings.Replace(sound, "role: editor", "role: deployer", 1)},
		{name: "missing file", file: strings.Replace(sound, "clock_skew: 1m", "ca_file: /nothing.pem", 1), want: []string{"auth.jwt[0].ca_file", "no such file"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := loaded(t, []string{"--data-dir", "x"}, test.env, test.file)
			if len(test.want) == 0 {
				if err != nil || len(c.Auth.JWT) != 1 {
					t.Fatalf("%d issuers, %v, want 1", len(c.Auth.JWT), err)
				}
				return
			}
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
		})
	}
}

// A server fetches the keys of an issuer when the first token arrives.
func TestTokenOfAnIssuer(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var issuer *httptest.Server
	issuer = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/keys" {
			_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{KeyID: "1", Key: &key.PublicKey}}})
			return
		}
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, issuer.URL, issuer.URL+"/keys")
	}))
	t.Cleanup(issuer.Close)
	c := testConfig(t.TempDir())
	if err := c.Auth.Set(`{jwt: [{name: ci, issuer: "` + issuer.URL + `", audiences: [scheduler], login: {client_id: scheduler},
		bindings: [{claims: {sub: root}, role: admin}, {claims: {sub: run}, role: viewer}, {claims: {sub: deploy}, role: deployer}]}]}`); err != nil {
		t.Fatal(err)
	}
	s := start(t, c)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{KeyID: "1", Key: key}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token := func(subject string) string {
		signed, err := signer.Sign(fmt.Appendf(nil, `{"iss":%q,"aud":"scheduler","sub":%q,"exp":%d}`, issuer.URL, subject, time.Now().Add(time.Hour).Unix()))
		if err != nil {
			t.Fatal(err)
		}
		text, err := signed.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if status, body := s.request(http.MethodPut, "/v1/roles/deployer", token("root"), `{"spec":{"rules":[{"verbs":["read"],"kinds":["placement"]},{"verbs":["report"],"kinds":["cluster"]}]}}`); status != http.StatusCreated {
		t.Fatalf("the role: %d %s", status, body)
	}
	for _, test := range []struct {
		name, method, token string
		want                int
	}{
		{"no token", http.MethodGet, "", http.StatusUnauthorized},
		{"bound", http.MethodGet, token("run"), http.StatusOK},
		{"beyond its role", http.MethodPost, token("run"), http.StatusForbidden},
		{"a kind that its role does not name", http.MethodGet, token("deploy"), http.StatusForbidden},
		{"a verb of its role", http.MethodPost, token("deploy"), http.StatusNotFound},
		{"not bound", http.MethodGet, token("other"), http.StatusForbidden},
	} {
		path := "/v1/clusters"
		if test.method == http.MethodPost {
			path = "/v1/clusters/a/heartbeat"
		}
		if got := s.status(test.method, path, test.token); got != test.want {
			t.Errorf("%s: status %d, want %d", test.name, got, test.want)
		}
	}
}
