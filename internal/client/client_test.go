package client_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var eastKey = api.Key{Kind: api.KindCluster, Name: "east"}

// serve starts a server with one handler, and a client for it.
func serve(t *testing.T, handler http.HandlerFunc, change ...func(*client.Options)) *client.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	opts := client.Options{Endpoint: server.URL, MaxRetries: 2}
	for _, f := range change {
		f(&opts)
	}
	c, err := client.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); server.Close() })
	return c
}

// serveInBubble is serve over connections in memory: in a bubble of testing/synctest, time passes while client and
// server wait.
func serveInBubble(t *testing.T, handler http.HandlerFunc, change ...func(*client.Options)) *client.Client {
	t.Helper()
	opts := client.Options{Endpoint: "http://scheduler.test", MaxRetries: 2}
	for _, f := range change {
		f(&opts)
	}
	c, err := client.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	client.Through(c, faketime.Serve(t, handler))
	t.Cleanup(c.Close)
	return c
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client reports what is wrong
}

func problem(w http.ResponseWriter, p api.Problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client reports what is wrong
}

func east() *api.Cluster {
	return &api.Cluster{Kind: api.KindCluster, Metadata: api.Metadata{Name: "east"}}
}

func TestRequest(t *testing.T) {
	var got *http.Request
	var observed []client.Attempt
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(context.Background())
		w.Header().Set("Content-Encoding", "gzip")
		zip := gzip.NewWriter(w)
		_ = json.NewEncoder(zip).Encode(east())
		_ = zip.Close()
	}, func(o *client.Options) {
		o.Token, o.UserAgent = api.NewSecret("t0ken"), "test/1"
		o.Observe = func(_ context.Context, a client.Attempt) { observed = append(observed, a) }
	})
	object, err := c.Get(t.Context(), eastKey)
	if err != nil {
		t.Fatal(err)
	}
	if api.KeyOf(object) != eastKey {
		t.Errorf("got %s", api.KeyOf(object))
	}
	for header, want := range map[string]string{"Authorization": "Bearer t0ken", "User-Agent": "test/1", "Accept-Encoding": "gzip"} {
		if got.Header.Get(header) != want {
			t.Errorf("header %s is %q, want %q", header, got.Header.Get(header), want)
		}
	}
	if len(observed) != 1 || observed[0].Path != got.URL.Path || observed[0].Status != http.StatusOK || observed[0].Err != nil {
		t.Errorf("unexpected observation %+v", observed)
	}
	if got.URL.Path != "/v1/clusters/east" {
		t.Errorf("path %s, want /v1/clusters/east", got.URL.Path)
	}
}

func TestPutSendsSecretsAndPreconditions(t *testing.T) {
	provider := &api.MetricsProvider{
		Metadata: api.Metadata{Name: "prom", Namespace: "shop"},
		Spec: api.MetricsProviderSpec{
			Type: api.ProviderPrometheus, Prometheus: &api.PrometheusSpec{URL: "http://prom"},
			BearerToken: api.NewSecret("hush"), Headers: map[string]api.Secret{"X.Org": api.NewSecret("one")},
		},
	}
	provider.SetDefaults()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var sent struct {
			Spec struct {
				BearerToken string            `json:"bearer_token"`
				Headers     map[string]string `json:"headers"`
			} `json:"spec"`
			Status any `json:"status"`
		}
		if err := json.Unmarshal(body, &sent); err != nil {
			t.Error(err)
		}
		if sent.Spec.BearerToken != "hush" || sent.Spec.Headers["X.Org"] != "one" || sent.Status != nil {
			t.Errorf("unexpected body %s", body)
		}
		if r.URL.String() != "/v1/namespaces/shop/metrics-providers/prom?wait=3s" || r.Header.Get("If-Match") != `"42"` || r.Header.Get("If-None-Match") != "" {
			t.Errorf("unexpected URL %s or headers %v", r.URL, r.Header)
		}
		answer(w, http.StatusOK, provider)
	})
	wait := 3 * time.Second
	if _, err := c.Put(t.Context(), provider, client.PutOptions{IfMatch: "42", Wait: &wait}); err != nil {
		t.Fatal(err)
	}
}

func TestEncodeClusterSecret(t *testing.T) {
	cluster := east()
	cluster.Spec.Kubernetes = &api.KubernetesSpec{Kubeconfig: api.NewSecret("config")}
	data, err := client.Encode(cluster)
	if err != nil || !strings.Contains(string(data), `"kubernetes":{"kubeconfig":"config"}`) {
		t.Errorf("encoded as %s, %v", data, err)
	}
}

// Numbers are sent exactly, to the last digit. An object without secrets is sent the same way as one with secrets.
func TestEncodeWithoutSecrets(t *testing.T) {
	for _, info := range api.Kinds {
		object := info.New()
		*object.Meta() = api.Metadata{Name: "web", Namespace: "shop", Labels: map[string]string{"a": "<b>"}, ResourceVersion: "12"}
		object.SetDefaults()
		short, err := client.Encode(object)
		if err != nil {
			t.Fatal(err)
		}
		long, err := client.EncodeSecrets(object)
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if err := errors.Join(json.Unmarshal(short, &got), json.Unmarshal(long, &want)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: sent %s in place of %s", info.Kind, short, long)
		}
	}
}

func TestEncodeKeepsNumbers(t *testing.T) {
	for _, info := range api.Kinds {
		object := info.New()
		fillNumbers(reflect.ValueOf(object.SpecPart()).Elem())
		want, err := json.Marshal(object.SpecPart())
		if err != nil {
			t.Fatal(err)
		}
		data, err := client.Encode(object)
		if err != nil {
			t.Fatal(err)
		}
		var sent struct {
			Spec json.RawMessage `json:"spec"`
		}
		if err := json.Unmarshal(data, &sent); err != nil {
			t.Fatal(err)
		}
		a, errA := api.DecodeDocument(want)
		b, errB := api.DecodeDocument(sent.Spec)
		if errA != nil || errB != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s: sent\n%s\nwant\n%s", info.Kind, sent.Spec, want)
		}
	}
}

// fillNumbers sets every integer in a struct to a value that a float64 cannot represent.
func fillNumbers(v reflect.Value) {
	switch v.Kind() {
	case reflect.Int64:
		v.SetInt(9007199254740993)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillNumbers(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillNumbers(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillNumbers(v.Index(0))
	case reflect.Map:
		if v.Type().Elem() == reflect.TypeFor[api.Secret]() {
			return // has a text form of its own
		}
		value := reflect.New(v.Type().Elem()).Elem()
		fillNumbers(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("a").Convert(v.Type().Key()), value)
	default:
	}
}

func TestRetry(t *testing.T) {
	for _, test := range []struct {
		name     string
		status   int
		call     func(*client.Client) error
		attempts int32
		want     int // status of the error, 0 = success
	}{
		{"read retried after 503", 503, get, 2, 0},
		{"read retried after 429", 429, get, 2, 0},
		{"read retried after 502", 502, get, 2, 0},
		{"write retried after 503", 503, reschedule, 2, 0},
		{"write not retried after 504", 504, reschedule, 1, 504},
		{"read not retried after 500", 500, get, 1, 500},
		{"read not retried after 404", 404, get, 1, 404},
	} {
		t.Run(test.name, func(t *testing.T) {
			var attempts atomic.Int32
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if attempts.Add(1) == 1 {
					w.Header().Set("Retry-After", "0")
					problem(w, api.Problem{Title: "no", Status: test.status})
					return
				}
				answer(w, http.StatusOK, east())
			})
			err := test.call(c)
			if client.StatusOf(err) != test.want || (err != nil) != (test.want != 0) {
				t.Errorf("unexpected error %v", err)
			}
			if attempts.Load() != test.attempts {
				t.Errorf("%d attempts, want %d", attempts.Load(), test.attempts)
			}
		})
	}
}

func get(c *client.Client) error {
	_, err := c.Get(context.Background(), eastKey)
	return err
}

func reschedule(c *client.Client) error {
	_, err := c.Reschedule(context.Background(), api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"})
	return err
}

func TestRetriesRunOut(t *testing.T) {
	var attempts atomic.Int32
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		attempts.Add(1)
		w.Header().Set("Retry-After", "0")
		problem(w, api.Problem{Title: "Service Unavailable", Detail: "loading", Status: 503})
	})
	if err := get(c); client.StatusOf(err) != 503 || !strings.Contains(err.Error(), "loading") {
		t.Errorf("unexpected error %v", err)
	}
	if attempts.Load() != 3 {
		t.Errorf("%d attempts, want 3", attempts.Load())
	}
}

func TestContextEndsRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveInBubble(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := c.Get(ctx, eastKey); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
	})
}

func TestUnreachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close() // nothing listens there now
	c, err := client.New(client.Options{Endpoint: "http://" + address, MaxRetries: -1})
	if err != nil {
		t.Fatal(err)
	}
	var unreachable *client.UnreachableError
	if err := get(c); !errors.As(err, &unreachable) || !strings.Contains(err.Error(), address) {
		t.Errorf("unexpected error %v", err)
	}
}

func TestAttemptTimeout(t *testing.T) {
	release := make(chan struct{})
	c := serve(t, func(http.ResponseWriter, *http.Request) { <-release },
		func(o *client.Options) { o.RequestTimeout, o.MaxRetries = 30*time.Millisecond, -1 })
	err := get(c)
	close(release)
	var unreachable *client.UnreachableError
	if !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "within 30ms") {
		t.Errorf("unexpected error %v", err)
	}
}

func TestProblems(t *testing.T) {
	for _, test := range []struct {
		name, contentType, body string
		want                    string
	}{
		{"problem", "application/problem+json", `{"title":"Unprocessable","status":422,"errors":[{"field":"spec.zones[0]","message":"must not be empty"}]}`, "Unprocessable: spec.zones[0]: must not be empty"},
		{"text", "text/plain", "no such host\n", "Unprocessable Entity: no such host"},
		{"HTML page of a proxy", "text/html; charset=utf-8", "<html>…", "Unprocessable Entity"},
		{"invalid JSON", "application/json", `{"title":`, `Unprocessable Entity: {"title":`},
		{"empty body", "", "", "Unprocessable Entity"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.contentType)
				w.WriteHeader(http.StatusUnprocessableEntity)
				_, _ = io.WriteString(w, test.body)
			})
			err := get(c)
			var p *api.Problem
			if !errors.As(err, &p) || p.Status != 422 || err.Error() != test.want {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

func TestResponseLimit(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		cluster := east()
		cluster.Spec.Region = strings.Repeat("x", 5000)
		answer(w, http.StatusOK, cluster)
	}, func(o *client.Options) { o.MaxResponseBytes = 4096 })
	if err := get(c); err == nil || !strings.Contains(err.Error(), "more than 4096 bytes") {
		t.Errorf("unexpected error %v", err)
	}
}

func TestListPages(t *testing.T) {
	var queries []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.String())
		page := map[string]any{"items": []any{&api.Metric{Metadata: api.Metadata{Name: fmt.Sprint("m", len(queries))}}}}
		if r.URL.Query().Get("continue") == "" {
			page["continue"] = "next"
		}
		answer(w, http.StatusOK, page)
	})
	list := c.List(t.Context(), api.KindMetric, client.ListOptions{LabelSelector: "a=b", PageSize: 1})
	for range 2 { // each sequence of attempts starts from the first delay
		var names []string
		for object, err := range list {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, object.Meta().Name)
		}
		if len(names) != 2 {
			t.Errorf("listed %v, want two", names)
		}
	}
	if want := "/v1/metrics?all=true&continue=next&label_selector=a%3Db&limit=1"; queries[1] != want || queries[3] != want {
		t.Errorf("unexpected queries %v", queries)
	}
}

func TestListError(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		problem(w, api.Problem{Title: "Gone", Status: http.StatusGone})
	})
	for object, err := range c.List(t.Context(), api.KindPlacement, client.ListOptions{Namespace: "shop"}) {
		if object != nil || client.StatusOf(err) != http.StatusGone {
			t.Errorf("got %v, %v", object, err)
		}
	}
}

func TestOptions(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		opts client.Options
		want string
	}{
		{"no scheme", client.Options{Endpoint: "localhost:8665"}, "is not an address"},
		{"password", client.Options{Endpoint: "http://me:secret@host"}, "neither user"},
		{"missing CA file", client.Options{CACertFile: missing}, "CA certificate file"},
		{"no certificate in the CA file", client.Options{CACertFile: empty}, "no PEM certificate"},
		{"certificate without a key", client.Options{ClientCertFile: empty}, "needs both files"},
		{"invalid certificate", client.Options{ClientCertFile: empty, ClientKeyFile: empty}, "client certificate"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := client.New(test.opts)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("unexpected error %v", err)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, east()) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // one client rejects the certificate
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, trusted := range map[string]bool{ca: true, "": false} {
		c, err := client.New(client.Options{Endpoint: server.URL, CACertFile: file, MaxRetries: 50})
		if err != nil {
			t.Fatal(err)
		}
		err = get(c) // an untrusted certificate stays untrusted, so there must not be 50 retries
		c.Close()
		var unreachable *client.UnreachableError
		if trusted && err != nil || !trusted && !errors.As(err, &unreachable) {
			t.Errorf("trusted %v: unexpected error %v", trusted, err)
		}
	}
}

// cutter is a proxy that forwards the first request and drops the response.
func cutter(t *testing.T, backend string, lose func(http.ResponseWriter)) *client.Client {
	t.Helper()
	target, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int32
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		r.URL.Scheme, r.URL.Host, r.RequestURI = target.Scheme, target.Host, ""
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		if requests.Add(1) == 1 {
			_, _ = io.Copy(io.Discard, resp.Body)
			lose(w)
			return
		}
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	})
}

// An answer that is lost after the server has carried out the request, or a store that
// did not confirm the write, leaves no doubt: the client finds its own write.
func TestCutAfterCommit(t *testing.T) {
	t.Run("cut", func(t *testing.T) {
		testLostAnswer(t, func(http.ResponseWriter) { panic(http.ErrAbortHandler) })
	})
	t.Run("unconfirmed", func(t *testing.T) {
		testLostAnswer(t, func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "0")
			problem(w, api.Problem{Type: api.ProblemUnconfirmed, Status: http.StatusServiceUnavailable})
		})
	})
}

// A server that says that it has not written leaves no doubt either: who wrote the
// object meanwhile was somebody else.
func TestRefusedBeforeSomebodyElseWrote(t *testing.T) {
	requests := 0
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		switch {
		case r.Method == http.MethodGet:
			answer(w, http.StatusOK, east())
		case requests == 1:
			w.Header().Set("Retry-After", "0")
			problem(w, api.Problem{Type: api.ProblemUnavailable, Status: http.StatusServiceUnavailable})
		default:
			problem(w, api.Problem{Type: api.ProblemObjectExists, Status: http.StatusPreconditionFailed})
		}
	})
	if _, err := c.Put(t.Context(), east(), client.PutOptions{Create: true}); client.StatusOf(err) != http.StatusPreconditionFailed {
		t.Errorf("an object of another client was taken for the own one: %v", err)
	}
}

func testLostAnswer(t *testing.T, lose func(http.ResponseWriter)) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	var stored map[string]any
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut && stored != nil && r.Header.Get("If-None-Match") == "*":
			problem(w, api.Problem{Title: "Precondition Failed", Status: http.StatusPreconditionFailed})
		case r.Method == http.MethodPut:
			stored = nil
			_ = json.NewDecoder(r.Body).Decode(&stored)
			answer(w, http.StatusCreated, stored)
		case stored == nil:
			problem(w, api.Problem{Title: "Not Found", Status: http.StatusNotFound})
		case r.Method == http.MethodDelete:
			stored = nil
			w.WriteHeader(http.StatusNoContent)
		default:
			answer(w, http.StatusOK, stored)
		}
	}))
	t.Cleanup(backend.Close)
	cluster := east()
	cluster.Spec.Zones = []string{"a"}

	object, err := cutter(t, backend.URL, lose).Put(t.Context(), cluster, client.PutOptions{Create: true})
	if err != nil || api.KeyOf(object) != eastKey {
		t.Fatalf("create: %v, %v", object, err)
	}
	other := east()
	other.Spec.Zones = []string{"b"}
	if _, err := cutter(t, backend.URL, lose).Put(t.Context(), other, client.PutOptions{Create: true}); client.StatusOf(err) != http.StatusPreconditionFailed {
		t.Errorf("an object of another client was taken for the own one: %v", err)
	}
	if _, err := cutter(t, backend.URL, lose).Get(t.Context(), eastKey); err != nil {
		t.Errorf("read: %v", err)
	}
	if err := cutter(t, backend.URL, lose).Delete(t.Context(), eastKey); err != nil {
		t.Errorf("delete: %v", err)
	}
	if err := cutter(t, backend.URL, lose).Delete(t.Context(), api.Key{Kind: api.KindCluster, Name: "nobody"}); err != nil {
		t.Errorf("delete of an object that may have existed: %v", err)
	}
}

func TestDeleteOfNothing(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { problem(w, api.Problem{Title: "Not Found", Status: 404}) })
	if err := c.Delete(t.Context(), eastKey); !client.IsNotFound(err) {
		t.Errorf("error %v, want not found", err)
	}
}

func TestGetNewer(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("resource_version") == "7" && r.URL.Query().Get("wait") == "5s" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		answer(w, http.StatusOK, east())
	})
	if object, err := c.GetNewer(t.Context(), eastKey, "7", 5*time.Second); err != nil || api.KeyOf(object) != eastKey {
		t.Errorf("got %v, %v", object, err)
	}
}

// A name that would lead to another path is refused before it is asked for.
func TestNamesStayInTheirPlace(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("unexpected request %s", r.URL)
		w.WriteHeader(http.StatusTeapot)
	})
	for _, name := range []string{"", "..", "../metrics", "a?b", "a#b"} {
		_, err := c.Get(t.Context(), api.Key{Kind: api.KindCluster, Name: name})
		if err == nil || !strings.Contains(err.Error(), "a name in it") {
			t.Errorf("%q: unexpected error %v", name, err)
		}
	}
}

// Secrets to keep are left out of the request, and secrets to remove are sent empty.
func TestEncodeKeptAndTakenSecrets(t *testing.T) {
	provider := &api.MetricsProvider{Metadata: api.Metadata{Name: "p"}, Spec: api.MetricsProviderSpec{
		Type: api.ProviderInflux, Influx: &api.InfluxSpec{URL: "http://i", Bucket: "b"},
		Headers: map[string]api.Secret{"X-A": api.WithheldSecret()},
	}}
	for _, test := range []struct {
		takeAway []string
		want     string
	}{
		{nil, `"headers":{"X-A":null}`},
		{[]string{"spec.influx.token", "spec.bearer_token"}, `"bearer_token":"","headers":{"X-A":null},"influx":{"bucket":"b","token":"","url":"http://i"}`},
		{[]string{"spec.headers"}, `"headers":{}`},
	} {
		var body []byte
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ = io.ReadAll(r.Body)
			answer(w, http.StatusOK, provider)
		})
		if _, err := c.Put(t.Context(), provider, client.PutOptions{TakeAway: test.takeAway}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(body), test.want) {
			t.Errorf("got %s, want %s in it", body, test.want)
		}
	}
}
