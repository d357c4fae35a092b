package influx

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

type caseIn struct {
	CSV    conformance.Field[string] `json:"csv"`
	Status conformance.Field[int]    `json:"status"`
}

type caseOut struct {
	Value *float64 `json:"value"`
	Error string   `json:"error"`
	Code  int      `json:"code"`
}

// TestKrakeCases runs recorded responses of an InfluxDB. There are no deviations.
func TestKrakeCases(t *testing.T) {
	suite := conformance.Suite{
		Driver: "internal/signal/influx",
		Play: map[string]func(*conformance.T, *conformance.Played){
			"provider_influx": conformance.Player(playCase),
		},
	}
	suite.Run(t)
}

func playCase(t *conformance.T, in *caseIn, out *caseOut) {
	src := openAt(t.T, provider(serve(t.T, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(max(in.Status.Get(), http.StatusOK))
		_, _ = io.WriteString(w, in.CSV.Get())
	}).URL))
	readings, _ := src.Read(t.Context(), []string{"heat_demand_zone_1"})
	got := readings["heat_demand_zone_1"]
	if out.Value != nil {
		if got.Err != nil || got.Value != *out.Value {
			t.Errorf("got %+v, want %v", got, *out.Value)
		}
		return
	}
	var e *source.Error
	if out.Error != "UNREACHABLE_METRICS_PROVIDER" || out.Code != 92 || !errors.As(got.Err, &e) || e.Reason != api.ReasonUnreachableMetricsProvider {
		t.Errorf("got %+v, want %s %d", got, out.Error, out.Code)
	}
}
