//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/workloadidentity"
)

// serviceAccountToken returns a token like that in a pod's projected volume.
func (c *control) serviceAccountToken(name, audience string) string {
	c.t.Helper()
	body := fmt.Sprintf(`{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": [%q], "expirationSeconds": 600}}`, audience)
	resp, err := c.http.Post("https://"+c.address+"/api/v1/namespaces/default/serviceaccounts/"+name+"/token", "application/json", strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusCreated {
		c.t.Fatal(resp.Status, err)
	}
	var request struct{ Status struct{ Token string } }
	if err := json.Unmarshal(answer, &request); err != nil || request.Status.Token == "" {
		c.t.Fatalf("no token in the answer: %v", err)
	}
	return request.Status.Token
}

// Pods of a real Kubernetes log in with their service accounts: agents report, and others may do what their binding
// allows, or nothing.
func TestServiceAccountsLogIn(t *testing.T) {
	c := startControl(t)
	for _, name := range []string{"agent", "reader", "stranger", "scheduler-server"} {
		c.do(http.MethodPost, "/api/v1/namespaces/default/serviceaccounts", document{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": document{"name": name}})
	}
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// The API server only returns its keys to clients with a token of its own.
	configuration := fmt.Sprintf(`
auth:
  jwt:
    - name: kubernetes
      issuer: https://test
      jwks_url: https://%s/openid/v1/jwks
      ca_file: %s
      token_file: %s
      audiences: [scheduler]
      bindings:
        - claims: { sub: "system:serviceaccount:default:agent" }
          role: agent
        - claims: { /kubernetes.io/namespace: default, /kubernetes.io/serviceaccount/name: "read*" }
          role: viewer
`, c.address, file("ca.pem", string(c.ca.PEM())), file("token", c.serviceAccountToken("scheduler-server", "https://test")))
	p := startServer(t, t.TempDir(), "--config", file("config.yaml", configuration))

	as := func(account, audience string) *client.Client {
		identity, err := workloadidentity.Find(workloadidentity.Options{
			Source: "file", File: file(account, c.serviceAccountToken(account, audience)), Audience: audience, Getenv: os.Getenv, Now: time.Now,
		})
		if err != nil {
			t.Fatal(err)
		}
		pod, err := client.New(client.Options{Endpoint: p.url, Tokens: identity, MaxRetries: -1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pod.Close)
		return pod
	}
	const missing = "does not exist"
	for _, test := range []struct {
		account, audience string
		read, heartbeat   string // part of the error, "" = none
	}{
		{"reader", "scheduler", "", "must not"},
		{"agent", "scheduler", "must not", missing},
		{"stranger", "scheduler", "no binding of issuer", "no binding of issuer"},
		{"reader", "https://test", "its audience (aud) must be scheduler", "its audience"},
	} {
		pod := as(test.account, test.audience)
		err := pod.Call(t.Context(), http.MethodGet, "/v1/clusters", nil, nil)
		wantError(t, test.account+" for "+test.audience+" reads", err, test.read)
		_, err = pod.Heartbeat(t.Context(), "paris", api.Heartbeat{})
		wantError(t, test.account+" for "+test.audience+" reports", err, test.heartbeat)
	}
	if log := p.stderr.String(); !strings.Contains(log, "kubernetes:system:serviceaccount:default:agent") {
		t.Error("the log does not name the service account of the requests")
	}
}

func wantError(t *testing.T, what string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %v, want an error with %q", what, err, want)
	}
}
