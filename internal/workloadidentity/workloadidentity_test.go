package workloadidentity

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// token returns a token with some claims. Its signature is not checked here.
func token(name string, audience any, expires time.Time) string {
	payload, _ := json.Marshal(map[string]any{"aud": audience, "exp": expires.Unix(), "sub": name})
	return "e30." + base64.RawURLEncoding.EncodeToString(payload) + ".c2ln"
}

// subject returns the subject of a token.
func subject(text string) string {
	var claims struct{ Sub string }
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return text
	}
	payload, _ := base64.RawURLEncoding.DecodeString(parts[1])
	_ = json.Unmarshal(payload, &claims)
	return claims.Sub
}

func TestFind(t *testing.T) {
	hour := now.Add(time.Hour)
	github := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer request-secret" {
			http.Error(w, "who are you", http.StatusForbidden)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"value": token("github "+r.URL.Query().Get("api-version"), r.URL.Query().Get("audience"), hour)})
	}))
	defer github.Close()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(token("pod", []string{"scheduler"}, hour)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	onGitHub := map[string]string{githubURLVariable: github.URL + "/token?api-version=2.0", githubTokenVariable: "request-secret"}
	for _, test := range []struct {
		name        string
		environment map[string]string
		options     Options
		source      string // "" = none is found
		want        string // the subject of the expected token
		err         string
	}{
		{name: "nothing"},
		{name: "file", options: Options{File: path}, source: "file", want: "pod"},
		{name: "missing file", options: Options{File: path + "x"}, source: "file", err: "no such file"},
		{name: "HCP Terraform", environment: map[string]string{hcpVariable: token("hcp", "scheduler", hour)}, source: "hcp_terraform", want: "hcp"},
		{name: "HCP Terraform, tagged token first", environment: map[string]string{hcpVariable: token("aws", "aws.workload.identity", hour), hcpTaggedVariable: token("ours", "scheduler", hour)}, source: "hcp_terraform", want: "ours"},
		{name: "HCP Terraform for another service", environment: map[string]string{hcpVariable: token("aws", "aws.workload.identity", hour)}},
		{name: "HCP Terraform for another service, by name", options: Options{Source: "hcp_terraform"}, environment: map[string]string{hcpVariable: token("aws", "aws.workload.identity", hour)}, source: "hcp_terraform", err: "so it is not sent"},
		{name: "GitHub Actions", environment: onGitHub, source: "github_actions", want: "github 2.0"},
		{name: "GitHub Actions, other audience", environment: onGitHub, options: Options{Audience: "eu"}, source: "github_actions", want: "github 2.0"},
		{name: "GitHub Actions without the permission", environment: map[string]string{githubURLVariable: github.URL}},
		{name: "GitHub Actions, rejected", environment: map[string]string{githubURLVariable: github.URL, githubTokenVariable: "x"}, source: "github_actions", err: "answers with status 403"},
		{name: "GitLab", environment: map[string]string{idTokenVariable: token("gitlab", "scheduler", hour)}, source: "environment", want: "gitlab"},
		{name: "GitLab for another service", environment: map[string]string{idTokenVariable: token("gitlab", "vault", hour)}, source: "environment", err: `for the audience ["vault"], not "scheduler"`},
		{name: "not a token", environment: map[string]string{idTokenVariable: "secret-text"}, source: "environment", err: "no JSON Web Token"},
		{name: "disabled", environment: onGitHub, options: Options{Source: None}},
		{name: "by name, absent", options: Options{Source: "github_actions"}, err: "is not available"},
		{name: "unknown name", options: Options{Source: "jenkins"}, err: "is not one of auto, none, file, hcp_terraform, github_actions, environment"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := test.options
			o.Getenv = func(name string) string { return test.environment[name] }
			o.Client, o.Now = http.DefaultClient, func() time.Time { return now }
			identity, err := Find(o)
			var got string
			if identity != nil {
				if identity.Source() != test.source {
					t.Errorf("source %q, want %q", identity.Source(), test.source)
				}
				secret, failed := identity.Token(t.Context())
				got, err = subject(secret.Reveal()), failed
			} else if test.source != "" {
				t.Errorf("no token found, want source %q", test.source)
			}
			if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %q, %v; want %q, an error with %q", got, err, test.want, test.err)
			}
			if err != nil && (strings.Contains(err.Error(), "secret-text") || strings.Contains(err.Error(), "request-secret")) {
				t.Errorf("the error contains a secret: %v", err)
			}
		})
	}
}

// A run that outlives its token requests a new one, once.
func TestRenewal(t *testing.T) {
	clock, asked := now, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_ = json.NewEncoder(w).Encode(map[string]string{"value": token("run", "scheduler", clock.Add(5*time.Minute))})
	}))
	defer server.Close()
	environment := map[string]string{githubURLVariable: server.URL, githubTokenVariable: "x"}
	identity, err := Find(Options{Getenv: func(name string) string { return environment[name] }, Client: http.DefaultClient, Now: func() time.Time { return clock }})
	if err != nil || identity == nil {
		t.Fatal(identity, err)
	}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {time.Minute, 1}, {3*time.Minute + 59*time.Second, 1}, {4 * time.Minute, 2}, {5 * time.Minute, 2}} {
		clock = now.Add(step.after)
		if _, err := identity.Token(t.Context()); err != nil {
			t.Fatal(err)
		}
		if asked != step.want {
			t.Errorf("after %s: %d requests, want %d", step.after, asked, step.want)
		}
	}
}
