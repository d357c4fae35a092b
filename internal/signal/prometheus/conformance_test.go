package prometheus

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

type caseIn struct {
	Metric conformance.Field[string]          `json:"metric"`
	TCP    conformance.Field[string]          `json:"tcp"`
	Status conformance.Field[int]             `json:"status"`
	Body   conformance.Field[json.RawMessage] `json:"body"`
}

type caseOut struct {
	Value *float64 `json:"value"`
	Error string   `json:"error"`
	Code  int      `json:"code"`
}

// TestKrakeCases runs recorded responses of a Prometheus, with the expected value or reason. There are no deviations.
func TestKrakeCases(t *testing.T) {
	suite := conformance.Suite{
		Driver: "internal/signal/prometheus",
		Play: map[string]func(*conformance.T, *conformance.Played){
			"provider_prometheus": conformance.Player(playCase),
		},
	}
	suite.Run(t)
}

func playCase(t *conformance.T, in *caseIn, out *caseOut) {
	url := "http://" + closedPort(t.T)
	if in.TCP.Get() != "refused" {
		url = serve(t.T, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(max(in.Status.Get(), http.StatusOK))
			_, _ = w.Write(in.Body.Get())
		})).URL
	}
	query := cmp.Or(in.Metric.Get(), "m")
	readings, err := openAt(t.T, provider(url)).Read(t.Context(), []string{query})
	got := readings[query]
	if err != nil {
		got.Err = err
	}
	if out.Value != nil {
		if got.Err != nil || got.Value != *out.Value {
			t.Fatalf("got %v, %v; want %v", got.Value, got.Err, *out.Value)
		}
		return
	}
	reason := map[string]string{
		"INVALID_METRIC 91":               api.ReasonInvalidMetric,
		"UNREACHABLE_METRICS_PROVIDER 92": api.ReasonUnreachableMetricsProvider,
	}[fmt.Sprint(out.Error, " ", out.Code)]
	var failure *source.Error
	if !errors.As(got.Err, &failure) || failure.Reason != reason {
		t.Fatalf("got %v, %v; want %s %d", got.Value, got.Err, out.Error, out.Code)
	}
}

// closedPort returns an address that refuses connections.
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
