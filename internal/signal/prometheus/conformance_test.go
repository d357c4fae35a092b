package prometheus

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// TestKrakeCases runs the recorded answers of a Prometheus: what the server says
// to a query, and the value or the reason that must come out. There is no
// deliberate difference.
func TestKrakeCases(t *testing.T) {
	text, err := os.ReadFile("testdata/krake.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		ID string
		In struct {
			Metric string
			TCP    string
			Status int
			Body   json.RawMessage
		}
		Out struct {
			Value *float64
			Error string
		}
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{
		"INVALID_METRIC":               api.ReasonInvalidMetric,
		"UNREACHABLE_METRICS_PROVIDER": api.ReasonUnreachableMetricsProvider,
	}
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			url := "http://" + closedPort(t)
			if c.In.TCP == "" {
				url = serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(max(c.In.Status, http.StatusOK))
					_, _ = w.Write(c.In.Body)
				})).URL
			}
			query := c.In.Metric
			if query == "" {
				query = "m"
			}
			readings, err := openAt(t, provider(url)).Read(t.Context(), []string{query})
			got := readings[query]
			if err != nil {
				got.Err = err
			}
			if c.Out.Value != nil {
				if got.Err != nil || got.Value != *c.Out.Value {
					t.Fatalf("got %v, %v; want %v", got.Value, got.Err, *c.Out.Value)
				}
				return
			}
			var failure *source.Error
			if !errors.As(got.Err, &failure) || failure.Reason != reasons[c.Out.Error] {
				t.Fatalf("got %v, %v; want %s", got.Value, got.Err, c.Out.Error)
			}
		})
	}
}

// closedPort is an address that refuses connections.
func closedPort(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
