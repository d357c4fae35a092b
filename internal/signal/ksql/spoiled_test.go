package ksql

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// handled responds without a network, so that time is simulated.
type handled struct {
	*standIn
	slow bool // statements about 'bad' get no response
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
	if h.slow && bytes.Contains(body, []byte("'bad'")) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

// TestValueThatIsNoNumberCostsNoOtherMetric: neither does a query that is slow.
func TestValueThatIsNoNumberCostsNoOtherMetric(t *testing.T) {
	for name, c := range map[string]struct {
		value string
		slow  bool
		want  string
	}{
		"a text":         {`"abc"`, false, api.ReasonInvalidMetric},
		"no JSON":        {`NaN`, false, api.ReasonInvalidMetric},
		"out of range":   {`1e999`, false, api.ReasonInvalidMetric},
		"never answered": {`1`, true, api.ReasonUnreachableMetricsProvider},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &standIn{}
				var queries []string
				for i := range 100 {
					query := fmt.Sprintf("good%d", i)
					if i == 40 {
						queries = append(queries, "bad")
						s.rows = append(s.rows, [2]string{"bad", c.value})
					}
					queries = append(queries, query)
					s.rows = append(s.rows, [2]string{query, fmt.Sprint(i)})
				}
				src, err := open(provider("http://ksql.test"), addresspolicy.OnLoopback(), handled{s, c.slow})
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
					for i := range 100 {
						query := fmt.Sprintf("good%d", i)
						if got := readings[query]; got.Err != nil || got.Value != float64(i) {
							t.Fatalf("%s: got %+v", query, got)
						}
					}
					var e *source.Error
					if !errors.As(readings["bad"].Err, &e) || e.Reason != c.want {
						t.Fatalf("bad: got %#v", readings["bad"].Err)
					}
				}
			})
		})
	}
}
