package ksql

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// standIn responds like a ksqlDB that has a table METRICS with the columns NAME and VALUE, as in the REST API's
// documentation for /query, /query-stream, /info and errors.
type standIn struct {
	rows     [][2]string // name, and value as JSON
	noIn     bool        // an older server: WHERE accepts only one key
	noQuery  bool        // a newer server: only /query-stream
	asJSON   bool        // /query-stream responds with one array
	mu       sync.Mutex
	requests []string // path and statement
}

var (
	oneKey   = regexp.MustCompile(`^SELECT VALUE FROM METRICS WHERE NAME = ('(?:[^']|'')*');$`)
	manyKeys = regexp.MustCompile(`^SELECT VALUE, NAME FROM METRICS WHERE NAME IN \(('(?:[^']|'')*'(?:, '(?:[^']|'')*')*)\);$`)
	literal  = regexp.MustCompile(`'(?:[^']|'')*'`)
)

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct{ KSQL, SQL string }
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.mu.Lock()
	s.requests = append(s.requests, r.URL.Path+" "+body.KSQL+body.SQL)
	s.mu.Unlock()
	switch {
	case r.URL.Path == "/info":
		_, _ = io.WriteString(w, `{"KsqlServerInfo":{"version":"7.6.0","kafkaClusterId":"c","ksqlServiceId":"default_"}}`)
	case r.URL.Path == "/query" && s.noQuery:
		refuse(w, 404, 40400, "HTTP 404 Not Found")
	case r.URL.Path == "/query" && body.KSQL != "":
		s.answer(w, body.KSQL, true, true)
	case r.URL.Path == "/query-stream" && body.SQL != "":
		s.answer(w, body.SQL, s.asJSON, false)
	default:
		refuse(w, 404, 40400, "HTTP 404 Not Found")
	}
}

func refuse(w http.ResponseWriter, status, code int, message string) {
	w.WriteHeader(status)
	text, _ := json.Marshal(map[string]any{"@type": "generic_error", "error_code": code, "message": message, "stackTrace": []string{"at x", "at y"}})
	_, _ = w.Write(text)
}

func (s *standIn) answer(w http.ResponseWriter, statement string, array, wrapped bool) {
	var keys []string
	both := false
	if match := oneKey.FindStringSubmatch(statement); match != nil {
		keys = match[1:]
	} else if match := manyKeys.FindStringSubmatch(statement); match != nil && !s.noIn {
		keys, both = literal.FindAllString(match[1], -1), true
	} else {
		refuse(w, 400, 40001, "line 1:8: Invalid WHERE clause\nSELECT ...")
		return
	}
	var elements []string
	if wrapped {
		elements = append(elements, "{\"header\":{\"queryId\":\"transient_1\",\"schema\":\"`VALUE` DOUBLE\"}}")
	} else {
		elements = append(elements, `{"queryId":null,"columnNames":["VALUE"],"columnTypes":["DOUBLE"]}`)
	}
	for _, row := range s.rows {
		name := "'" + strings.ReplaceAll(row[0], "'", "''") + "'"
		if !slices.Contains(keys, name) {
			continue
		}
		columns := "[" + row[1] + "]"
		if both {
			text, _ := json.Marshal(row[0])
			columns = "[" + row[1] + "," + string(text) + "]"
		}
		if wrapped {
			columns = `{"row":{"columns":` + columns + `}}`
		}
		elements = append(elements, columns)
	}
	if array {
		_, _ = io.WriteString(w, "["+strings.Join(elements, ",\n")+"]")
		return
	}
	_, _ = io.WriteString(w, strings.Join(elements, "\n")+"\n")
}

func (s *standIn) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.requests
	s.requests = nil
	return taken
}

func provider(url string) *api.MetricsProvider {
	p := &api.MetricsProvider{Metadata: api.Metadata{Name: "ksql"}, Spec: api.MetricsProviderSpec{
		Type: api.ProviderKafka, Kafka: &api.KafkaSpec{URL: url, Table: "METRICS", ComparisonColumn: "NAME", ValueColumn: "VALUE"},
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

// TestEveryKindOfServer reads the same table from servers of all versions.
func TestEveryKindOfServer(t *testing.T) {
	rows := [][2]string{
		{"one", "2.5"}, {"integer", "3"}, {"text", `"4.25"`}, {"spaced", `" 7 "`}, {"twice", "1"}, {"twice", "2"}, {"negative", "-7e3"},
		{"null", "null"}, {"word", `"abc"`}, {"truth", "true"}, {"list", "[1]"}, {"huge", "1e999"}, {"nan", `"NaN"`},
		{"it's", "8"}, {"' OR '1'='1", "9"}, {`back\slash "quoted"`, "10"},
	}
	want := map[string]any{
		"one": 2.5, "integer": 3.0, "text": 4.25, "spaced": 7.0, "twice": 1.0, "negative": -7000.0, "nan": math.NaN(),
		"null": "null", "word": "a text", "truth": "the boolean true", "list": "a structure", "huge": "out of range",
		"it's": 8.0, "' OR '1'='1": 9.0, `back\slash "quoted"`: 10.0,
		"absent": `METRICS has no row whose NAME is "absent"`, "x' OR 'a'='a": "no row", "'; DROP TABLE METRICS; --": "no row",
	}
	var metrics []string
	for metric := range want {
		metrics = append(metrics, metric)
	}
	slices.Sort(metrics)
	for _, c := range []struct {
		name          string
		server        *standIn
		first, second int // number of requests of the first and of the second reading
	}{
		{"with IN", &standIn{rows: rows}, 1, 1},
		{"without IN", &standIn{rows: rows, noIn: true}, 1 + len(want), len(want)},
		{"only /query-stream", &standIn{rows: rows, noQuery: true}, 2, 1},
		{"only /query-stream, in JSON", &standIn{rows: rows, noQuery: true, asJSON: true}, 2, 1},
		{"only /query-stream, without IN", &standIn{rows: rows, noQuery: true, noIn: true}, 2 + len(want), len(want)},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := openAt(t, provider(serve(t, c.server).URL))
			for _, requests := range []int{c.first, c.second} {
				readings, err := src.Read(t.Context(), metrics)
				if err != nil {
					t.Fatal(err)
				}
				for metric, want := range want {
					got := readings[metric]
					switch want := want.(type) {
					case float64:
						if got.Err != nil || got.Value != want && !(math.IsNaN(want) && math.IsNaN(got.Value)) {
							t.Errorf("%s: got %+v, want %v", metric, got, want)
						}
					case string:
						var e *source.Error
						if !errors.As(got.Err, &e) || e.Reason != api.ReasonInvalidMetric || !strings.Contains(e.Error(), want) {
							t.Errorf("%s: got %+v, want InvalidMetric with %q", metric, got, want)
						}
					}
				}
				if sent := c.server.take(); len(sent) != requests {
					t.Errorf("%d requests, want %d: %q", len(sent), requests, sent)
				}
			}
			if _, err := src.Read(t.Context(), nil); err != nil {
				t.Errorf("no queries: %v", err)
			}
		})
	}
}

// TestServerIsAskedAnewWhereItsPathsChange: a newer server takes the place of an
// older one, and the other way round.
func TestServerIsAskedAnewWhereItsPathsChange(t *testing.T) {
	server := &standIn{rows: [][2]string{{"one", "1"}}}
	src := openAt(t, provider(serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if server.noQuery == (r.URL.Path == "/query") {
			refuse(w, 404, 40400, "HTTP 404 Not Found")
			return
		}
		server.ServeHTTP(w, r)
	})).URL))
	for _, noQuery := range []bool{false, true, false} {
		server.noQuery = noQuery
		readings, err := src.Read(t.Context(), []string{"one"})
		if got := readings["one"]; err != nil || got.Err != nil || got.Value != 1 {
			t.Errorf("noQuery %v: got %+v, %v", noQuery, got, err)
		}
	}
}

func TestManyMetricsKeepToTheLimits(t *testing.T) {
	server := &standIn{}
	var metrics []string
	for i := range 2*batchMetrics + 1 {
		metric := fmt.Sprintf("m%d", i)
		metrics = append(metrics, metric)
		server.rows = append(server.rows, [2]string{metric, fmt.Sprint(i)})
	}
	readings, err := openAt(t, provider(serve(t, server).URL)).Read(t.Context(), metrics)
	if err != nil {
		t.Fatal(err)
	}
	for i, metric := range metrics {
		if got := readings[metric]; got.Err != nil || got.Value != float64(i) {
			t.Fatalf("%s: got %+v", metric, got)
		}
	}
	if sent := server.take(); len(sent) != 3 {
		t.Errorf("%d requests, want 3", len(sent))
	}
	for _, batch := range split([]string{strings.Repeat("'", 60<<10), strings.Repeat("x", 40<<10), "y"}, batchMetrics) {
		if text := statement(provider("").Spec.Kafka, batch); len(batch) > 1 && len(text) > batchBytes+200 {
			t.Errorf("a statement for %d metrics has %d bytes", len(batch), len(text))
		}
	}
}

// TestAnswers covers the responses that a server may give to a query for one metric.
func TestAnswers(t *testing.T) {
	invalid, unreachable := api.ReasonInvalidMetric, api.ReasonUnreachableMetricsProvider
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   any    // a value, or a part of the message
		reason string // with a message
	}{
		{"row at index 1", 200, `[{"header":{}},{"row":{"columns":[1]}}]`, 1.0, ""},
		{"no header", 200, `[{"row":{"columns":[1]},"errorMessage":null}]`, 1.0, ""},
		{"tokens before the row", 200, `[{"header":{}},{"consistencyToken":{"consistencyToken":"x"}},{"row":{"columns":[1]},"sourceHost":{"host":"h"}},{"finalMessage":"Query Completed"}]`, 1.0, ""},
		{"deleted, then written", 200, `[{"header":{}},{"row":{"columns":[null],"tombstone":true}},{"row":{"columns":[2]}}]`, 2.0, ""},
		{"deleted", 200, `[{"header":{}},{"row":{"columns":[null],"tombstone":true}}]`, "no row", invalid},
		{"error after the row", 200, `[{"header":{}},{"row":{"columns":[1]}},{"errorMessage":{"error_code":50000,"message":"boom"}}]`, 1.0, ""},
		{"connection cut after the row", 200, `[{"header":{}},{"row":{"columns":[1]}},`, 1.0, ""},
		{"header only", 200, `[{"header":{}}]`, "no row", invalid},
		{"empty array", 200, `[]`, "no row", invalid},
		{"row without columns", 200, `[{"row":{}}]`, "no row", invalid},
		{"error in the stream", 200, `[{"header":{}},{"errorMessage":{"@type":"generic_error","error_code":50000,"message":"boom in transient_METRICS_42"}}]`, "status 500: boom in transient", unreachable},
		{"statement error in the stream", 200, `[{"errorMessage":{"error_code":40001,"message":"bad"}}]`, "rejects the query: bad", invalid},
		{"delimited error", 200, `{"@type":"generic_error","error_code":50000,"message":"boom"}` + "\n", "status 500: boom", unreachable},
		{"connection cut before the row", 200, `[{"header":{}},`, "unexpected EOF", unreachable},
		{"empty body", 200, ``, "not from a ksqlDB", unreachable},
		{"page", 200, `<html>`, "not from a ksqlDB", unreachable},
		{"another API", 200, `{"status":"success"}`, "not from a ksqlDB", unreachable},
		{"numbers", 200, `[1,2]`, "not from a ksqlDB", unreachable},
		{"rows of another shape", 200, `[{"row":[1]}]`, "not from a ksqlDB", unreachable},
		{"unknown table", 400, `{"@type":"statement_error","error_code":40001,"message":"line 1:15: METRICS does not exist.","statementText":"SELECT","entities":[]}`, "rejects the query: line 1:15: METRICS does not exist.", invalid},
		{"bad request", 400, `{"@type":"generic_error","error_code":40000,"message":"no"}`, "rejects the query: no", invalid},
		{"bad request of a proxy", 400, `no`, "status 400", unreachable},
		{"unauthorized", 401, `{"@type":"generic_error","error_code":40100,"message":"Unauthorized"}`, "status 401: are the credentials in headers or bearer_token right?: Unauthorized", unreachable},
		{"forbidden", 403, `{"@type":"generic_error","error_code":40300,"message":"You are forbidden"}`, "status 403", unreachable},
		{"not found", 404, `<html>`, "does the url point at the REST API of ksqlDB?", unreachable},
		{"HTTP/2 only", 400, `{"@type":"generic_error","error_code":40004,"message":"This endpoint is only available when using HTTP2"}`, "only available when using HTTP2", unreachable},
		{"redirect to the right endpoint", 400, `{"@type":"generic_error","error_code":40000,"message":"Use /query-stream"}`, "Use /query-stream", unreachable},
		{"internal", 500, `{"@type":"generic_error","error_code":50000,"message":"Internal\nat org.x"}`, "status 500: Internal", unreachable},
		{"starting", 503, `{"@type":"generic_error","error_code":50300,"message":"KSQL is not yet ready to serve requests."}`, "not yet ready", unreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := openAt(t, provider(serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})).URL))
			readings, err := src.Read(t.Context(), []string{"m"})
			got := readings["m"]
			if number, ok := c.want.(float64); ok {
				if err != nil || got.Err != nil || got.Value != number {
					t.Fatalf("got %+v, %v; want %v", got, err, number)
				}
				return
			}
			var e *source.Error
			if !errors.As(got.Err, &e) || e.Reason != c.reason || !strings.Contains(e.Error(), c.want.(string)) {
				t.Fatalf("got %+v, want %s with %q", got, c.reason, c.want)
			}
			if (err != nil) != (c.reason == unreachable) {
				t.Errorf("error of the provider %v", err)
			}
			if strings.Contains(e.Error(), "METRICS_42") || strings.Contains(e.Error(), "org.x") {
				t.Errorf("the message is not constant, or reveals too much: %s", e.Error())
			}
		})
	}
}

// TestEndlessAnswers checks that values that arrived before the timeout count.
func TestEndlessAnswers(t *testing.T) {
	hang := func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	for _, c := range []struct {
		name    string
		answer  func(http.ResponseWriter, *http.Request)
		want    float64
		message string
	}{
		{"push query with a row", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `[{"header":{}},`+"\n"+`{"row":{"columns":[5,"m"]}},`+"\n")
			hang(w, r)
		}, 5, ""},
		{"push query without a row", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `[{"header":{}},`)
			hang(w, r)
		}, 0, "no response within 20s"},
		{"no answer", func(w http.ResponseWriter, r *http.Request) { hang(w, r) }, 0, "no response within 20s"},
		{"endless rows", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `[{"row":{"columns":[6,"m"]}}`)
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, strings.Repeat(`,{"row":{"columns":[7,"m"]}}`, 1000))
			}
		}, 6, ""},
		{"endless element", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `[{"row":{"columns":["`)
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, strings.Repeat(`x`, 1<<16))
			}
		}, 0, "too large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			check := func(t *testing.T, src source.Source) {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
				defer cancel()
				readings, err := src.Read(ctx, []string{"m"})
				got := readings["m"]
				if c.message == "" {
					if err != nil || got.Err != nil || got.Value != c.want {
						t.Errorf("got %+v, %v; want %v", got, err, c.want)
					}
					return
				}
				var e *source.Error
				if !errors.As(err, &e) || e.Reason != api.ReasonUnreachableMetricsProvider || !strings.Contains(e.Error(), c.message) {
					t.Errorf("got %v, want %q", err, c.message)
				}
			}
			if strings.HasPrefix(c.name, "endless") { // the limit on bytes ends it
				check(t, openAt(t, provider(serve(t, http.HandlerFunc(c.answer)).URL)))
				return
			}
			// The time is up when everything that was sent has been read.
			synctest.Test(t, func(t *testing.T) {
				src, err := open(provider("http://ksql.test"), addresspolicy.OnLoopback(), faketime.Serve(t, http.HandlerFunc(c.answer)))
				if err != nil {
					t.Fatal(err)
				}
				check(t, src)
			})
		})
	}
}

// TestStatements checks that names that are not plain are quoted, and that names that the user has quoted are not
// changed.
func TestStatements(t *testing.T) {
	for _, c := range []struct{ table, key, column, metric, want string }{
		{"my_table", "k", "v", "m", "SELECT v FROM my_table WHERE k = 'm';"},
		{"my-table", "the key", "1st", "m", "SELECT `1st` FROM `my-table` WHERE `the key` = 'm';"},
		{"`lower`", "`a``b`", "`", "m", "SELECT ```` FROM `lower` WHERE `a``b` = 'm';"},
		{"t; DROP TABLE t", "k = k OR k", "v` FROM x", "it's'", "SELECT `v`` FROM x` FROM `t; DROP TABLE t` WHERE `k = k OR k` = 'it''s''';"},
		{"`a`b`", "``", "é", "", "SELECT `é` FROM ```a``b``` WHERE `````` = '';"},
	} {
		got := statement(&api.KafkaSpec{Table: c.table, ComparisonColumn: c.key, ValueColumn: c.column}, []string{c.metric})
		if got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// TestConnection checks that certificate, headers and token reach the server, and no other host.
func TestConnection(t *testing.T) {
	var seen http.Header
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header
		_, _ = io.WriteString(w, `[{"row":{"columns":[1]}}]`)
	}))
	defer server.Close()
	p := provider(server.URL)
	p.Spec.CACert = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	p.Spec.BearerToken = api.NewSecret("hush")
	p.Spec.Headers = map[string]api.Secret{"X-Tenant": api.NewSecret("acme")}
	readings, err := openAt(t, p).Read(t.Context(), []string{"m"})
	if err != nil || readings["m"].Value != 1 || seen.Get("Authorization") != "Bearer hush" || seen.Get("X-Tenant") != "acme" {
		t.Errorf("got %+v, %v, headers %v", readings["m"], err, seen)
	}
	p.Spec.CACert = ""
	if _, err := openAt(t, p).Read(t.Context(), []string{"m"}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("untrusted certificate: %v", err)
	}
}
