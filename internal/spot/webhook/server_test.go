package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/serve"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/certtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// running starts a server that listens, and a client that trusts it.
func running(t *testing.T, cluster Cluster, logger *slog.Logger, adjust ...func(*Options)) (address string, client *http.Client, stop func() error) {
	t.Helper()
	certificate := certtest.SelfSigned(t, certtest.Loopback("webhook"))
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	options := Options{
		Listener: listener, TLS: &tls.Config{Certificates: []tls.Certificate{certificate.TLS()}}, Logger: logger,
		Clusters: func(name string) (Cluster, bool) { return cluster, name == "a" },
	}
	for _, f := range adjust {
		f(&options)
	}
	s, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: certificate.Pool(), MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	t.Cleanup(cancel)
	return "https://" + listener.Addr().String(), &http.Client{Transport: transport}, func() error {
		transport.CloseIdleConnections() // HTTP/2 gives other requests a second
		cancel()
		return <-ended
	}
}

func send(t *testing.T, client *http.Client, method, url, media string, body []byte) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", media)
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// TestOverTLS sends requests as API servers do. Without the secret, a client cannot tell whether the cluster exists.
func TestOverTLS(t *testing.T) {
	var logged bytes.Buffer
	address, client, stop := running(t, toSpot(), slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})))
	body, err := json.Marshal(reviewOf(t, admissionv1.Create, podOf(nil), nil))
	if err != nil {
		t.Fatal(err)
	}
	const asJSON = "application/json"
	for _, test := range []struct {
		name, method, path, media string
		want                      int
	}{
		{"valid", "POST", "/clusters/a/" + testSecret + "/pods?timeout=3s", asJSON, 200},
		{"with a character set", "POST", "/clusters/a/" + testSecret + "/pods", asJSON + "; charset=utf-8", 200},
		{"wrong secret", "POST", "/clusters/a/other/pods", asJSON, 404},
		{"prefix of the secret", "POST", "/clusters/a/s3c/pods", asJSON, 404},
		{"other cluster", "POST", "/clusters/b/" + testSecret + "/pods", asJSON, 404},
		{"other path", "POST", "/clusters/a/" + testSecret + "/nodes", asJSON, 404},
		{"no path", "POST", "/", asJSON, 404},
		{"GET", "GET", "/clusters/a/" + testSecret + "/pods", asJSON, 405},
		{"not JSON", "POST", "/clusters/a/" + testSecret + "/pods", "text/plain", 415},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, text := send(t, client, test.method, address+test.path, test.media, body)
			if code != test.want {
				t.Errorf("status %d, want %d: %s", code, test.want, text)
			}
			if code == 404 && text != "404 page not found\n" {
				t.Errorf("the answer reveals more than a missing page: %q", text)
			}
		})
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if strings.Contains(logged.String(), testSecret) {
		t.Errorf("the secret was logged: %s", &logged)
	}
}

// nobody is a cluster whose secret is not known yet.
type nobody struct{ Cluster }

func (nobody) Secret() string { return "" }

func TestEmptySecretRefusesRequests(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/clusters/a/%20/pods", strings.NewReader("{}"))
	r.SetPathValue("secret", "")
	if knows(nobody{}, "") {
		t.Error("a cluster without a secret accepts requests")
	}
	w := httptest.NewRecorder()
	serverOf(t, nobody{}).handler.ServeHTTP(w, r)
	if w.Code != http.StatusNotFound {
		t.Errorf("status %d", w.Code)
	}
}

// TestGracefulEnd answers what is under way when the server is asked to stop.
func TestGracefulEnd(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	cluster := &fakeCluster{assign: func(context.Context, Creation) Assignment {
		close(arrived)
		<-release
		return Assignment{Type: split.Spot, Label: defaultLabel}
	}}
	address, client, stop := running(t, cluster, nil)
	body, err := json.Marshal(reviewOf(t, admissionv1.Create, podOf(nil), nil))
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() {
		<-arrived
		go close(release)
		stopped <- stop()
	}()
	code, text := send(t, client, http.MethodPost, address+"/clusters/a/"+testSecret+"/pods", "application/json", body)
	if code != http.StatusOK || !strings.Contains(text, "JSONPatch") {
		t.Errorf("status %d: %s", code, text)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestSilentConnectionsDoNotBlockOthers opens more connections than are allowed.
func TestSilentConnectionsDoNotBlockOthers(t *testing.T) {
	limit := serve.NewLimit(serve.LimitOptions{PerClient: 4, RequestWithin: time.Hour})
	address, client, stop := running(t, toSpot(), nil, func(o *Options) { o.Connections = limit })
	var silent []net.Conn
	for range 40 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(address, "https://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		silent = append(silent, conn)
	}
	if code, text := send(t, client, http.MethodPost, address+"/nothing", "application/json", nil); code != http.StatusNotFound {
		t.Errorf("got %d %s, want 404", code, text)
	}
	for _, conn := range silent[:30] {
		_ = conn.SetReadDeadline(time.Now().Add(eventually.Limit))
		if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("more connections of one client are open than allowed")
		}
	}
	for _, conn := range silent {
		_ = conn.Close()
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(limit.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "scheduler_http_connections_evicted_total" {
			if m := family.GetMetric()[0]; len(family.GetMetric()) != 1 || m.GetCounter().GetValue() < 30 {
				t.Errorf("not closed to make room for others: %s", family)
			}
			return
		}
	}
	t.Error("no connection was closed to make room")
}

// TestListenerThatFails checks that Run returns the listener's error.
func TestListenerThatFails(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	certificate := certtest.SelfSigned(t, certtest.Loopback("webhook"))
	s, err := New(Options{
		Listener: listener, TLS: &tls.Config{Certificates: []tls.Certificate{certificate.TLS()}},
		Clusters: func(string) (Cluster, bool) { return nil, false },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "serve the webhook") {
		t.Errorf("got %v", err)
	}
}

func TestOptionsAreRequired(t *testing.T) {
	clusters := func(string) (Cluster, bool) { return nil, false }
	for name, o := range map[string]Options{
		"no listener": {TLS: &tls.Config{MinVersion: tls.VersionTLS12}, Clusters: clusters},
		"no TLS":      {Listener: nowhere{}, Clusters: clusters},
		"no clusters": {Listener: nowhere{}, TLS: &tls.Config{MinVersion: tls.VersionTLS12}},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: New() succeeded", name)
		}
	}
}

// TestBodies covers bodies that are not requests, or whose response could not be matched to a request.
func TestBodies(t *testing.T) {
	review := func(request string) string {
		return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":` + request + `}`
	}
	for _, test := range []struct {
		name, body string
		code       int
		uid        types.UID
	}{
		{"empty", "", 400, ""},
		{"not JSON", "<xml/>", 400, ""},
		{"no request", review("null"), 400, ""},
		{"no uid", review(`{"operation":"CREATE"}`), 400, ""},
		{"a uid of 300 characters", review(`{"uid":"` + strings.Repeat("u", 300) + `"}`), 400, ""},
		{"cut off", review(`{"uid":"u"}`)[:60], 400, ""},
		{"empty request", review(`{"uid":"u"}`), 200, "u"},
		{"numeric name before the uid", review(`{"name":7,"uid":"u"}`), 200, "u"},
		{"other version", strings.Replace(review(`{"uid":"u"}`), "/v1", "/v1beta1", 1), 200, "u"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, path := range []string{"pods", "pod-labels", "workloads", "probe"} {
				w := post(serverOf(t, toSpot()), path, test.body)
				if w.Code != test.code {
					t.Fatalf("%s: status %d, want %d: %s", path, w.Code, test.code, w.Body)
				}
				if test.uid == "" {
					continue
				}
				response := answerIn(t, w, test.uid)
				if understood := test.name == "empty request"; !response.Allowed || understood != (len(response.Warnings) == 0) {
					t.Errorf("%s: got %+v", path, response)
				}
			}
		})
	}
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestLimits checks that no cluster can use up the memory.
func TestLimits(t *testing.T) {
	s := serverOf(t, toSpot())
	do := func(ctx context.Context, length int64, body io.Reader) int {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/clusters/a/"+testSecret+"/pods", body)
		r.Header.Set("Content-Type", "application/json")
		r.ContentLength = length
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		return w.Code
	}
	if code := do(t.Context(), maxBody+1, zeros{}); code != http.StatusRequestEntityTooLarge {
		t.Errorf("body with a length that is too large: got %d, want 413", code)
	}
	if code := do(t.Context(), -1, zeros{}); code != http.StatusRequestEntityTooLarge {
		t.Errorf("endless body: got %d, want 413", code)
	}
	if err := s.placesOf("a").Acquire(t.Context(), maxOfCluster); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if code := do(gone, 2, strings.NewReader("{}")); code != http.StatusServiceUnavailable {
		t.Errorf("no capacity: got %d, want 503", code)
	}
	s.placesOf("a").Release(maxOfCluster)
	if code := do(t.Context(), 2, strings.NewReader("{}")); code != http.StatusBadRequest {
		t.Errorf("capacity again: got %d, want 400", code)
	}
}

// TestMetrics checks the counts of requests by result. Names invented by strangers do not become labels, and those of
// removed clusters disappear.
func TestMetrics(t *testing.T) {
	s := serverOf(t, toSpot())
	ask(t, s, "pods", reviewOf(t, admissionv1.Create, podOf(nil), nil))
	ask(t, s, "workloads", reviewOf(t, admissionv1.Create, deployment(1, nameEnabled, "yes"), nil))
	r := httptest.NewRequest(http.MethodPost, "/clusters/made-up/x/pods", strings.NewReader("{}"))
	s.handler.ServeHTTP(httptest.NewRecorder(), r)

	want := map[string]float64{
		"requests_total cluster= path=pods result=not_found":    1,
		"requests_total cluster=a path=pods result=patched":     1,
		"requests_total cluster=a path=workloads result=denied": 1,
		"duration_seconds cluster=a path=pods":                  1,
		"duration_seconds cluster=a path=workloads":             1,
	}
	if got := gathered(t, s); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	s.Forget("a")
	if got := gathered(t, s); len(got) != 1 {
		t.Errorf("metrics left: %v", got)
	}
}

// gathered returns all metrics of a server.
func gathered(t *testing.T, s *Server) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := strings.TrimPrefix(family.GetName(), "scheduler_spot_webhook_")
			for _, label := range m.GetLabel() {
				name += " " + label.GetName() + "=" + label.GetValue()
			}
			out[name] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return out
}

// TestFaultyCluster checks that a pod does not wait for an assignment that never comes.
func TestFaultyCluster(t *testing.T) {
	s := serverOf(t, &fakeCluster{assign: func(context.Context, Creation) Assignment {
		var none map[string]*Assignment
		return *none["x"]
	}})
	body, err := json.Marshal(reviewOf(t, admissionv1.Create, podOf(nil), nil))
	if err != nil {
		t.Fatal(err)
	}
	if w := post(s, "pods", string(body)); w.Code != http.StatusInternalServerError {
		t.Errorf("got %d %s, want 500", w.Code, w.Body)
	}
	if got := gathered(t, s); got["requests_total cluster=a path=pods result=failed"] != 1 {
		t.Errorf("unexpected counts %v", got)
	}
}
