package kube

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster starts an API server that never ends a watch and counts its connections.
func cluster(t *testing.T) (kubeconfig func(token string) api.Secret, connections *atomic.Int64) {
	t.Helper()
	connections = &atomic.Int64{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintln(w, r.Header.Get("Authorization"))
		if r.URL.Query().Get("watch") != "" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	server.EnableHTTP2 = true
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	return func(token string) api.Secret {
		return api.NewSecret(fmt.Sprintf("current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"+
			"clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %q}}]\nusers: [{name: u, user: {token: %q}}]", server.URL, authority, token))
	}, connections
}

func open(t *testing.T, c *Clusters, name string, kubeconfig api.Secret) *Connection {
	t.Helper()
	_, connection, err := c.Open(name, kubeconfig, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(connection.Close)
	return connection
}

func get(t *testing.T, c *Connection, query string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, c.Base.String()+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.HTTP.Do(req)
}

func text(t *testing.T, c *Connection) string {
	t.Helper()
	resp, err := get(t, c, "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// Whoever works on a cluster uses one connection; who ends ends only what is its own,
// and the last to end ends the connection.
func TestOneConnectionForAll(t *testing.T) {
	kubeconfig, connections := cluster(t)
	clusters := New(addresspolicy.OnLoopback(), nil)
	a, b := open(t, clusters, "eu", kubeconfig("t")), open(t, clusters, "eu", kubeconfig("t"))
	text(t, a)
	watch, err := get(t, a, "?watch=1")
	if err != nil {
		t.Fatal(err)
	}
	other, err := get(t, b, "?watch=1")
	if err != nil {
		t.Fatal(err)
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	ended := make(chan error, 1)
	go func() { _, err := io.Copy(io.Discard, watch.Body); ended <- err }()
	a.Close()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the watch ended without an error")
		}
	case <-time.After(eventually.Limit):
		t.Fatal("a watch goes on after Close")
	}
	_ = watch.Body.Close()
	if resp, err := get(t, a, ""); err == nil {
		resp.Body.Close()
		t.Error("a request succeeded after Close")
	}
	a.Close() // closing twice has no effect
	if got := text(t, b); got != "Bearer t\n" || connections.Load() != 1 {
		t.Errorf("got %q over %d connections", got, connections.Load())
	}
	b.Close()
	if _, err := io.Copy(io.Discard, other.Body); err == nil {
		t.Error("the watch of the other cluster continues")
	}
	_ = other.Body.Close()
	if len(clusters.open) != 0 {
		t.Errorf("%d connections left, want none", len(clusters.open))
	}
	if text(t, open(t, clusters, "eu", kubeconfig("t"))); connections.Load() != 2 {
		t.Errorf("%d connections, want 2", connections.Load())
	}
}

// Other credentials, or another cluster, use a separate connection.
func TestCredentialsAreNotShared(t *testing.T) {
	kubeconfig, connections := cluster(t)
	clusters := New(addresspolicy.OnLoopback(), nil)
	for i, c := range []struct{ name, token, want string }{{"eu", "old", "Bearer old\n"}, {"eu", "new", "Bearer new\n"}, {"us", "new", "Bearer new\n"}} {
		if got := text(t, open(t, clusters, c.name, kubeconfig(c.token))); got != c.want || connections.Load() != int64(i+1) {
			t.Errorf("got %q over connection %d, want %q", got, connections.Load(), c.want)
		}
	}
	if _, _, err := clusters.Open("eu", api.NewSecret("x"), 1); err == nil || len(clusters.open) != 3 {
		t.Errorf("error %v, %d connections", err, len(clusters.open))
	}
}
