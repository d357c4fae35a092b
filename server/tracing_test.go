package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing/otlptest"
)

// inTrace returns a context of a trace that somebody else records, and the ID of the trace. Each n is another trace.
func inTrace(t testing.TB, n int) (context.Context, string) {
	t.Helper()
	id := fmt.Sprintf("0af7651916cd43dd8448eb21%08x", n)
	return tracing.FromEnvironment(context.Background(), func(name string) string {
		return map[string]string{"TRACEPARENT": "00-" + id + "-" + callerSpan + "-01"}[name]
	}), id
}

// callerSpan is the span of the one who makes a request.
const callerSpan = "b7ad6b7169203331"

// tracedWrites returns a function that creates a placement as a part of a trace of its own. A server that cannot answer
// in time is asked for another placement in another trace.
func (s *runningServer) tracedWrites() func() (name, trace string) {
	n := 0
	return func() (name, trace string) {
		s.t.Helper()
		eventually.True(s.t, "a write is answered", func() bool {
			n++
			var ctx context.Context
			ctx, trace = inTrace(s.t, n)
			name = fmt.Sprint("web-", n)
			object := placement("shop", name)
			object.SetDefaults()
			_, err := s.client.Put(ctx, object, client.PutOptions{})
			if status := client.StatusOf(err); err != nil && status != http.StatusServiceUnavailable {
				s.t.Fatalf("put %s: %v", name, err)
			}
			return err == nil
		})
		return name, trace
	}
}

const (
	putPlacement = "PUT /v1/namespaces/{namespace}/placements/{name}"
	settledRoute = "GET /v1/settled"
)

// requestIn waits for the request of a trace that was answered.
func requestIn(collector *otlptest.Collector, trace, name string) otlptest.Span {
	return collector.Await(name+" in trace "+trace, func(s otlptest.Span) bool { return s.TraceID == trace && s.Name == name && s.Server && !s.Failed })
}

// One trace leads from the request through the store to the decision, and the pass that made the decision has a link to
// the request.
func TestTraceOfAWrite(t *testing.T) {
	for _, protocol := range []string{"http", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			collector := otlptest.NewHTTP(t)
			if protocol == "grpc" {
				collector = otlptest.NewGRPC(t)
			}
			c := testConfig(t.TempDir())
			// No trace begins here; those of callers are recorded.
			c.TracingEndpoint, c.TracingProtocol, c.TracingSampleRatio = collector.Endpoint, protocol, 0
			c.AuditLog, c.Name = filepath.Join(t.TempDir(), "audit.log"), "eu-1"
			s := start(t, c)
			put(s, cluster("berlin"))
			write := s.tracedWrites()
			name, trace := write()

			request := requestIn(collector, trace, putPlacement)
			if request.ParentID != callerSpan || request.Service != "scheduler-server" {
				t.Errorf("got %+v", request)
			}
			for key, want := range map[string]string{
				"http.request.method": "PUT", "http.route": "/v1/namespaces/{namespace}/placements/{name}", "http.response.status_code": "201", "client.address": "127.0.0.1",
			} {
				if request.Attributes[key] != want {
					t.Errorf("%s of the request is %q, want %q", key, request.Attributes[key], want)
				}
			}
			commit := collector.Child(request, "store commit")
			if commit.Attributes["scheduler.object.kind"] != "placement" || commit.Attributes["scheduler.object.namespace"] != "shop" || commit.Attributes["scheduler.object.name"] != name {
				t.Errorf("got %+v", commit)
			}
			collector.Child(request, "await signals")
			collector.Child(request, "decide")
			decide := collector.Decided(request)
			if decide.Attributes["scheduler.decisions.moved"] != "1" || decide.Attributes["scheduler.revision"] != commit.Attributes["scheduler.revision"] {
				t.Errorf("got %+v after %+v", decide, commit)
			}
			plan, written := collector.Child(decide, "plan"), collector.Child(decide, "store derive")
			if commit.Began < request.Began || plan.Ended < plan.Began || written.Began < plan.Ended || written.Ended > request.Ended {
				t.Error("the parts are not in the order in which they happened")
			}

			// That the revision of a write is known may be noted only after its pass has ended.
			linked := func() bool {
				requests := map[string]bool{}
				for _, span := range collector.Spans() {
					if span.Name == putPlacement {
						requests[span.SpanID] = true
					}
				}
				for _, span := range collector.Spans() {
					if span.Name == "pass" && len(span.Links) > 0 && requests[span.Links[0]] {
						collector.Child(span, "plan")
						collector.Child(span, "store derive")
						return true
					}
				}
				write()
				return false
			}
			eventually.True(t, "a pass has a link to its request", linked)

			eventually.True(t, "the log line of the request names the trace", func() bool {
				for line := range strings.Lines(s.logs.String()) {
					if strings.Contains(line, "msg=request ") && strings.Contains(line, "trace_id="+trace) && strings.Contains(line, "span_id="+request.SpanID) {
						return strings.Contains(line, "request_id="+request.Attributes["scheduler.request_id"])
					}
				}
				return false
			})
			traces := map[string]string{}
			for _, entry := range auditEntries(t, c.AuditLog) {
				if entry.Object != nil {
					traces[entry.Object.Name] = entry.TraceID
				}
			}
			if got, ok := traces["berlin"]; got != "" || !ok || traces[name] != trace {
				t.Errorf("traces in the audit log: %v, want none of berlin and %s of %s", traces, trace, name)
			}
			for _, span := range collector.Spans() {
				if span.TraceID[:24] != trace[:24] && span.Name != "pass" && span.Name != "plan" && span.Name != "store derive" {
					t.Errorf("%q is recorded although nobody asked for it", span.Name)
				}
			}
		})
	}
}

// A reading of metrics has a trace, and the pass that it caused has a link to it.
func TestTraceOfAReading(t *testing.T) {
	t.Parallel()
	collector := otlptest.NewHTTP(t)
	c := testConfig(t.TempDir())
	c.TracingEndpoint = collector.Endpoint
	s := start(t, c)
	prices := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Traceparent") != "" {
			t.Error("the metrics provider is told of the trace")
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"price": 3}`)
	}))
	defer prices.Close()
	put(s, &api.MetricsProvider{Metadata: api.Metadata{Name: "prices"}, Spec: api.MetricsProviderSpec{
		Type: api.ProviderHTTPJSON, HTTPJSON: &api.HTTPJSONSpec{URL: prices.URL + "/s3cr3t?key=s3cr3t", Value: "/price"},
	}})
	put(s, metric("price", "prices", "price"))
	reading := collector.Await("a reading", func(s otlptest.Span) bool {
		return s.Name == "collect metrics" && s.Attributes["scheduler.object.name"] == "prices" && s.Attributes["scheduler.objects"] == "1"
	})
	asked := collector.Child(reading, "GET")
	if !asked.Client || asked.Attributes["server.address"] != "127.0.0.1" || asked.Attributes["http.response.status_code"] != "200" {
		t.Errorf("got %+v", asked)
	}
	collector.Child(reading, "store derive")
	collector.Await("a pass that a reading caused", func(s otlptest.Span) bool {
		if s.Name != "pass" {
			return false
		}
		for _, link := range s.Links {
			for _, other := range collector.Spans() {
				if other.SpanID == link && other.Name == "collect metrics" {
					return true
				}
			}
		}
		return false
	})
	if strings.Contains(collector.Raw(), "s3cr3t") {
		t.Error("the address that was asked is in a trace")
	}
}

// A write through one server is one trace, up to the decision that another one makes.
func TestTraceOverSeveralServers(t *testing.T) {
	t.Parallel()
	collector := otlptest.NewHTTP(t)
	servers, _ := several(t, 2, func(c *config) { c.TracingEndpoint, c.TracingSampleRatio = collector.Endpoint, 0 })
	leader, follower := servers[0], servers[1]
	leader.leads()
	put(follower, cluster("berlin"))
	_, trace := follower.tracedWrites()()
	request := requestIn(collector, trace, putPlacement)
	asks := collector.Child(request, "GET")
	settled := collector.Child(asks, settledRoute)
	decide := collector.Child(settled, "decide")
	collector.Child(decide, "plan")
	collector.Child(decide, "store derive")

	// A request that only the leader can answer.
	ctx, asked := inTrace(t, 0)
	if _, err := follower.client.ListDistributions(ctx, "berlin"); client.StatusOf(err) != http.StatusConflict {
		t.Fatalf("got %v", err)
	}
	passed := collector.Await("the request at the first server", func(s otlptest.Span) bool {
		return s.TraceID == asked && s.Server && s.ParentID == callerSpan && strings.Contains(s.Name, "distributions")
	})
	collector.Child(collector.Child(passed, "GET"), passed.Name)
}

// Who has no token cannot fill the queue of traces.
func TestTracesOfClientsWithoutAToken(t *testing.T) {
	t.Parallel()
	collector := otlptest.NewHTTP(t)
	c := testConfig(t.TempDir())
	c.TracingEndpoint = collector.Endpoint
	s := start(t, c)
	token := strings.TrimSpace(mustCommand(t, "token", "create", "--endpoint", s.url, "--role", "admin"))
	ask := func(path, token string, trace int, want int) string {
		t.Helper()
		ctx, id := inTrace(t, trace)
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		response, err := (&http.Client{Transport: tracing.Peer(transport)}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %s", path, response.Status)
		}
		return id
	}
	for n, path := range []string{"/v1/clusters", "/healthz", "/readyz", "/v1/openapi.json"} {
		want := http.StatusOK
		if n == 0 {
			want = http.StatusUnauthorized
		}
		ask(path, "", n, want)
	}
	ask("/metrics", token, 4, http.StatusOK)
	// Spans arrive in the order in which they end.
	requestIn(collector, ask("/v1/clusters", token, 5, http.StatusOK), "GET /v1/clusters")
	for n := range 5 {
		_, id := inTrace(t, n)
		for _, span := range collector.Spans() {
			if span.TraceID == id {
				t.Errorf("got %+v", span)
			}
		}
	}
}

// Nothing that is secret gets into a trace, wherever users put it.
func TestTracesHoldNoSecrets(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	collector := otlptest.NewHTTP(t)
	c := testConfig(t.TempDir())
	c.TracingEndpoint = collector.Endpoint
	c.TracingHeadersFile = filepath.Join(t.TempDir(), "headers")
	if err := os.WriteFile(c.TracingHeadersFile, []byte("Authorization: Bearer "+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, c)
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Echo", secret)
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, secret)
	}))
	defer outside.Close()
	put(s, &api.MetricsProvider{Metadata: api.Metadata{Name: "prices"}, Spec: api.MetricsProviderSpec{
		Type: api.ProviderHTTPJSON, HTTPJSON: &api.HTTPJSONSpec{URL: outside.URL + "/" + secret + "?key=" + secret, Value: "/price"},
		BearerToken: api.NewSecret(secret + "-bearer"), Headers: map[string]api.Secret{"X-Key": api.NewSecret(secret + "-header")},
	}})
	put(s, metric("price", "prices", "price"))
	kubeconfig := strings.Replace(kubeconfigOf(outside.URL, "").Reveal(), "token: ", "token: "+secret, 1)
	put(s, &api.Cluster{Metadata: api.Metadata{Name: "berlin"}, Spec: api.ClusterSpec{Kubernetes: &api.KubernetesSpec{Kubeconfig: api.NewSecret(kubeconfig)}}})
	put(s, &api.Cluster{Metadata: api.Metadata{Name: "paris"}, Spec: api.ClusterSpec{Health: &api.HealthSpec{URL: outside.URL + "/" + secret}}})
	put(s, &api.Cloud{Metadata: api.Metadata{Name: "sky"}, Spec: api.CloudSpec{OpenStack: &api.OpenStackSpec{
		AuthURL: outside.URL + "/v3", Username: "u", UserDomainName: "d", ProjectName: "p", ProjectDomainName: "d", Password: api.NewSecret(secret + "-password"),
	}}})
	token := strings.TrimSpace(mustCommand(t, "token", "create", "--endpoint", s.url, "--role", "admin", "--description", secret))
	for _, request := range []struct{ method, path, body string }{
		{http.MethodGet, "/v1/" + secret, ""},
		{http.MethodGet, "/v1/clusters/" + secret, ""},
		{http.MethodGet, "/v1/clusters?limit=" + secret, ""},
		{http.MethodGet, "/v1/clusters?continue=" + secret, ""},
		{http.MethodPut, "/v1/namespaces/" + secret + "/placements/UPPER-" + secret, "{}"},
		{http.MethodPut, "/v1/namespaces/shop/placements/web", `{"spec":{"` + secret + `":1}}`},
		{http.MethodPut, "/v1/namespaces/shop/placements/web", secret},
		{http.MethodPost, "/v1/simulations", `{"base":"` + secret + `"}`},
		{http.MethodDelete, "/v1/tokens/" + secret, ""},
	} {
		if status, text := s.request(request.method, request.path, token, request.body); status < 400 {
			t.Errorf("%s %s: %d %s", request.method, request.path, status, text)
		}
		s.request(request.method, request.path, secret, request.body) // refused, and not traced
	}
	last, trace := inTrace(t, 0)
	request, err := http.NewRequestWithContext(last, "S3CR3T", s.url+"/v1/clusters", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + token, "User-Agent": secret, "X-Forwarded-For": secret, "Tracestate": secret + "=" + secret, "Baggage": "a=" + secret} {
		request.Header.Set(name, value)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: tracing.Peer(transport)}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	requestIn(collector, trace, "other none")
	for _, name := range []string{"collect metrics", "log in to cloud", "probe cluster"} {
		reading := collector.Await(name, func(s otlptest.Span) bool { return s.Name == name })
		t.Logf("%s: %v", name, reading.Attributes)
	}
	collector.Await("a request to a cluster", func(s otlptest.Span) bool {
		return s.Client && s.ParentID == "" && s.Attributes["http.response.status_code"] == "403"
	})
	if got := collector.Headers().Get("Authorization"); got != "Bearer "+secret {
		t.Errorf("the collector got the header %q", got)
	}
	raw := strings.ToLower(collector.Raw())
	for _, hidden := range []string{secret, token, base64.StdEncoding.EncodeToString([]byte(secret))[:8]} {
		if at := strings.Index(raw, strings.ToLower(hidden)); at >= 0 {
			t.Errorf("a trace contains %q: …%q…", hidden, raw[max(0, at-200):min(len(raw), at+100)])
		}
	}
}

// The export must never slow down or stop anything.
func TestCollectorThatHangs(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() // connections are accepted by the operating system, and never answered
	c := testConfig(t.TempDir())
	c.TracingEndpoint = "http://" + listener.Addr().String()
	s := start(t, c)
	put(s, cluster("berlin"))
	for n := range 50 {
		if p := put(s, placement("shop", fmt.Sprint("p", n))); len(p.Status.Clusters) != 1 {
			t.Errorf("got %+v", p.Status)
		}
	}
	_, page := s.request(http.MethodGet, "/metrics", "", "")
	if !strings.Contains(page, "scheduler_trace_spans_exported_total 0\n") || strings.Contains(page, "scheduler_trace_spans_waiting 0\n") {
		t.Errorf("the metrics do not show that nothing is exported:\n%s", page)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

// The histograms of requests and of the store's transactions name a recorded trace, in the format that has exemplars.
func TestExemplars(t *testing.T) {
	collector := otlptest.NewHTTP(t)
	c := testConfig(t.TempDir())
	c.TracingEndpoint, c.TracingSampleRatio = collector.Endpoint, 0
	s := start(t, c)
	put(s, cluster("berlin"))
	_, trace := s.tracedWrites()()
	requestIn(collector, trace, putPlacement)
	lines := func(accept, of string) (lines []string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(body)) {
			if strings.HasPrefix(line, of+"_bucket") && strings.Contains(line, `# {trace_id="`+trace+`"}`) {
				lines = append(lines, line)
			}
		}
		return lines
	}
	for _, histogram := range []string{"scheduler_http_request_seconds", "scheduler_store_transaction_seconds"} {
		// A request is counted after it has been answered.
		eventually.True(t, histogram+" names the trace", func() bool { return len(lines("application/openmetrics-text; version=1.0.0", histogram)) > 0 })
		if plain := lines("text/plain", histogram); len(plain) > 0 {
			t.Errorf("the format without exemplars has %s", plain)
		}
	}
}
