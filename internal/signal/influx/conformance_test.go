package influx

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// TestKrakeCases runs the recorded answers of an InfluxDB. There is no
// deliberate difference.
func TestKrakeCases(t *testing.T) {
	text, err := os.ReadFile("testdata/krake.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		ID string
		In struct {
			CSV    string
			Status int
		}
		Out struct {
			Value *float64
			Error string
		}
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) != 2 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			src := openAt(t, provider(serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(max(c.In.Status, http.StatusOK))
				_, _ = io.WriteString(w, c.In.CSV)
			}).URL))
			readings, _ := src.Read(t.Context(), []string{"heat_demand_zone_1"})
			got := readings["heat_demand_zone_1"]
			if c.Out.Value != nil {
				if got.Err != nil || got.Value != *c.Out.Value {
					t.Errorf("got %+v, want %v", got, *c.Out.Value)
				}
				return
			}
			var e *source.Error
			if c.Out.Error != "UNREACHABLE_METRICS_PROVIDER" || !errors.As(got.Err, &e) || e.Reason != api.ReasonUnreachableMetricsProvider {
				t.Errorf("got %+v, want %s", got, c.Out.Error)
			}
		})
	}
}
