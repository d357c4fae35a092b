package prometheus

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a query API that knows some expressions. It splits a batch by the text of expression(), and fails the batch
// if one of its queries is bad, as Prometheus does.
type fake struct {
	mu       sync.Mutex
	requests []string
	vectors  map[string][]string // query -> samples `labels|value`
	scalars  map[string]string
	bad      map[string]string // query -> message, HTTP 400
	unable   map[string]string // query -> message, HTTP 422
	raw      map[string]string // query -> response
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	expression := r.FormValue("query")
	f.mu.Lock()
	f.requests = append(f.requests, expression)
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if raw, ok := f.raw[expression]; ok {
		_, _ = io.WriteString(w, raw)
		return
	}
	if value, ok := f.scalars[expression]; ok {
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"scalar","result":[1,%q]}}`, value)
		return
	}
	var samples []string
	parts := strings.Split(expression, "label_replace(")
	if len(parts) == 1 {
		parts = []string{"", "(" + expression + "\n"}
	}
	for _, part := range parts[1:] {
		query, rest, _ := strings.Cut(part, "\n")
		query, isScalar := strings.CutPrefix(query, "vector(")
		if !isScalar {
			query = strings.TrimPrefix(query, "(")
		}
		number := ""
		if fields := strings.Split(rest, `"`); len(fields) > 3 {
			number = fields[3]
		}
		if message, ok := f.bad[query]; ok {
			f.refuse(w, http.StatusBadRequest, "bad_data", message)
			return
		}
		if message, ok := f.unable[query]; ok {
			f.refuse(w, http.StatusUnprocessableEntity, "execution", message)
			return
		}
		if value, ok := f.scalars[query]; ok {
			if !isScalar {
				f.refuse(w, http.StatusBadRequest, "bad_data", "expected type instant vector in call to function \"label_replace\", got scalar")
				return
			}
			samples = append(samples, sample("", number, value))
		}
		for _, s := range f.vectors[query] {
			labels, value, _ := strings.Cut(s, "|")
			samples = append(samples, sample(labels, number, value))
		}
	}
	fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(samples, ","))
}

func sample(labels, number, value string) string {
	metric := map[string]string{}
	for pair := range strings.FieldsSeq(labels) {
		name, v, _ := strings.Cut(pair, "=")
		metric[name] = v
	}
	if number != "" {
		metric[mark] = number
	}
	text, _ := json.Marshal(metric)
	return fmt.Sprintf(`{"metric":%s,"value":[1,%q]}`, text, value)
}

func (f *fake) refuse(w http.ResponseWriter, status int, kind, message string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"status":"error","errorType":%q,"error":%q}`, kind, message)
}

func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.requests)
}

func provider(url string) *api.MetricsProvider {
	p := &api.MetricsProvider{Metadata: api.Metadata{Name: "prom"}, Spec: api.MetricsProviderSpec{
		Type: api.ProviderPrometheus, Prometheus: &api.PrometheusSpec{URL: url}, Timeout: "20s",
	}}
	p.SetDefaults()
	return p
}

func openAt(t *testing.T, p *api.MetricsProvider) source.Source {
	t.Helper()
	src, err := Type.New(p, addresspolicy.OnLoopback())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(src.Close)
	return src
}

func serve(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

func (f *fake) open(t *testing.T) source.Source { return openAt(t, provider(serve(t, f).URL)) }

func TestOneRequestForAllQueries(t *testing.T) {
	f := &fake{vectors: map[string][]string{}}
	var queries []string
	for i := range 300 {
		query := fmt.Sprintf("metric_%d", i)
		queries = append(queries, query)
		f.vectors[query] = []string{fmt.Sprintf("|%d", i)}
	}
	readings, err := f.open(t).Read(t.Context(), queries)
	if err != nil {
		t.Fatal(err)
	}
	for i, query := range queries {
		if got := readings[query]; got.Err != nil || got.Value != float64(i) {
			t.Fatalf("%s: got %+v, want %d", query, got, i)
		}
	}
	if f.count() != 1 {
		t.Errorf("%d requests for 300 queries, want 1", f.count())
	}
}

func TestBatchesKeepToTheirLimits(t *testing.T) {
	many := make([]term, batchQueries*2+1)
	for i := range many {
		many[i] = term{number: i, query: "m"}
	}
	long := make([]term, 40)
	for i := range long {
		long[i] = term{number: i, query: strings.Repeat("x", 4096)}
	}
	for _, terms := range [][]term{many, long} {
		next := 0
		for _, batch := range split(terms) {
			if len(batch) > batchQueries || len(expression(batch)) > batchBytes {
				t.Errorf("batch of %d queries and %d bytes", len(batch), len(expression(batch)))
			}
			for _, term := range batch {
				if term.number != next {
					t.Fatalf("query %d is at position %d", term.number, next)
				}
				next++
			}
		}
		if next != len(terms) {
			t.Errorf("%d of %d queries are in batches", next, len(terms))
		}
	}
}

func TestAnswers(t *testing.T) {
	f := &fake{
		vectors: map[string][]string{
			"one":       {"|2.5"},
			"several":   {"pod=b|2", "pod=a zone=z|1", "pod=c|3"},
			"negative":  {"|-7"},
			"nan":       {"|NaN"},
			"inf":       {"|+Inf"},
			"big":       {"|1e308"},
			"commented": {"|4"},
		},
		scalars: map[string]string{"scalar(x)": "49.5"},
		bad:     map[string]string{"up{": "1:4: parse error: unexpected end of input inside braces", "x[5m": "unclosed"},
		unable:  map[string]string{"a / b": "many-to-many matching not allowed"},
		raw: map[string]string{
			"x[5m]":   `{"status":"success","data":{"resultType":"matrix","result":[]}}`,
			`"text"`:  `{"status":"success","data":{"resultType":"string","result":[1,"text"]}}`,
			"unknown": `{"status":"success","data":{"resultType":"other","result":[]}}`,
		},
	}
	f.bad["x[5m]"], f.bad[`"text"`] = "expected type instant vector", "expected type instant vector"
	for _, c := range []struct {
		query string
		want  float64
		err   string
	}{
		{"one", 2.5, ""},
		{"several", 1, ""},
		{"negative", -7, ""},
		{"nan", math.NaN(), ""},
		{"inf", math.Inf(1), ""},
		{"big", 1e308, ""},
		{"commented", 4, ""},
		{"scalar(x)", 49.5, ""},
		{"absent", 0, "no result"},
		{"up{", 0, "unexpected end of input"},
		{"a / b", 0, "many-to-many"},
		{"x[5m]", 0, "range of values"},
		{`"text"`, 0, "a string"},
	} {
		t.Run(c.query, func(t *testing.T) {
			// Read twice: what is learned from the first reading must not change the result.
			src := f.open(t)
			for range 2 {
				readings, err := src.Read(t.Context(), []string{c.query, "one"})
				if err != nil {
					t.Fatal(err)
				}
				if got := readings["one"]; got.Err != nil || got.Value != 2.5 {
					t.Errorf("the other query: got %+v", got)
				}
				got := readings[c.query]
				if c.err == "" {
					if got.Err != nil || got.Value != c.want && !(math.IsNaN(got.Value) && math.IsNaN(c.want)) {
						t.Errorf("got %+v, want %v", got, c.want)
					}
					continue
				}
				var e *source.Error
				if !errors.As(got.Err, &e) || e.Reason != api.ReasonInvalidMetric || !strings.Contains(e.Error(), c.err) {
					t.Errorf("got %#v, want InvalidMetric with %q", got.Err, c.err)
				}
			}
		})
	}
}

func TestBadQueriesAreFoundOnceAndThenLeftOut(t *testing.T) {
	f := &fake{vectors: map[string][]string{}, bad: map[string]string{}, scalars: map[string]string{"time()": "5"}}
	queries := []string{"time()"}
	for i := range 200 {
		query := fmt.Sprintf("m%d", i)
		queries = append(queries, query)
		if i%67 == 1 {
			f.bad[query] = "parse error"
		} else {
			f.vectors[query] = []string{fmt.Sprintf("|%d", i)}
		}
	}
	src := f.open(t)
	for round := range 2 {
		before := f.count()
		readings, err := src.Read(t.Context(), queries)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			query := fmt.Sprintf("m%d", i)
			got := readings[query]
			if _, isBad := f.bad[query]; isBad != (got.Err != nil) || !isBad && got.Value != float64(i) {
				t.Fatalf("%s: got %+v", query, got)
			}
		}
		if got := readings["time()"]; got.Err != nil || got.Value != 5 {
			t.Fatalf("time(): got %+v", got)
		}
		if sent := f.count() - before; round == 1 && sent != 1 {
			t.Errorf("the second reading took %d requests, want 1", sent)
		}
	}
}

func TestRefusedQueryIsTriedAgainLater(t *testing.T) {
	f := &fake{vectors: map[string][]string{"new_function(x)": {"|1"}}}
	src := f.open(t).(*server)
	src.known.Learn("new_function(x)", knowledge{until: time.Now().Add(-time.Second), rejected: source.Invalid("unknown function")})
	readings, err := src.Read(t.Context(), []string{"new_function(x)"})
	if got := readings["new_function(x)"]; err != nil || got.Err != nil || got.Value != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestQueryCannotAnswerForAnother(t *testing.T) {
	hostile := `up), "scheduler_query", "1", "", "") or label_replace((vector(666)`
	f := &fake{vectors: map[string][]string{"honest": {"|1"}}, bad: map[string]string{}}
	readings, err := f.open(t).Read(t.Context(), []string{hostile, "honest"})
	if err != nil || readings["honest"].Value != 1 || readings["honest"].Err != nil {
		t.Fatalf("got %+v, %v", readings["honest"], err)
	}
	for _, request := range f.requests {
		if strings.Contains(request, hostile) && request != hostile {
			t.Errorf("the hostile query is part of a batch: %s", request)
		}
	}
}

func TestEnclosed(t *testing.T) {
	for query, want := range map[string]bool{
		`up`: true, `sum(rate(x{a="b"}[5m])) by (c)`: true, `x{a=")"}`: true, "x{a=`\\`}": true, `x{a="\")"}`: true,
		"up # and )": true, "up # (\n": true, "(up # )\n)": true, `x{a='"'}`: true, `{"a.b"}`: true,
		`up) or (x`: false, `(up`: false, `x{a="b}`: false, `(]`: false, "x{a=\"\n\"}": false, "(up # )": false, `x{a="\"}`: false,
	} {
		if got := enclosed(query); got != want {
			t.Errorf("enclosed(%q) = %v, want %v", query, got, want)
		}
	}
}

func TestProviderFailures(t *testing.T) {
	// A server notices that its client is gone only after reading the body.
	hang := func(r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"500", status(500), "server error: 500"},
		{"503", status(503), "server error: 503"},
		{"401", status(401), "client error: 401"},
		{"404", status(404), "client error: 404"},
		{"403, also for GET", status(403), "client error: 403"},
		{"400 of another server", status(400), "client error"},
		{"not JSON", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, "does the url point at Prometheus"},
		{"empty body", func(http.ResponseWriter, *http.Request) {}, "does the url point at Prometheus"},
		{"another API", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"status":"success"}`) }, "does the url point at Prometheus"},
		{"error with status 200", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"status":"error","errorType":"internal","error":"boom"}`)
		}, "Prometheus"},
		{"scalar as the result of a batch", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}`)
		}, "not a result of the query API"},
		{"redirect loop", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		}, "redirected more than 3 times"},
		{"hangs", func(_ http.ResponseWriter, r *http.Request) { hang(r) }, "no response within 20s"},
		{"hangs in the body", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"status":`)
			w.(http.Flusher).Flush()
			hang(r)
		}, "no response within 20s"},
		{"cuts the connection", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			read := func(t *testing.T, src source.Source) {
				t.Helper()
				for _, queries := range [][]string{nil, {"a", "b"}} {
					ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
					readings, err := src.Read(ctx, queries)
					cancel()
					if queries == nil && c.name == "scalar as the result of a batch" {
						continue
					}
					check(t, err, c.want)
					for _, query := range queries {
						check(t, readings[query].Err, c.want)
					}
				}
			}
			if !strings.HasPrefix(c.name, "hangs") {
				s := httptest.NewServer(c.handler)
				defer s.Close()
				read(t, openAt(t, provider(s.URL)))
				return
			}
			// The time is up when both ends wait for each other.
			synctest.Test(t, func(t *testing.T) {
				src, err := open(provider("http://prometheus.test"), addresspolicy.OnLoopback(), faketime.Serve(t, c.handler))
				if err != nil {
					t.Fatal(err)
				}
				read(t, src)
			})
		})
	}
}

func check(t *testing.T, err error, want string) {
	t.Helper()
	var e *source.Error
	if !errors.As(err, &e) || e.Reason != api.ReasonUnreachableMetricsProvider || !strings.Contains(e.Error(), want) {
		t.Errorf("got %#v, want UnreachableMetricsProvider with %q", err, want)
	}
}

func TestRefusedConnection(t *testing.T) {
	_, err := openAt(t, provider("http://"+proxytest.FreeAddress(t))).Read(t.Context(), []string{"a"})
	check(t, err, "connection refused")
}

func TestUnknownHostIsNamed(t *testing.T) {
	_, err := openAt(t, provider("http://prometheus.invalid:9090")).Read(t.Context(), nil)
	check(t, err, `"prometheus.invalid"`)
}

// TestAnswersAboveTheLimit checks that the size limit applies after decompression, and that one expression with a huge
// response does not affect the others, nor its own next reading.
func TestAnswersAboveTheLimit(t *testing.T) {
	for _, zipped := range []bool{false, true} {
		t.Run(fmt.Sprintf("gzip=%v", zipped), func(t *testing.T) {
			f := &fake{vectors: map[string][]string{"good": {"|1"}, "huge": {"|2"}}}
			var shrunk atomic.Bool
			src := openAt(t, provider(serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if shrunk.Load() || !strings.Contains(r.FormValue("query"), "huge") {
					f.ServeHTTP(w, r)
					return
				}
				var out io.Writer = w
				if zipped {
					w.Header().Set("Content-Encoding", "gzip")
					z := gzip.NewWriter(w)
					defer z.Close()
					out = z
				}
				block := []byte(strings.Repeat(" ", 1<<20))
				for range 64 {
					if _, err := out.Write(block); err != nil {
						return
					}
				}
			})).URL))
			readings, err := src.Read(t.Context(), []string{"huge", "good"})
			if err != nil || readings["good"].Err != nil || readings["good"].Value != 1 {
				t.Fatalf("good: got %+v, %v", readings["good"], err)
			}
			var e *source.Error
			if !errors.As(readings["huge"].Err, &e) || e.Reason != api.ReasonInvalidMetric || !strings.Contains(e.Error(), "larger than 16 MiB") {
				t.Errorf("huge: got %#v", readings["huge"].Err)
			}
			shrunk.Store(true)
			readings, err = src.Read(t.Context(), []string{"huge", "good"})
			if err != nil || readings["huge"].Err != nil || readings["huge"].Value != 2 {
				t.Errorf("huge, once it is small: got %+v, %v: one answer must cost one interval", readings["huge"], err)
			}
		})
	}
}

func TestHeadersGoToTheOriginOnly(t *testing.T) {
	var mu sync.Mutex
	atTarget := 0
	target := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		atTarget++
	}))
	var atOrigin []http.Header
	origin := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		atOrigin = append(atOrigin, r.Header.Clone())
		mu.Unlock()
		http.Redirect(w, r, target.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	p := provider(origin.URL)
	p.Spec.BearerToken = api.NewSecret("hush")
	p.Spec.Headers = map[string]api.Secret{"x-scope-orgid": api.NewSecret("tenant")}
	if _, err := openAt(t, p).Read(t.Context(), []string{"m"}); err == nil || err.Error() != outbound.ErrRedirectedAway.Error() {
		t.Fatalf("got %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if atOrigin[0].Get("Authorization") != "Bearer hush" || atOrigin[0].Get("X-Scope-Orgid") != "tenant" {
		t.Errorf("headers at the origin: %v", atOrigin[0])
	}
	if atTarget != 0 {
		t.Errorf("%d requests to another host", atTarget)
	}
}

func TestTLS(t *testing.T) {
	f := &fake{vectors: map[string][]string{"m": {"|1"}}}
	s := httptest.NewUnstartedServer(f)
	s.Config.ErrorLog = nil
	s.StartTLS()
	t.Cleanup(s.Close)
	for _, c := range []struct {
		name string
		set  func(*api.MetricsProviderSpec)
		want string
	}{
		{"not trusted", func(*api.MetricsProviderSpec) {}, "certificate"},
		{"insecure_skip_verify", func(s *api.MetricsProviderSpec) { s.InsecureSkipVerify = true }, ""},
		{"ca_cert", func(spec *api.MetricsProviderSpec) { spec.CACert = pemOf(s) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := provider(s.URL)
			c.set(&p.Spec)
			readings, err := openAt(t, p).Read(t.Context(), []string{"m"})
			if c.want != "" {
				check(t, err, c.want)
			} else if err != nil || readings["m"].Value != 1 {
				t.Errorf("got %+v, %v", readings["m"], err)
			}
		})
	}
}

func TestUnusedQueriesAreDropped(t *testing.T) {
	src := (&fake{}).open(t).(*server)
	for i := range 5000 {
		src.known.Learn(fmt.Sprint("q", i), knowledge{scalar: true})
	}
	src.known.Forget([]string{"q7", "other"})
	if now := time.Now(); !src.known.Recall("q7", now).scalar || src.known.Recall("q8", now).scalar {
		t.Error("a query in use was forgotten, or another one was not")
	}
}

func TestProvidersThatCannotBeOpened(t *testing.T) {
	for _, c := range []struct {
		change func(*api.MetricsProviderSpec)
		want   string
	}{
		{func(s *api.MetricsProviderSpec) { s.Prometheus = nil }, "prometheus is required"},
		{func(s *api.MetricsProviderSpec) { s.CACert = "no certificate" }, "ca_cert contains no PEM"},
		{func(s *api.MetricsProviderSpec) { s.Prometheus = &api.PrometheusSpec{URL: "http://a b/%"} }, "is not an address"},
	} {
		p := provider("http://prometheus.test")
		c.change(&p.Spec)
		if _, err := Type.New(p, addresspolicy.OnLoopback()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}
