package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// breaking is a proxy in front of a server: it forwards a request, sends half of the response and breaks off. It counts
// the requests.
func breaking(t *testing.T, url string, asked *atomic.Int32) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		req, err := http.NewRequestWithContext(r.Context(), r.Method, url+r.URL.RequestURI(), r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		req.Header = r.Header
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
			return
		}
		if len(answer) > 0 { // otherwise it breaks off before the response
			w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
			w.WriteHeader(resp.StatusCode)
			_, _ = w.Write(answer[:len(answer)/2])
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(func() {
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return server.URL
}

// TestCommandsGoOnAtAnotherServer: of several servers one does not listen, and one is
// lost in the middle of its answer. What can be asked twice is done at the next one.
func TestCommandsGoOnAtAnotherServer(t *testing.T) {
	s := start(t, testConfig(t.TempDir()))
	fillFleet(s, 90, 10)
	var asked atomic.Int32
	absent, broken := "http://"+proxytest.FreeAddress(t), breaking(t, s.url, &asked)

	// Nothing is created twice: a server that does not listen has created nothing, but one that was lost during the
	// request may have.
	admin := strings.TrimSpace(mustCommand(t, "token", "create", "--role", "admin", "--endpoint", absent, "--endpoint", s.url))
	t.Setenv("SCHEDULER_TOKEN", admin)
	if code, _, stderr := command(t, "token", "create", "--role", "viewer", "--description", "once", "--endpoint", broken+","+s.url); code != 1 || !strings.Contains(stderr, "unexpected EOF") {
		t.Errorf("a token was created although the server cut the connection: exit code %d: %s", code, stderr)
	}

	t.Setenv("SCHEDULER_ENDPOINTS", absent+", "+broken+", "+s.url)
	asked.Store(0)
	list := mustCommand(t, "token", "list")
	if strings.Count(list, "once") != 1 || asked.Load() != 1 {
		t.Errorf("the server that cuts connections got %d requests, want 1; tokens:\n%s", asked.Load(), list)
	}
	viewer := strings.TrimSpace(mustCommand(t, "token", "create", "--role", "viewer", "--endpoint", s.url))
	asked.Store(0)
	mustCommand(t, "token", "revoke", viewer)
	if code := s.status("GET", "/v1/server", viewer); code != 401 || asked.Load() != 1 {
		t.Errorf("revoked token: got %d, want 401; %d requests to the server that cuts connections", code, asked.Load())
	}
	if code, _, stderr := command(t, "token", "revoke", viewer, "--endpoint", s.url); code != 1 || !strings.Contains(stderr, "does not exist") {
		t.Errorf("revoked twice: exit code %d: %s", code, stderr)
	}

	file := filepath.Join(t.TempDir(), "backup.tar")
	asked.Store(0)
	mustCommand(t, "backup", file)
	if asked.Load() != 1 {
		t.Errorf("the server that cuts connections got %d requests, want 1 without the backup", asked.Load())
	}
	mustCommand(t, "restore", "--data-dir", filepath.Join(t.TempDir(), "restored"), file)
	// Output that has been written elsewhere cannot be restarted.
	if code, _, stderr := command(t, "backup", "-"); code != 1 || !strings.Contains(stderr, "fetch the backup: unexpected EOF") {
		t.Errorf("truncated backup: exit code %d: %s", code, stderr)
	}
	// Nor does it succeed if all servers break off.
	if code, _, stderr := command(t, "backup", "--endpoint", broken, file+"2"); code != 1 || !strings.Contains(stderr, "unexpected EOF") {
		t.Errorf("truncated backup: exit code %d: %s", code, stderr)
	}
	if _, err := os.Stat(file + "2"); !os.IsNotExist(err) {
		t.Errorf("the truncated backup was kept: %v", err)
	}
}

// TestEndpointsOnTheCommandLine checks that there may be one address or several, and that they may be given only once.
func TestEndpointsOnTheCommandLine(t *testing.T) {
	for _, c := range []struct {
		endpoint, endpoints string
		flags               []string
		want                string
	}{
		{flags: []string{"--endpoint", "http://a,http://a"}, want: `endpoint "http://a" is given twice`},
		{flags: []string{"--endpoint", "http://a,"}, want: `endpoint "" is not an address`},
		{endpoints: "http://127.0.0.1:1, nowhere", want: `endpoint "nowhere" is not an address`},
		{endpoint: "nowhere", want: `endpoint "nowhere" is not an address`},
		{endpoint: "http://a", endpoints: "http://b", want: "environment variable SCHEDULER_ENDPOINTS: must be absent because SCHEDULER_ENDPOINT is set"},
		{endpoint: "http://a", endpoints: "http://b", flags: []string{"--endpoint", "nowhere"}, want: `endpoint "nowhere" is not an address`},
	} {
		t.Setenv("SCHEDULER_ENDPOINT", c.endpoint)
		t.Setenv("SCHEDULER_ENDPOINTS", c.endpoints)
		if code, _, stderr := command(t, append([]string{"token", "list"}, c.flags...)...); code != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("%+v: exit code %d: %s", c, code, stderr)
		}
	}
}
