package prometheus

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

func FuzzEnclosed(f *testing.F) {
	for _, seed := range []string{"up", "sum(x) by (y)", `x{a="\""}`, "a # b\nc", "x{a=`b`}[5m:1m]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		if enclosed(query) && !enclosed("("+query+"\n)") {
			t.Errorf("enclosed(%q) = true, but not in parentheses", query)
		}
	})
}

// answer is a RoundTripper that returns the same response to every request.
type answer struct {
	status int
	body   []byte
}

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return &http.Response{StatusCode: a.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(a.body))), Request: r}, nil
}

// FuzzAnswer checks that, for any response, every query gets a value or an error with a reason, without a panic.
func FuzzAnswer(f *testing.F) {
	f.Add(200, []byte(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"scheduler_query":"0"},"value":[1,"2"]}]}}`))
	f.Add(200, []byte(`{"status":"success","data":{"resultType":"vector","result":[null,{"metric":null,"value":[]}]}}`))
	f.Add(200, []byte(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"scheduler_query":"1"},"histogram":[1,{"count":"1","sum":"1","buckets":[]}]}]}}`))
	f.Add(200, []byte(`{"status":"success","data":{"resultType":"scalar","result":[1,"NaN"]}}`))
	f.Add(200, []byte(`{"data":{"resultType":"scalar","result":[1,"2"]}}`)) // without a status
	f.Add(200, []byte(`{"data":{"resultType":"vector","result":[]}}`))
	f.Add(200, []byte(`{"status":"success","data":{"resultType":"string","result":[1,"x"]}}`))
	f.Add(200, []byte(`{"status":"success","data":null}`))
	f.Add(400, []byte(`{"status":"error","errorType":"bad_data","error":"parse error"}`))
	f.Add(422, []byte(`{"status":"error","errorType":"execution","error":"x"}`))
	f.Add(503, []byte(`{"status":"error","errorType":"timeout","error":"x"}`))
	queries := []string{"up", "sum(x)", "up{"}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 100 || status > 999 {
			return // not an HTTP status
		}
		src, err := open(provider("http://prometheus.test"), addresspolicy.OnLoopback(), answer{status, body})
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
