package influx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// handled responds without a network, so that time is simulated. A request whose body contains one of the slow words
// gets no response.
type handled struct {
	handler http.Handler
	slow    []string
}

// RoundTrip implements http.RoundTripper.
func (h handled) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	for _, word := range h.slow {
		if strings.Contains(string(body), word) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// TestValueThatIsNoNumberCostsNoOtherMetric: neither does a query that is slow.
func TestValueThatIsNoNumberCostsNoOtherMetric(t *testing.T) {
	for name, slow := range map[string]bool{"garbled": false, "slow": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fluxServer{tables: map[string]string{}}
				queries := []string{"bad"}
				for i := range 100 {
					query := fmt.Sprintf("good%d", i)
					queries = append(queries, query)
					f.tables[query] = table("double", fmt.Sprint(i), "value", query)
				}
				world := handled{handler: f}
				want := api.ReasonInvalidMetric
				if slow {
					world.slow, want = []string{`\"bad\"`}, api.ReasonUnreachableMetricsProvider
				} else {
					f.tables["bad"] = table("double", "twelve", "value", "bad")
				}
				src, err := open(provider("http://influx.test"), addresspolicy.OnLoopback(), world)
				if err != nil {
					t.Fatal(err)
				}
				for range 3 {
					ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
					readings, err := src.Read(ctx, queries)
					cancel()
					if err != nil {
						t.Fatal(err)
					}
					for i, query := range queries[1:] {
						if got := readings[query]; got.Err != nil || got.Value != float64(i) {
							t.Fatalf("%s: got %+v", query, got)
						}
					}
					var e *source.Error
					if !errors.As(readings["bad"].Err, &e) || e.Reason != want {
						t.Fatalf("bad: got %#v", readings["bad"].Err)
					}
				}
			})
		})
	}
}

// TestInfluxQLValueThatIsNoNumber: of the numbers of JSON nothing spoils another.
func TestInfluxQLValueThatIsNoNumber(t *testing.T) {
	values := map[string]string{"a": "1", "b": `"text"`, "c": "1e999", "d": "true", "e": "null", "f": "2"}
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/query" {
			w.Header().Set("X-Influxdb-Version", "1.6.7")
			w.WriteHeader(http.StatusNotFound)
			return
		}
		var results []string
		for statement := range strings.SplitSeq(r.FormValue("q"), ";\n") {
			for name, value := range values {
				if strings.Contains(statement, `FROM "`+name+`"`) {
					results = append(results, fmt.Sprintf(`{"series":[{"name":%q,"columns":["time","last_value"],"values":[[1,%s]]}]}`, name, value))
				}
			}
		}
		_, _ = io.WriteString(w, `{"results":[`+strings.Join(results, ",")+`]}`)
	})
	readings, err := openAt(t, provider(server.URL)).Read(t.Context(), []string{"a", "b", "c", "d", "e", "f"})
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range values {
		var number float64
		good := json.Unmarshal([]byte(value), &number) == nil && value != "null"
		got := readings[name]
		if good != (got.Err == nil) || good && got.Value != number {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
