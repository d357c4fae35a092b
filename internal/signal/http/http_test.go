package http

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func provider(address, value string) *api.MetricsProvider {
	p := &api.MetricsProvider{Spec: api.MetricsProviderSpec{Type: api.ProviderHTTPJSON, HTTPJSON: &api.HTTPJSONSpec{URL: address, Value: value}}}
	p.SetDefaults()
	return p
}

// answering starts a server that returns the same document for every request.
func answering(t *testing.T, status int, body string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return server
}

// read reads one pointer.
func read(t *testing.T, address, pointer string) source.Reading {
	t.Helper()
	src, err := Type.New(provider(address, pointer), addresspolicy.OnLoopback())
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	query, err := Type.Query(&provider(address, pointer).Spec, "m", nil)
	if err != nil {
		t.Fatal(err)
	}
	readings, _ := src.Read(t.Context(), []string{query})
	reading, ok := readings[query]
	if !ok {
		t.Fatal("no reading")
	}
	return reading
}

func TestValues(t *testing.T) {
	const document = `{"a":{"b":[1,2.5,"3.25"],"":7,"x/y":8,"m~n":9,"~1":10},"text":"cheap","nan":"NaN","inf":"Infinity","hex":"0x10","no":null,"yes":true,"big":1e999,"bigger":"1e999","tiny":1e-999,"two":1,"two":2,"deep":{"a":1},"deep":5}`
	for _, c := range []struct {
		document, pointer string
		want              float64
		message           string
	}{
		{document, "/a/b/0", 1, ""},
		{document, "/a/b/1", 2.5, ""},
		{document, "/a/b/2", 3.25, ""},
		{document, "/a/", 7, ""},
		{document, "/a/x~1y", 8, ""},
		{document, "/a/m~0n", 9, ""},
		{document, "/a/~01", 10, ""},
		{document, "/tiny", 0, ""},
		{document, "/two", 2, ""},
		{document, "/deep", 5, ""},
		{" 42\n", "", 42, ""},
		{`"-1.5e3"`, "", -1500, ""},
		{`[[0,[3]]]`, "/0/1/0", 3, ""},
		{document, "/deep/a", 0, `there is no value at "/deep/a": "/deep" is a number without "a"`},
		{document, "/c/d", 0, `there is no value at "/c/d": "" is an object without "c"`},
		{document, "/a/b/3", 0, `"/a/b" is an array without "3"`},
		{document, "/a/b/01", 0, `is an array without "01"`},
		{document, "/a/b/-", 0, `is an array without "-"`},
		{document, "/text", 0, `the value at "/text" is a text; it should be a number`},
		{document, "/nan", 0, "is a text"}, {document, "/inf", 0, "is a text"}, {document, "/hex", 0, "is a text"},
		{document, "/no", 0, `the value at "/no" is null`},
		{document, "/yes", 0, "is the boolean true"},
		{document, "/a", 0, "is an object"}, {document, "/a/b", 0, "is an array"},
		{document, "/big", 0, "too large"}, {document, "/bigger", 0, "too large"},
		{document, "", 0, `the value at "" is an object`},
		{"", "", 0, "is not a JSON document"}, {"<html>", "/a", 0, "is not a JSON document"}, {`{"a":1} x`, "/a", 0, "is not a JSON document"},
		{`{"a":1}{"a":2}`, "/a", 0, "is not a JSON document"}, {`{"a":1,}`, "/a", 0, "is not a JSON document"},
		{`{"z":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `,"a":1}`, "/a", 0, "is not a JSON document"},
	} {
		t.Run(c.pointer+" "+c.message, func(t *testing.T) {
			got := read(t, answering(t, 200, c.document).URL+"/figures", c.pointer)
			var e *source.Error
			switch {
			case c.message == "" && (got.Err != nil || got.Value != c.want):
				t.Errorf("got %v, %v, want %v", got.Value, got.Err, c.want)
			case c.message != "" && (!errors.As(got.Err, &e) || e.Reason != api.ReasonInvalidMetric ||
				!strings.Contains(e.Message, c.message) || !strings.Contains(e.Message, "/figures")):
				t.Errorf("got %v, %v, want an error that says %q and where", got.Value, got.Err, c.message)
			}
		})
	}
}

func TestServersThatFail(t *testing.T) {
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://localhost:1/", http.StatusFound)
	}))
	defer away.Close()
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte(`{"a":`))
	}))
	defer cut.Close()
	huge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"z":[`))
		for range 17 << 10 {
			if _, err := w.Write([]byte(strings.Repeat("1,", 512))); err != nil {
				return
			}
		}
	}))
	defer huge.Close()
	for _, c := range []struct{ name, address, reason, message string }{
		{"not found", answering(t, 404, `{"a":1}`).URL, api.ReasonInvalidMetric, "status 404"},
		{"forbidden", answering(t, 403, `{"a":1}`).URL, api.ReasonUnreachableMetricsProvider, "credentials"},
		{"overloaded", answering(t, 503, `{"a":1}`).URL, api.ReasonUnreachableMetricsProvider, "status 503"},
		{"no content", answering(t, 204, "").URL, api.ReasonUnreachableMetricsProvider, "status 204"},
		{"redirected", away.URL, api.ReasonUnreachableMetricsProvider, "redirected to another host"},
		{"connection cut", cut.URL, api.ReasonUnreachableMetricsProvider, "unexpected EOF"},
		{"too large", huge.URL, api.ReasonInvalidMetric, "16 MiB"},
		{"blocked address", "http://169.254.169.254", api.ReasonUnreachableMetricsProvider, "169.254.169.254"},
		{"no server", "http://127.0.0.1:1", api.ReasonUnreachableMetricsProvider, "connection refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := read(t, c.address+"?key=hunter2", "/a")
			e, ok := errors.AsType[*source.Error](got.Err)
			if !ok || e.Reason != c.reason || !strings.Contains(e.Message, c.message) || strings.Contains(e.Error(), "hunter2") {
				t.Errorf("got %+v, want %s with %q", got.Err, c.reason, c.message)
			}
		})
	}
}

// A document is requested once, with the provider's headers, for any number of values in it.
func TestOneRequestForEachDocument(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked[r.URL.RequestURI()]++
		if r.Header.Get("Authorization") != "Bearer t" || r.Header.Get("X-Scope") != "shop" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]float64{"a": 1, "b": 2, "c": 3})
	}))
	defer server.Close()
	p := provider(server.URL, "")
	p.Spec.BearerToken, p.Spec.Headers = api.NewSecret("t"), map[string]api.Secret{"x-scope": api.NewSecret("shop")}
	src, err := Type.New(p, addresspolicy.OnLoopback())
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	readings, err := src.Read(t.Context(), []string{server.URL + "/1 /a", server.URL + "/1 /b", server.URL + "/1 /x", server.URL + "/2?q=1 /c"})
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]float64{"/1 /a": 1, "/1 /b": 2, "/2?q=1 /c": 3} {
		if got := readings[server.URL+query]; got.Err != nil || got.Value != want {
			t.Errorf("%s: got %+v", query, got)
		}
	}
	if got := readings[server.URL+"/1 /x"]; got.Err == nil {
		t.Error("a missing value was read")
	}
	if len(asked) != 2 || asked["/1"] != 1 || asked["/2?q=1"] != 1 {
		t.Errorf("unexpected requests %v", asked)
	}
	if readings, err = src.Read(t.Context(), nil); err != nil || len(readings) != 0 {
		t.Errorf("no queries: got %v, %v", readings, err)
	}
}

// A document that never arrives does not affect the others.
func TestSlowDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, err := open(provider("http://prices.test", ""), addresspolicy.OnLoopback(), roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/slow" {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			w := httptest.NewRecorder()
			_, _ = w.WriteString("1")
			return w.Result(), nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		queries := []string{"http://prices.test/slow "}
		for i := range 100 {
			queries = append(queries, fmt.Sprintf("http://prices.test/%d ", i))
		}
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			readings, err := src.Read(ctx, queries)
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			for i, query := range queries {
				if got := readings[query]; (got.Err != nil) != (i == 0) {
					t.Errorf("%s: got %+v", query, got)
				}
			}
		}
	})
}

// FuzzDocument checks that, for any response, a value is a finite number and equals the one that encoding/json finds.
func FuzzDocument(f *testing.F) {
	for _, body := range []string{`{"a":{"b":[1,"2"]}}`, `[1,2]`, `"x"`, `{"a":1,"a":{"b":3}}`, `{"a~b":1e999}`, `null`, `{"a":`, "\x00", `{"":{"":1}}`} {
		f.Add(body, "/a/b/0")
		f.Add(body, "")
		f.Add(body, "/")
	}
	f.Fuzz(func(t *testing.T, body, pointer string) {
		if pointer != "" && pointer[0] != '/' {
			return
		}
		document, err := values(strings.NewReader(body), []string{pointer, "/a", ""})
		if err != nil {
			if json.Valid([]byte(body)) {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		got, err := document.number(pointer)
		if err != nil {
			return
		}
		var whole any
		decoder := json.NewDecoder(strings.NewReader(body))
		decoder.UseNumber()
		if err := decoder.Decode(&whole); err != nil {
			t.Fatalf("%q: got %v, but %v", body, got, err)
		}
		for _, name := range steps(pointer) {
			switch at := whole.(type) {
			case map[string]any:
				whole = at[name]
			case []any:
				var i int
				if _, err := fmt.Sscan(name, &i); err != nil || fmt.Sprint(i) != name || i >= len(at) {
					t.Fatalf("%q: got %v at %q", body, got, pointer)
				}
				whole = at[i]
			default:
				t.Fatalf("%q: got %v at %q", body, got, pointer)
			}
		}
		want, err := json.Number(fmt.Sprint(whole)).Float64()
		if err != nil || got != want || math.IsInf(got, 0) || math.IsNaN(got) {
			t.Fatalf("%q: got %v at %q, want %v, %v", body, got, pointer, want, err)
		}
	})
}
