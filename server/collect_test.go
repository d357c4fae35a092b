package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/logtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// tinyOpenStack has one region with two zones and a host in each.
type tinyOpenStack struct {
	*httptest.Server
	mu   sync.Mutex
	used map[string]int // used CPUs by host
}

func newTinyOpenStack(t *testing.T) *tinyOpenStack {
	o := &tinyOpenStack{used: map[string]int{"h1": 1, "h2": 2}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v3/auth/tokens", func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		if !bytes.Contains(data, []byte(`"password":"s3cret"`)) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("X-Subject-Token", "t")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"token":{"catalog":[{"type":"compute","endpoints":[{"interface":"public","region_id":"R","url":"%s/nova"}]}]}}`, o.URL)
	})
	mux.HandleFunc("GET /nova/os-hypervisors/detail", func(w http.ResponseWriter, _ *http.Request) {
		o.mu.Lock()
		defer o.mu.Unlock()
		var hosts []string
		for _, name := range []string{"h1", "h2"} {
			hosts = append(hosts, fmt.Sprintf(`{"id":%q,"state":"up","status":"enabled","service":{"host":%q},"vcpus":8,"vcpus_used":%d,"memory_mb":1024,"memory_mb_used":0}`, name, name, o.used[name]))
		}
		fmt.Fprintf(w, `{"hypervisors":[%s]}`, strings.Join(hosts, ","))
	})
	mux.HandleFunc("GET /nova/os-aggregates", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"aggregates":[{"availability_zone":"z1","hosts":["h1"]},{"availability_zone":"z2","hosts":["h2"]}]}`)
	})
	mux.HandleFunc("GET /nova/flavors/detail", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"flavors":[{"id":"1","name":"small","vcpus":1,"ram":512}]}`)
	})
	o.Server = httptest.NewServer(mux)
	t.Cleanup(o.Close)
	return o
}

func (o *tinyOpenStack) use(host string, processors int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.used[host] = processors
}

// wire is a proxy in front of a server that records pushes and can be cut.
type wire struct {
	*httptest.Server
	mu     sync.Mutex
	pushes []api.CloudReport
	cut    bool
}

func newWire(t *testing.T, server string) *wire {
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{}
	transport := &http.Transport{}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		cut := w.cut
		var report api.CloudReport
		// Without regions, it requests the expected sequence.
		if !cut && json.Unmarshal(data, &report) == nil && len(report.Regions) > 0 {
			w.pushes = append(w.pushes, report)
		}
		w.mu.Unlock()
		if cut {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(data))
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() {
		w.Close()
		transport.CloseIdleConnections()
	})
	return w
}

func (w *wire) setCut(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
}

func (w *wire) seen() []api.CloudReport {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]api.CloudReport(nil), w.pushes...)
}

// TestCollectPushesWhatChanges runs the collector's command with an agent's token: the first push is full, the next
// contains only the changed zone, and changes during a cut arrive afterwards.
func TestCollectPushesWhatChanges(t *testing.T) {
	s := start(t, testConfig(t.TempDir()))
	put(s, &api.Cloud{Metadata: api.Metadata{Name: "paris"}, Spec: api.CloudSpec{OpenStack: &api.OpenStackSpec{AuthURL: "http://elsewhere:5000/v3"}}})
	var created struct {
		Token string `json:"token"`
	}
	if err := s.client.Call(t.Context(), http.MethodPost, tokensPath, auth.TokenRequest{Role: auth.RoleAdmin}, &created); err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(client.Options{Endpoint: s.url, Token: api.NewSecret(created.Token), RequestTimeout: eventually.Limit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(admin.Close)
	if err := admin.Call(t.Context(), http.MethodPost, tokensPath, auth.TokenRequest{Role: auth.RoleAgent}, &created); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tokenFile, passwordFile, configFile := filepath.Join(dir, "token"), filepath.Join(dir, "password"), filepath.Join(dir, "collect.yaml")
	o, w := newTinyOpenStack(t), newWire(t, s.url)
	for path, text := range map[string]string{
		tokenFile: created.Token + "\n", passwordFile: "s3cret\n",
		configFile: fmt.Sprintf("server: %s\ntoken_file: %s\ncloud: paris\nauth_url: %s/v3\nusername: u\npassword_file: %s\nproject_name: p\ninterval: 100ms\nlog_level: debug\n", w.URL, tokenFile, o.URL, passwordFile),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	logs := &logtest.Buffer{}
	ended := make(chan int, 1)
	go func() {
		ended <- execute(ctx, []string{"collect", "--config", configFile}, strings.NewReader(""), io.Discard, logs)
	}()
	defer func() {
		stop()
		if code := <-ended; code != 0 {
			t.Errorf("the collector exited with %d", code)
		}
		for _, secret := range []string{"s3cret", created.Token} {
			if strings.Contains(logs.String(), secret) {
				t.Errorf("the log contains a secret:\n%s", logs)
			}
		}
		if t.Failed() {
			t.Logf("the collector's log:\n%s", logs)
		}
	}()
	await := func(what string, reached func() bool) {
		t.Helper()
		come := false
		defer func() {
			if !come {
				t.Logf("pushed %+v", w.seen())
			}
		}()
		eventually.True(t, what, reached)
		come = true
	}
	pushed := func(n int) []api.CloudReport {
		t.Helper()
		await(fmt.Sprintf("push %d", n), func() bool { return len(w.seen()) >= n })
		return w.seen()
	}
	if first := pushed(1)[0]; !first.Full || first.Sequence != 1 || len(first.Regions) != 1 || len(first.Regions[0].Zones) != 2 {
		t.Errorf("unexpected first push %+v", first)
	}
	o.use("h2", 5)
	second := pushed(2)[1]
	if second.Full || second.Sequence != 2 || len(second.Regions) != 1 || len(second.Regions[0].Zones) != 1 || second.Regions[0].Zones[0].Name != "z2" ||
		second.Regions[0].Zones[0].Available["cpu"] != "3" || second.Regions[0].Flavors != nil {
		t.Errorf("unexpected second push %+v", second)
	}
	w.setCut(true)
	o.use("h1", 7)
	o.use("h2", 7)
	await("the end of the connection", func() bool { return strings.Contains(logs.String(), "could not be pushed") })
	w.setCut(false)
	if third := pushed(3)[2]; !third.Full || len(third.Regions[0].Zones) != 2 {
		t.Errorf("unexpected push %+v after the outage", third)
	}
}

// TestCollectGoesOnAtAnotherServer: of several servers, one does not listen and one is
// lost in the middle; what is collected arrives all the same, in order.
func TestCollectGoesOnAtAnotherServer(t *testing.T) {
	s := start(t, testConfig(t.TempDir()))
	put(s, &api.Cloud{Metadata: api.Metadata{Name: "paris"}, Spec: api.CloudSpec{OpenStack: &api.OpenStackSpec{AuthURL: "http://elsewhere:5000/v3"}}})
	o, lost, kept := newTinyOpenStack(t), newWire(t, s.url), newWire(t, s.url)
	t.Setenv(passwordVariable, "s3cret")
	ctx, stop := context.WithCancel(t.Context())
	logs := &logtest.Buffer{}
	ended := make(chan int, 1)
	go func() {
		ended <- execute(ctx, []string{
			"collect", "--server", "http://" + proxytest.FreeAddress(t) + ", " + lost.URL, "--server", kept.URL,
			"--cloud", "paris", "--auth-url", o.URL + "/v3", "--username", "u", "--project-name", "p", "--interval", "100ms", "--log-level", "debug",
		}, strings.NewReader(""), io.Discard, logs)
	}()
	defer func() {
		stop()
		if code := <-ended; code != 0 || t.Failed() {
			t.Errorf("the collector exited with %d; its log:\n%s", code, logs)
		}
	}()
	eventually.True(t, "the second server has the first push", func() bool { return len(lost.seen()) == 1 })
	lost.setCut(true)
	o.use("h2", 5)
	eventually.True(t, "the third server has the next push", func() bool { return len(kept.seen()) >= 1 })
	if next := kept.seen()[0]; next.Full || next.Sequence != 2 || len(next.Regions[0].Zones) != 1 {
		t.Errorf("unexpected push %+v after the loss of a server", next)
	}
	if strings.Contains(logs.String(), "could not be pushed") {
		t.Error("a push failed although a server was available")
	}
}

func TestCollectMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		want string
	}{
		"no cloud":                        {nil, nil, "cloud: is required: the name of the cloud on the server\n"},
		"no address":                      {[]string{"--cloud", "paris"}, nil, `auth-url: "" is not an address: write http://host[:port]/path or https://host[:port]/path` + "\n"},
		"no password":                     {[]string{"--cloud", "paris", "--auth-url", "http://k"}, nil, "password-file: is required, unless SCHEDULER_PASSWORD or an application credential is set\n"},
		"no user":                         {[]string{"--cloud", "paris", "--auth-url", "http://k", "--project-name", "p"}, map[string]string{passwordVariable: "s3cret"}, "username: is required with a password\n"},
		"no project":                      {[]string{"--cloud", "paris", "--auth-url", "http://k", "--username", "u"}, map[string]string{passwordVariable: "s3cret"}, "project-name: is required with a user: the project in which the user has a role\n"},
		"no file":                         {[]string{"--cloud", "paris", "--password-file", "/nowhere/x"}, nil, "password-file: open /nowhere/x: no such file or directory\n"},
		"a password where others read it": {[]string{"--password", "s3cret"}, nil, "unknown flag: --password\n"},
		"short interval": {
			[]string{"--cloud", "paris", "--auth-url", "http://k", "--username", "u", "--project-name", "p", "--interval", "1ms"},
			map[string]string{passwordVariable: "s3cret"}, "interval: \"1ms\" must be at least 100ms\n",
		},
		"no server": {
			[]string{"--cloud", "paris", "--auth-url", "http://k", "--application-credential-id", "a", "--server", "nowhere"},
			map[string]string{secretVariable: "s3cret"}, "endpoint \"nowhere\" is not an address: write http://host:port or https://host:port\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range c.env {
				t.Setenv(variable, value)
			}
			code, stdout, stderr := command(t, append([]string{"collect"}, c.args...)...)
			if code != 1 || stdout != "" || stderr != "scheduler-server: "+c.want {
				t.Errorf("exit code %d, output %q, message %q, want %q", code, stdout, stderr, c.want)
			}
		})
	}
}
