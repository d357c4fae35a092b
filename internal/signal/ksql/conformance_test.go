package ksql

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// TestKrakeCases runs the recorded requests and answers of a ksqlDB. There is no
// deliberate difference.
func TestKrakeCases(t *testing.T) {
	text, err := os.ReadFile("testdata/krake.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		ID string
		In struct {
			URL              string
			Table            string
			ValueColumn      string `json:"value_column"`
			ComparisonColumn string `json:"comparison_column"`
			Metric           string
			Body             json.RawMessage
		}
		Out struct {
			Request string
			JSON    any
			Timeout int `json:"timeout_s"`
			Value   *float64
			Error   string
		}
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) != 3 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			p := provider("http://localhost:8080")
			if c.In.URL != "" {
				p.Spec.Kafka = &api.KafkaSpec{URL: c.In.URL, Table: c.In.Table, ComparisonColumn: c.In.ComparisonColumn, ValueColumn: c.In.ValueColumn}
			}
			var request string
			var sent any
			src, err := open(p, roundTrip(func(r *http.Request) (*http.Response, error) {
				request = r.Method + " " + r.URL.String()
				if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
					t.Error(err)
				}
				recorder := httptest.NewRecorder()
				_, _ = recorder.Write(c.In.Body)
				return recorder.Result(), nil
			}))
			if err != nil {
				t.Fatal(err)
			}
			metric := c.In.Metric
			if metric == "" {
				metric = "m"
			}
			readings, _ := src.Read(t.Context(), []string{metric})
			got := readings[metric]
			if c.Out.Request != "" {
				if request != c.Out.Request || !reflect.DeepEqual(sent, c.Out.JSON) || p.Spec.Timeout.Or(0).Seconds() != float64(c.Out.Timeout) {
					t.Errorf("sent %s %v with timeout %s; want %s %v and %d s", request, sent, p.Spec.Timeout, c.Out.Request, c.Out.JSON, c.Out.Timeout)
				}
				return
			}
			if c.Out.Value != nil {
				if got.Err != nil || got.Value != *c.Out.Value {
					t.Errorf("got %+v, want %v", got, *c.Out.Value)
				}
				return
			}
			var e *source.Error
			if c.Out.Error != "INVALID_METRIC" || !errors.As(got.Err, &e) || e.Reason != api.ReasonInvalidMetric {
				t.Errorf("got %+v, want %s", got, c.Out.Error)
			}
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
