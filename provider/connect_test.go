package provider_test

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// door is a proxy in front of a server that counts requests and can be closed.
type door struct {
	*httptest.Server
	proxy    *httputil.ReverseProxy
	requests atomic.Int64
	gate     atomic.Pointer[gate]
}

// gate is called with the number of each request before it is forwarded, and reports whether to forward it.
type gate func(int64, http.ResponseWriter, *http.Request) bool

// let sets the gate; nil forwards every request.
func (d *door) let(g gate) { d.gate.Store(&g) }

func newDoor(t *testing.T, endpoint string) *door {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // it would report what the test breaks
	d := &door{proxy: proxy}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := d.requests.Add(1)
		if g := d.gate.Load(); g == nil || *g == nil || (*g)(n, w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(d.Close)
	return d
}

// manyClusters returns a configuration of 300 independent resources.
func manyClusters(endpoint, settings string) string {
	return fmt.Sprintf(`
		provider "scheduler" {
		  endpoint = %q
		  %s
		}
		resource "scheduler_cluster" "many" {
		  count = 300
		  name  = "c${count.index}"
		}`, endpoint, settings)
}

// nowhere returns an address where nothing listens.
func nowhere(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return "http://" + listener.Addr().String()
}

// What is wrong with the server is said once, whatever the number of resources,
// whether they are to be created or are there already, and the server is not asked
// again and again.
func TestAccNothingWillSucceed(t *testing.T) {
	f := newFleet(t)
	d := newDoor(t, f.endpoint)
	existing := newWorkspace(t, manyClusters(d.URL, ""))
	existing.ok("apply", "-auto-approve")
	t.Run("lost while reading", func(t *testing.T) {
		var requests atomic.Int64
		d.let(func(_ int64, _ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/v1/server" && requests.Load() == 0 {
				return true
			}
			requests.Add(1)
			panic(http.ErrAbortHandler)
		})
		defer func() { d.let(nil) }()
		result := existing.run("plan")
		if len(result.errors) != 1 || result.code != 1 || !strings.Contains(result.errors[0].Detail, "EOF") {
			t.Errorf("%d errors:\n%s", len(result.errors), result.output)
		}
		if n := requests.Load(); n > 10*(1+4)+10*2 {
			t.Errorf("the server was asked %d times after it was gone", n)
		}
	})
	token := createToken(t, f.endpoint, `{"role":"editor"}`)
	existing.file("main.tf", manyClusters(d.URL, fmt.Sprintf("token = %q", token)))
	before := d.requests.Load()
	existing.ok("plan")
	if n := d.requests.Load() - before; n > 60 {
		t.Errorf("a plan over 300 resources that are there takes %d requests", n)
	}
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	down := nowhere(t)
	for _, test := range []struct {
		name, endpoint, settings string
		want                     []string
		requests                 int64
		everywhere               bool // for all commands, not only plan
	}{
		{"wrong token", d.URL, `token = "abc.def"`, []string{d.URL, "the token is unknown", "SCHEDULER_TOKEN"}, 1, true},
		{"no token", d.URL, ``, []string{d.URL, "token is required", "SCHEDULER_TOKEN"}, 1, false},
		{"down", down, ``, []string{down, "connection refused", "start the server", "check_connection"}, 0, true},
		{"unknown authority", secure.URL, ``, []string{secure.URL, "unknown authority", "ca_cert_file"}, 0, false},
		{"https to a server without TLS", strings.Replace(d.URL, "http:", "https:", 1), ``, []string{"write http://"}, 0, false},
		{"http to a server with TLS", strings.Replace(secure.URL, "https:", "http:", 1), ``, []string{"write https://"}, 0, false},
		{"something else", other.URL, ``, []string{other.URL, "404", "SCHEDULER_ENDPOINT"}, 0, false},
		{"no such name", "http://scheduler.invalid:8665", ``, []string{"scheduler.invalid", "resolve"}, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := manyClusters(test.endpoint, test.settings)
			existing.file("main.tf", config)
			fresh := newWorkspace(t, config)
			runs := map[string]func() ran{"plan to create": func() ran { return fresh.run("plan") }}
			if test.everywhere {
				runs["apply"] = func() ran { return fresh.run("apply", "-auto-approve") }
				runs["refresh"] = func() ran { return existing.run("plan") }
				runs["destroy"] = func() ran { return existing.run("destroy", "-auto-approve") }
			}
			for name, run := range runs {
				before := d.requests.Load()
				result := run()
				if len(result.errors) != 1 {
					t.Fatalf("%s shows %d errors:\n%s", name, len(result.errors), result.output)
				}
				text := result.errors[0].Summary + "\n" + result.errors[0].Detail
				for _, want := range test.want {
					if !strings.Contains(text, want) {
						t.Errorf("%s does not say %q:\n%s", name, want, text)
					}
				}
				if n := d.requests.Load() - before; n != test.requests {
					t.Errorf("%s takes %d requests, expected %d", name, n, test.requests)
				}
			}
		})
	}
}

// If a server is lost while 300 resources are created, the reason is explained once. The other resources fail with one
// line, and no more requests are sent.
func TestAccServerLostInAnApply(t *testing.T) {
	for _, test := range []struct {
		name, want string
		broken     http.HandlerFunc
	}{
		{"gone", "EOF", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		{"token revoked", "SCHEDULER_TOKEN", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"status":401,"title":"Unauthorized","detail":"the token has been revoked"}`)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDoor(t, newFleet(t).endpoint)
			var puts atomic.Int64
			var after atomic.Int64
			d.let(func(_ int64, w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPut {
					puts.Add(1)
				}
				if puts.Load() <= 50 {
					return true
				}
				after.Add(1)
				test.broken(w, r)
				return false
			})
			w := newWorkspace(t, manyClusters(d.URL, "max_retries = 2"))
			result := w.run("apply", "-auto-approve")
			explained := 0
			for _, e := range result.errors {
				if e.Detail != "" {
					explained++
					if !strings.Contains(e.Detail, test.want) {
						t.Errorf("the error says %q", e.Detail)
					}
				}
			}
			if explained != 1 || len(result.errors) < 200 {
				t.Errorf("%d of %d errors have a text:\n%s", explained, len(result.errors), result.output)
			}
			// Ten at a time, with their retries, and the requests that detect that the server is lost.
			if n := after.Load(); n > 10*(1+2)+10*2 {
				t.Errorf("the server was asked %d times after it was gone", n)
			}
			d.let(nil)
			w.ok("plan") // what was created before is in the state
		})
	}
}

// A plan works for a server that the same apply will start.
func TestAccConnectionNotChecked(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]*workspace{
		"setting":     newWorkspace(t, manyClusters(nowhere(t), "check_connection = false")),
		"environment": newWorkspace(t, manyClusters(nowhere(t), ""), "SCHEDULER_CHECK_CONNECTION=false"),
	} {
		t.Run(name, func(t *testing.T) { w.ok("plan") })
	}
	w := newWorkspace(t, manyClusters(nowhere(t), "check_connection = false\n max_retries = 1"))
	result := w.run("apply", "-auto-approve")
	explained := 0
	for _, e := range result.errors {
		if strings.Contains(e.Detail, "connection refused") {
			explained++
		}
	}
	if explained != 1 {
		t.Errorf("%d errors have a text:\n%s", explained, result.output)
	}
}
