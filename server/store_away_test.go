package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// asked is the response to a client that waits for a limited time.
type asked struct {
	status  int
	body    string
	contact time.Duration // value of the header; -1 = missing
	header  http.Header
	took    time.Duration
}

func (s *runningServer) ask(method, path, body, timeout string) asked {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if timeout != "" {
		r.Header.Set("Request-Timeout", timeout)
	}
	began := time.Now()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	a := asked{status: resp.StatusCode, contact: -1, header: resp.Header}
	if ms, err := strconv.Atoi(resp.Header.Get("Scheduler-Last-Contact")); err == nil {
		a.contact = time.Duration(ms) * time.Millisecond
	}
	if resp.Header.Get("Content-Type") != "text/event-stream" {
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			s.t.Fatal(err)
		}
		a.body = string(data)
	}
	a.took = time.Since(began)
	return a
}

// behindProxy starts a server that reaches its etcd through a proxy.
func behindProxy(t *testing.T) (*runningServer, *proxytest.Proxy) {
	t.Helper()
	p := proxytest.Start(t, externalEtcd(t))
	c := testConfig("")
	c.EtcdEndpoints, c.KeyFile, c.Lease = []string{p.Address()}, filepath.Join(t.TempDir(), "seal.key"), 3*time.Second
	c.StoreTimeout, c.StorePatience = 10*time.Second, 3*time.Second
	return start(t, c), p
}

// readRoutes are reads of all kinds.
var readRoutes = []string{
	"/v1/metrics-providers/rates", "/v1/metrics-providers", "/v1/clusters?label_selector=a%3Db",
	"/v1/namespaces/shop/placements/web", "/v1/namespaces/shop/placements/web/explanation", "/v1/placements",
	"/v1/placements?limit=2", "/v1/tokens", "/v1/server", "/v1/watch", "/v1/clusters/none", "/globalscheduler/v1/pods",
	"/v1/namespaces/shop/placements/web?wait=1s&resource_version=999999",
}

// While the store is away reads go on and say how old they are, writes of every
// sort end in time, and afterwards everything goes on as before.
func TestStoreIsAway(t *testing.T) {
	t.Parallel()
	cuts := []struct {
		name     string
		cut, end func(*proxytest.Proxy)
	}{
		{"stalled", func(p *proxytest.Proxy) { p.Stall(proxytest.ToServer, proxytest.ToClient) },
			func(p *proxytest.Proxy) { p.Pass(proxytest.ToServer, proxytest.ToClient) }},
		{"no answers", func(p *proxytest.Proxy) { p.Stall(proxytest.ToClient) }, func(p *proxytest.Proxy) { p.Pass(proxytest.ToClient) }},
		{"down", func(p *proxytest.Proxy) { p.Down(t) }, func(p *proxytest.Proxy) { p.Up(t) }},
	}
	for _, c := range cuts {
		t.Run(c.name, func(t *testing.T) {
			s, p := behindProxy(t)
			fillFleet(s, 90, 10)
			for i := range 4 {
				put(s, placement("shop", fmt.Sprint("more-", i)))
			}
			var preview asked
			eventually.True(t, "a preview is answered", func() bool {
				preview = s.ask(http.MethodPost, "/v1/previews", `{"metadata":{"namespace":"shop","name":"new"},"spec":{}}`, "")
				return preview.status != http.StatusServiceUnavailable
			})
			var previewed struct {
				ID string `json:"id"`
			}
			if err := json.Unmarshal([]byte(preview.body), &previewed); preview.status != http.StatusCreated || err != nil {
				t.Fatalf("preview: %d %s", preview.status, preview.body)
			}
			routes := append([]string{"/v1/previews/" + previewed.ID}, readRoutes...)
			before := map[string]asked{}
			for _, path := range routes {
				before[path] = s.ask(http.MethodGet, path, "", "")
				if a := before[path]; a.status >= 500 || a.contact < 0 {
					t.Errorf("GET %s with a store: got %d, contact %s, %s", path, a.status, a.contact, a.body)
				}
			}
			began := time.Now()
			c.cut(p)
			// Even a write that started before the outage was detected takes no longer than its client waits.
			first := s.ask(http.MethodPut, "/v1/clusters/first", `{}`, "1s")
			if first.status != http.StatusServiceUnavailable || first.header.Get("Retry-After") == "" {
				t.Errorf("PUT with a timeout of 1 s: got %d %s, want 503", first.status, first.body)
			}
			t.Logf("a write with a timeout of 1 s failed after %s: %s", first.took, first.body)
			eventually.True(t, "readiness fails", func() bool {
				return s.ask(http.MethodGet, "/readyz", "", "").status == http.StatusServiceUnavailable
			})
			t.Logf("/readyz failed after %s: %s", time.Since(began), s.ask(http.MethodGet, "/readyz", "", "").body)

			for _, path := range routes {
				a := s.ask(http.MethodGet, path, "", "")
				if a.status != before[path].status || a.contact < 2*time.Second {
					t.Errorf("GET %s without the store: got %d, contact %s, %s", path, a.status, a.contact, a.body)
				}
				if strings.HasSuffix(path, "limit=2") && !strings.Contains(a.body, `"continue"`) {
					t.Errorf("GET %s: no continue token: %s", path, a.body)
				}
			}
			if placements := s.objectsOf(api.KindPlacement, 2); len(placements) != 5 {
				t.Errorf("%d placements in pages, want 5", len(placements))
			}
			// A revision that is newer than the snapshot may exist, so it does not count as expired.
			if a := s.ask(http.MethodGet, "/v1/watch?resource_version=999999", "", ""); a.status != http.StatusServiceUnavailable {
				t.Errorf("watch from a future revision: got %d %s, want 503", a.status, a.body)
			}
			writes := []struct{ method, path, body string }{
				{http.MethodPut, "/v1/clusters/second", `{}`},
				{http.MethodDelete, "/v1/clusters/berlin", ""},
				{http.MethodPost, "/v1/clusters/berlin/heartbeat", ""},
				{http.MethodPost, "/v1/namespaces/shop/placements/web/reschedule", ""},
				{http.MethodPost, "/v1/previews", `{"metadata":{"namespace":"shop","name":"other"},"spec":{}}`},
				{http.MethodPost, "/v1/tokens", `{"role":"viewer"}`},
				{http.MethodDelete, "/v1/tokens/0123456789abcdef", ""},
				{http.MethodPut, "/v1/clusters/berlin/placement-scores/speed", `{"spec":{"scores":{"a":1}}}`},
			}
			for range 3 { // fast every time
				for _, w := range writes {
					a := s.ask(w.method, w.path, w.body, "")
					if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, "the store is unavailable: writes have") {
						t.Errorf("%s %s: %d %s", w.method, w.path, a.status, a.body)
					}
				}
			}
			if c.name == "down" {
				eventually.True(t, "the cause is reported", func() bool {
					return strings.Contains(s.ask(http.MethodGet, "/readyz", "", "").body, "connection refused")
				})
			}
			older := s.ask(http.MethodGet, "/v1/clusters", "", "").contact
			eventually.True(t, "the age grows", func() bool { return s.ask(http.MethodGet, "/v1/clusters", "", "").contact > older })

			c.end(p)
			eventually.True(t, "ready again", func() bool { return s.ask(http.MethodGet, "/readyz", "", "").status == http.StatusOK })
			eventually.True(t, "reads are recent again", func() bool { return s.ask(http.MethodGet, "/v1/clusters", "", "").contact < 2*time.Second })
			put(s, staticProvider("rates", map[string]float64{"berlin": 10, "paris": 90}))
			if web := put(s, placement("shop", "web")); len(web.Status.Clusters) != 1 {
				t.Errorf("clusters %v, want one", web.Status.Clusters)
			}
		})
	}
}

// objectsOf lists the objects of a kind in small pages.
func (s *runningServer) objectsOf(kind api.Kind, page int) []api.Object {
	s.t.Helper()
	var out []api.Object
	for object, err := range s.client.List(context.Background(), kind, client.ListOptions{PageSize: page}) {
		if err != nil {
			s.t.Fatal(err)
		}
		out = append(out, object)
	}
	return out
}

// A client can say how long it waits. A write that has been made by then is answered as successful.
func TestRequestTimeout(t *testing.T) {
	s := start(t, testConfig(t.TempDir()))
	put(s, cluster("berlin"))
	for _, wrong := range []string{"soon", "-1s", "0", "1 s"} {
		if a := s.ask(http.MethodGet, "/v1/clusters", "", wrong); a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, "Request-Timeout") {
			t.Errorf("%q: got %d %s, want 422", wrong, a.status, a.body)
		}
	}
	for _, timeout := range []string{"500ms", "1"} {
		a := s.ask(http.MethodGet, "/v1/clusters/berlin?wait=60s&resource_version=999999", "", timeout)
		if a.status != http.StatusOK || a.took >= time.Minute {
			t.Errorf("waiting for a change with %s: %d after %s: %s", timeout, a.status, a.took, a.body)
		}
	}
}
