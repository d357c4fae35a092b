package ksql

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

type caseIn struct {
	URL              conformance.Field[string]          `json:"url"`
	Table            conformance.Field[string]          `json:"table"`
	ValueColumn      conformance.Field[string]          `json:"value_column"`
	ComparisonColumn conformance.Field[string]          `json:"comparison_column"`
	Metric           conformance.Field[string]          `json:"metric"`
	Body             conformance.Field[json.RawMessage] `json:"body"`
}

type caseOut struct {
	Request string   `json:"request"`
	JSON    any      `json:"json"`
	Timeout float64  `json:"timeout_s"`
	Value   *float64 `json:"value"`
	Error   string   `json:"error"`
	Code    int      `json:"code"`
}

// TestKrakeCases runs recorded requests and responses of a ksqlDB. There are no deviations.
func TestKrakeCases(t *testing.T) {
	suite := conformance.Suite{
		Driver: "internal/signal/ksql",
		Play: map[string]func(*conformance.T, *conformance.Played){
			"provider_kafka": conformance.Player(playCase),
		},
	}
	suite.Run(t)
}

func playCase(t *conformance.T, in *caseIn, out *caseOut) {
	p := provider("http://localhost:8080")
	if in.URL.Get() != "" {
		p.Spec.Kafka = &api.KafkaSpec{URL: in.URL.Get(), Table: in.Table.Get(), ComparisonColumn: in.ComparisonColumn.Get(), ValueColumn: in.ValueColumn.Get()}
	}
	var request string
	var sent any
	src, err := open(p, addresspolicy.OnLoopback(), roundTrip(func(r *http.Request) (*http.Response, error) {
		request = r.Method + " " + r.URL.String()
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		recorder := httptest.NewRecorder()
		_, _ = recorder.Write(in.Body.Get())
		return recorder.Result(), nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	metric := cmp.Or(in.Metric.Get(), "m")
	readings, _ := src.Read(t.Context(), []string{metric})
	got := readings[metric]
	if out.Request != "" {
		if request != out.Request || !reflect.DeepEqual(sent, out.JSON) || p.Spec.Timeout.Or(0).Seconds() != out.Timeout {
			t.Errorf("sent %s %v with timeout %s; want %s %v and %v s", request, sent, p.Spec.Timeout, out.Request, out.JSON, out.Timeout)
		}
		return
	}
	if out.Value != nil {
		if got.Err != nil || got.Value != *out.Value {
			t.Errorf("got %+v, want %v", got, *out.Value)
		}
		return
	}
	var e *source.Error
	if out.Error != "INVALID_METRIC" || out.Code != 91 || !errors.As(got.Err, &e) || e.Reason != api.ReasonInvalidMetric {
		t.Errorf("got %+v, want %s %d", got, out.Error, out.Code)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
