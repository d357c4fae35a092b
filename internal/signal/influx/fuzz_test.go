package influx

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// FuzzAnswer checks that, for any response in either language, every query gets a value or an error with a reason,
// without a panic.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{
		table("double", "1", "value", "a") + table("string", "x", "value", "b", "zone", "1"), "\r\n",
		"#datatype,string,string\r\n#group,true,true\r\n#default,,\r\n,error,reference\r\n,x,897\r\n", "#group,true\r\n#datatype,long\r\n,_value\r\n,1\r\n",
		`{"results":[{"series":[{"name":"a","tags":{"z":""},"columns":["time","last_value"],"values":[["t",1]]}]},{},{"error":"x"}]}`,
		`{"results":[{"series":[{"columns":["time"],"values":[[]]}]}]}`, `{"error":"authorization failed"}`, `{"code":"not found","message":"x"}`,
	} {
		f.Add(200, true, []byte(body))
		f.Add(200, false, []byte(body))
		f.Add(500, true, []byte(body))
	}
	queries := []string{"a", "b.value", `c{zone="1"}`}
	f.Fuzz(func(t *testing.T, status int, flux bool, body []byte) {
		if status < 100 || status > 999 {
			return // not an HTTP status
		}
		src, err := open(provider("http://influx.test"), addresspolicy.OnLoopback(), roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			recorder := httptest.NewRecorder()
			recorder.Header().Set("X-Influxdb-Version", "1.8.10")
			recorder.Code = status
			if !flux && strings.HasPrefix(r.URL.Path, "/api/") {
				recorder.Code = http.StatusNotFound
			}
			_, _ = recorder.Body.Write(body)
			return recorder.Result(), nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			readings, _ := src.Read(t.Context(), queries)
			for _, query := range queries {
				got, ok := readings[query]
				if !ok {
					t.Fatalf("no reading for %q", query)
				}
				var e *source.Error
				if got.Err != nil && (!errors.As(got.Err, &e) || e.Message == "" || !slices.Contains([]string{api.ReasonInvalidMetric, api.ReasonUnreachableMetricsProvider}, e.Reason)) {
					t.Fatalf("%q: got %#v", query, got.Err)
				}
			}
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
