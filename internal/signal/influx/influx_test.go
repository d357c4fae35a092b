package influx

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/pem"
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
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func provider(url string) *api.MetricsProvider {
	p := &api.MetricsProvider{Metadata: api.Metadata{Name: "influx"}, Spec: api.MetricsProviderSpec{
		Type: api.ProviderInflux, Influx: &api.InfluxSpec{URL: url, Token: api.NewSecret("krake:hush"), Org: "acme", Bucket: "krake/autogen"},
	}}
	p.SetDefaults()
	return p
}

func openAt(t *testing.T, p *api.MetricsProvider) *server {
	t.Helper()
	src, err := open(p, addresspolicy.OnLoopback(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(src.Close)
	return src
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

// table writes one table of annotated CSV, as InfluxDB does.
func table(kind, value, field, measurement string, tags ...string) string {
	var types, groups, names, values strings.Builder
	for i := 0; i < len(tags); i += 2 {
		types.WriteString(",string")
		groups.WriteString(",true")
		names.WriteString("," + tags[i])
		values.WriteString("," + tags[i+1])
	}
	return fmt.Sprintf("#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,%s,string,string%s\r\n"+
		"#group,false,false,true,true,false,false,true,true%s\r\n#default,_result,,,,,,,%s\r\n"+
		",result,table,_start,_stop,_time,_value,_field,_measurement%s\r\n"+
		",,0,2024-01-01T00:00:00Z,2024-01-01T01:00:00Z,2024-01-01T00:59:00Z,%s,%s,%s%s\r\n\r\n",
		kind, types.String(), groups.String(), strings.Repeat(",", len(tags)/2), names.String(), value, field, measurement, values.String())
}

// fluxServer responds to queries by the measurements in them.
type fluxServer struct {
	tables  map[string]string // by measurement
	refused map[string]string // measurements that make the query fail, with the body of the 500 response
	large   map[string]bool   // measurements whose response is too large

	mu       sync.Mutex
	requests []string
}

func (f *fluxServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct{ Query string }
	_ = json.NewDecoder(r.Body).Decode(&body)
	f.mu.Lock()
	f.requests = append(f.requests, body.Query)
	f.mu.Unlock()
	has := func(measurement string) bool {
		return strings.Contains(body.Query, "r._measurement == "+fluxString(measurement))
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	for measurement, message := range f.refused {
		if has(measurement) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			w.WriteHeader(500)
			_, _ = io.WriteString(w, message)
			return
		}
	}
	for measurement := range f.large {
		if has(measurement) {
			row := table("double", "1", "value", measurement, "pad", strings.Repeat("x", 1<<20))
			for range 2 * source.MaxBody >> 20 {
				if _, err := io.WriteString(w, row); err != nil {
					return
				}
			}
		}
	}
	for measurement, text := range f.tables {
		if has(measurement) {
			_, _ = io.WriteString(w, text)
		}
	}
	_, _ = io.WriteString(w, "\r\n")
}

func (f *fluxServer) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.requests
	f.requests = nil
	return taken
}

// TestOneRequestForAllQueries also checks that each query gets its own series.
func TestOneRequestForAllQueries(t *testing.T) {
	f := &fluxServer{tables: map[string]string{
		"heat": table("double", "3", "value", "heat", "zone", "c") + table("double", "1", "value", "heat", "zone", "a") +
			table("double", "2", "value", "heat", "zone", "b", "building", "7"),
		"fields":  table("long", "2", "b", "fields") + table("unsignedLong", "1", "a", "fields"),
		"nan":     table("double", "NaN", "value", "nan"),
		"inf":     table("double", "+Inf", "value", "inf"),
		"null":    table("double", "", "value", "null"),
		"text":    table("string", "12", "value", "text"),
		"truth":   table("boolean", "true", "value", "truth"),
		"time":    table("dateTime:RFC3339", "2024-01-01T00:00:00Z", "value", "time"),
		"default": strings.Replace(table("double", "", "value", "default"), "#default,_result,,,,,,,", "#default,_result,,,,,6,,", 1),
	}}
	want := map[string]any{
		"heat": 2.0, `heat{zone="a"}`: 1.0, `heat{zone="c"}`: 3.0, `heat.value{building="7"}`: 2.0, `heat{zone="d"}`: `tag zone="d"`,
		"fields": 1.0, "fields.b": 2.0, "fields.c": `field "c"; a measurement with a dot in its name must be in quotes: "fields.c"`,
		"nan": math.NaN(), "inf": math.Inf(1), "default": 6.0, "null": "null.value is null", "text": "text.value is a text", "truth": "is the boolean true",
		"time": "a type that is not a number", "absent": `no value in the last hour in bucket "krake/autogen": measurement "absent"`,
		"{}": "a measurement is missing",
	}
	src := openAt(t, provider(serve(t, f.ServeHTTP).URL))
	var queries []string
	for query := range want {
		queries = append(queries, query)
	}
	readings, err := src.Read(t.Context(), queries)
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range want {
		got := readings[query]
		switch want := want.(type) {
		case float64:
			if got.Err != nil || got.Value != want && !(math.IsNaN(want) && math.IsNaN(got.Value)) {
				t.Errorf("%s: got %+v, want %v", query, got, want)
			}
		case string:
			check(t, got.Err, api.ReasonInvalidMetric, want)
		}
	}
	if sent := f.take(); len(sent) != 1 {
		t.Errorf("%d requests, want 1", len(sent))
	}
}

func check(t *testing.T, err error, reason, want string) {
	t.Helper()
	var e *source.Error
	if !errors.As(err, &e) || e.Reason != reason || !strings.Contains(e.Error(), want) {
		t.Errorf("got %#v, want %s with %q", err, reason, want)
	}
	if err != nil && strings.Contains(err.Error(), "hush") {
		t.Errorf("the error contains the token: %q", err)
	}
}

// TestBadQueriesAreFoundAndKeptApart: they cost their batch only once.
func TestBadQueriesAreFoundAndKeptApart(t *testing.T) {
	f := &fluxServer{
		tables:  map[string]string{},
		refused: map[string]string{"m13": `{"error":"panic: m13"}`, "m77": `{"code":"internal error","message":"runtime error: m77"}`},
		large:   map[string]bool{"m40": true},
	}
	var queries []string
	for i := range 100 {
		query := fmt.Sprintf("m%d", i)
		queries = append(queries, query)
		f.tables[query] = table("double", fmt.Sprint(i), "value", query)
	}
	src := openAt(t, provider(serve(t, f.ServeHTTP).URL))
	for round := range 2 {
		f.take()
		readings, err := src.Read(t.Context(), queries)
		if err != nil {
			t.Fatal(err)
		}
		for i, query := range queries {
			got := readings[query]
			switch query {
			case "m13":
				check(t, got.Err, api.ReasonInvalidMetric, "status 500: panic: m13")
			case "m77":
				check(t, got.Err, api.ReasonInvalidMetric, "status 500: runtime error: m77")
			case "m40":
				check(t, got.Err, api.ReasonInvalidMetric, "larger than 16 MiB")
			default:
				if got.Err != nil || got.Value != float64(i) {
					t.Errorf("%s: got %+v", query, got)
				}
			}
		}
		// The batch, two requests for each of the two bad queries: one on its own, and one to find out if others fail,
		// too, and one for the query with too large an answer.
		if sent := f.take(); round == 1 && len(sent) != 6 {
			t.Errorf("the second reading took %d requests, want 6", len(sent))
		}
	}
	f.large = nil
	if readings, err := src.Read(t.Context(), queries); err != nil || readings["m40"].Value != 40 || readings["m40"].Err != nil {
		t.Errorf("once it is small: got %+v, %v: one answer must cost one interval", readings["m40"], err)
	}
	for _, query := range queries {
		if k := src.known.Recall(query, time.Now()); k != (knowledge{}) {
			k.until = time.Now().Add(-time.Second)
			src.known.Learn(query, k)
		}
	}
	f.refused = nil
	f.take()
	if readings, err := src.Read(t.Context(), queries); err != nil || readings["m13"].Value != 13 || readings["m40"].Value != 40 {
		t.Errorf("repaired queries: got %+v, %+v, %v", readings["m13"], readings["m40"], err)
	}
	if sent := f.take(); len(sent) != 1 {
		t.Errorf("%d requests once all queries are valid again, want 1", len(sent))
	}
}

// TestProviderFailures checks that an error that affects all queries is returned for the provider.
func TestProviderFailures(t *testing.T) {
	answer := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	hang := func(r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	const asJSON, asCSV = "application/json; charset=utf-8", "text/csv; charset=utf-8"
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"401 of InfluxDB 1.8", answer(401, asJSON, `{"error":"authorization failed"}`), "status 401: are token, org and bucket right?: authorization failed"},
		{"401 of InfluxDB 2.x", answer(401, asJSON, `{"code":"unauthorized","message":"unauthorized access"}`), "right?: unauthorized access"},
		{"403", answer(403, asJSON, `{"code":"forbidden","message":"insufficient permissions"}`), "right?: insufficient permissions"},
		{"unknown bucket in InfluxDB 1.8", answer(500, asJSON, `{"error":"failed to initialize execute state: no database"}`), "no database"},
		{"unknown bucket in InfluxDB 2.x", answer(404, asJSON, `{"code":"not found","message":"could not find bucket \"krake/autogen\""}`), `could not find bucket "krake/autogen"`},
		{"syntax error", answer(400, asJSON, `{"code":"invalid","message":"compilation failed: error @1:1"}`), "compilation failed"},
		{"error with a status in its body", answer(502, asJSON, `{"StatusCode":200,"message":"x"}`), "status 502"},
		{"404 of another server", answer(404, "text/html", `<html>`), "status 404: does the url point at InfluxDB?"},
		{"503", answer(503, asJSON, `{"code":"unavailable","message":"busy"}`), "status 503: busy"},
		{"page", answer(200, "text/html", "<html>\n<body>\n"), "does the url point at InfluxDB?"},
		{"JSON", answer(200, asJSON, `{"results":[]}`), "does the url point at InfluxDB?"},
		{"rows without annotations", answer(200, asCSV, ",a,b\r\n,1,2\r\n"), "does the url point at InfluxDB?"},
		{"rows shorter than their header", answer(200, asCSV, "#datatype,string,long\r\n,result,table\r\n,x\r\n"), "does the url point at InfluxDB?"},
		{"unknown types", answer(200, asCSV, "#datatype,string,thing\r\n,result,table\r\n,x,y\r\n"), "does the url point at InfluxDB?"},
		{"text in a numeric column", answer(200, asCSV, table("double", "abc", "value", "a")), "does the url point at InfluxDB?"},
		{"open quote", answer(200, asCSV, "#datatype,\"string\r\n"), "does the url point at InfluxDB?"},
		{"error in the answer", answer(200, asCSV, "#datatype,string,string\r\n#group,true,true\r\n#default,,\r\n,error,reference\r\n,Failed to read,897\r\n"), "cannot evaluate the query: Failed to read,897"},
		{"redirect loop", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.String(), http.StatusTemporaryRedirect)
		}, "redirected more than 3 times"},
		{"cuts the connection", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		{"hangs", func(_ http.ResponseWriter, r *http.Request) { hang(r) }, "no response within 10s"},
		{"hangs in the body", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "#datatype,string,long\r\n,result,table\r\n,x")
			_ = http.NewResponseController(w).Flush()
			hang(r)
		}, "no response within 10s"},
		{"breaks off in the body", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, table("double", "1", "value", "a"))
		}, "unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			read := func(t *testing.T, src source.Source) {
				t.Helper()
				for _, queries := range [][]string{nil, {"a"}, {"a", "b"}} {
					ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
					readings, err := src.Read(ctx, queries)
					cancel()
					check(t, err, api.ReasonUnreachableMetricsProvider, c.want)
					for _, query := range queries {
						check(t, readings[query].Err, api.ReasonUnreachableMetricsProvider, c.want)
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
				src, err := open(provider("http://influx.test"), addresspolicy.OnLoopback(), faketime.Serve(t, c.handler))
				if err != nil {
					t.Fatal(err)
				}
				read(t, src)
			})
		})
	}
}

// TestEndlessAnswer checks that reading stops at the size limit, with and without compression.
func TestEndlessAnswer(t *testing.T) {
	for _, packed := range []bool{false, true} {
		t.Run(fmt.Sprintf("packed %v", packed), func(t *testing.T) {
			src := openAt(t, provider(serve(t, func(w http.ResponseWriter, r *http.Request) {
				out := io.Writer(w)
				if packed {
					w.Header().Set("Content-Encoding", "gzip")
					packer := gzip.NewWriter(w)
					defer packer.Close()
					out = packer
				}
				_, _ = io.WriteString(out, "#datatype,string,long\r\n,result,table\r\n")
				rows := strings.Repeat(","+strings.Repeat("x", 1000)+",1\r\n", 100)
				for n := 0; r.Context().Err() == nil && n < 4*source.MaxBody; n += len(rows) {
					_, _ = io.WriteString(out, rows)
				}
			}).URL))
			readings, err := src.Read(t.Context(), []string{"a"})
			if err != nil {
				t.Fatal(err)
			}
			check(t, readings["a"].Err, api.ReasonInvalidMetric, "larger than 16 MiB")
		})
	}
}

// TestInfluxQL checks that a 1.x server without Flux is queried in InfluxQL, with one request for all queries.
func TestInfluxQL(t *testing.T) {
	var broken atomic.Bool
	src := openAt(t, provider(serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Influxdb-Version", "1.6.7")
		user, password, _ := r.BasicAuth()
		switch {
		case r.URL.Path == "/ping":
			w.WriteHeader(http.StatusNoContent)
		case r.URL.Path != "/query":
			http.NotFound(w, r)
		case user != "krake" || password != "hush":
			w.WriteHeader(401)
			_, _ = io.WriteString(w, `{"error":"authorization failed"}`)
		case r.FormValue("db") != "krake" || r.FormValue("rp") != "autogen":
			_, _ = io.WriteString(w, `{"results":[{"statement_id":0,"error":"database not found: x"}]}`)
		case broken.Load():
			_, _ = io.WriteString(w, `<html>`)
		default:
			statements := strings.Split(r.FormValue("q"), ";\n")
			var results []string
			for i, statement := range statements {
				switch {
				case strings.Contains(statement, `"heat"`):
					results = append(results, `{"statement_id":0,"series":[
						{"name":"heat","tags":{"building":"","zone":"b"},"columns":["time","last_state","last_value"],"values":[["t",null,2]]},
						{"name":"heat","tags":{"building":"","zone":"a"},"columns":["time","last_state","last_value"],"values":[["t",null,1]]}]}`)
				case strings.Contains(statement, `"text"`):
					results = append(results, `{"series":[{"name":"text","columns":["time","last_value"],"values":[["t","abc"]]}]}`)
				case strings.Contains(statement, `"bad"`) && len(statements) > 1:
					_, _ = io.WriteString(w, `{"results":[{"statement_id":0,"error":"not executed"}]}`)
					return
				case strings.Contains(statement, `"bad"`):
					results = append(results, `{"statement_id":0,"error":"max-select-point limit exceeded"}`)
				default:
					results = append(results, fmt.Sprintf(`{"statement_id":%d}`, i))
				}
			}
			_, _ = io.WriteString(w, `{"results":[`+strings.Join(results, ",")+`]}`)
		}
	}).URL))
	for range 2 {
		readings, err := src.Read(t.Context(), []string{"heat", `heat{zone="b"}`, "absent", "text", "bad"})
		if err != nil {
			t.Fatal(err)
		}
		if readings["heat"].Value != 1 || readings[`heat{zone="b"}`].Value != 2 {
			t.Errorf("got %+v", readings)
		}
		check(t, readings["absent"].Err, api.ReasonInvalidMetric, "no value in the last hour")
		check(t, readings["text"].Err, api.ReasonInvalidMetric, "a text")
		check(t, readings["bad"].Err, api.ReasonInvalidMetric, "max-select-point limit exceeded")
	}
	if _, err := src.Read(t.Context(), nil); err != nil {
		t.Error(err)
	}
	broken.Store(true)
	_, err := src.Read(t.Context(), []string{"heat"})
	check(t, err, api.ReasonUnreachableMetricsProvider, "does the url point at InfluxDB?")
	if src.usesQL {
		t.Error("Flux is not tried again after a failure")
	}
}

// TestQueries checks the text of queries, and that no input can terminate a literal.
func TestQueries(t *testing.T) {
	for _, c := range []struct{ name, flux, influxQL string }{
		{"m", `r._measurement == "m"`, `SELECT last(*) FROM "m" WHERE time > now() - 1h GROUP BY *`},
		{
			`m.f{b="2",a="1"}`, `(r._measurement == "m" and r._field == "f" and r["a"] == "1" and r["b"] == "2")`,
			`SELECT last("f") AS "last_f" FROM "m" WHERE time > now() - 1h AND "a"::tag = '1' AND "b"::tag = '2' GROUP BY *`,
		},
		{
			`"a\"b\\c ${x} 'd'"{"t\"'"="\"'"}`, `(r._measurement == "a\"b\\c \x24{x} 'd'" and r["t\"'"] == "\"'")`,
			`SELECT last(*) FROM "a\"b\\c ${x} 'd'" WHERE time > now() - 1h AND "t\"'"::tag = '"\'' GROUP BY *`,
		},
	} {
		s, err := parse(c.name)
		if err != nil {
			t.Fatal(err)
		}
		want := "from(bucket: \"b\")\n  |> range(start: -1h)\n  |> filter(fn: (r) => " + c.flux + ")\n  |> last()"
		if got := fluxQuery("b", []term{{selector: s}}); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got := influxQLQuery(&s); got != c.influxQL {
			t.Errorf("got  %s\nwant %s", got, c.influxQL)
		}
	}
}

// TestConnection checks that certificate, headers and token reach the server, and that redirects are not followed.
func TestConnection(t *testing.T) {
	var seen http.Header
	var elsewhere atomic.Int64
	other := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		elsewhere.Add(1)
		_, _ = io.WriteString(w, table("double", "2", "value", "b"))
	})
	redirect := false
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header
		if redirect {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
			return
		}
		if r.URL.String() != "/sub/api/v2/query?org=acme" {
			t.Errorf("unexpected request %s", r.URL)
		}
		_, _ = io.WriteString(w, table("double", "1", "value", "a"))
	}))
	defer server.Close()
	p := provider(server.URL + "/sub/")
	p.Spec.CACert = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	p.Spec.Headers = map[string]api.Secret{"X-Tenant": api.NewSecret("acme")}
	src := openAt(t, p)
	readings, err := src.Read(t.Context(), []string{"a"})
	if err != nil || readings["a"].Value != 1 || seen.Get("Authorization") != "Token krake:hush" || seen.Get("X-Tenant") != "acme" {
		t.Errorf("got %+v, %v, headers %v", readings["a"], err, seen)
	}
	redirect = true
	readings, err = src.Read(t.Context(), []string{"b"})
	if err == nil || err.Error() != outbound.ErrRedirectedAway.Error() || elsewhere.Load() != 0 {
		t.Errorf("redirected: got %+v, %v, %d requests", readings["b"], err, elsewhere.Load())
	}
	redirect = false
	p.Spec.BearerToken = api.NewSecret("a.b.c")
	if _, err := openAt(t, p).Read(t.Context(), []string{"a"}); err != nil || seen.Get("Authorization") != "Bearer a.b.c" {
		t.Errorf("bearer token: %v, headers %v", err, seen)
	}
	p.Spec.CACert = ""
	if _, err := openAt(t, p).Read(t.Context(), []string{"a"}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("untrusted certificate: %v", err)
	}
}
