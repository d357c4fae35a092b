package reconcile

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func TestSimulateTakesTheValuesItIsGiven(t *testing.T) {
	const provider = `{"kind":"metrics_provider","metadata":{"name":"p"},"spec":{"type":"prometheus","prometheus":{"url":"http://p:9090"}}}`
	for _, test := range []struct {
		name, status string
		providers    []string
		reason       string // of the metric and of the cluster; "Available" = it counts
	}{
		{"value only", `{"value":0.5}`, []string{provider}, api.ReasonAvailable},
		{"value only, without its provider", `{"value":0.5}`, nil, api.ReasonAvailable},
		{"live object, without its provider", `{"value":0.5,"normalized":0.5,"observed_at":"2026-03-01T11:59:58Z","conditions":[{"type":"Available","status":"True"}]}`, nil, api.ReasonAvailable},
		{"value out of range", `{"value":1.5}`, nil, api.ReasonInvalidMetric},
		{"neither value nor provider", `{}`, nil, api.ReasonUnknownMetricsProvider},
		{"failed reading, without its provider", `{"value":0.5,"conditions":[{"type":"Available","status":"False","reason":"UnknownMetricsProvider"}]}`, nil, api.ReasonUnknownMetricsProvider},
	} {
		t.Run(test.name, func(t *testing.T) {
			objects := append(raw(test.providers...), raw(
				fmt.Sprintf(`{"kind":"metric","metadata":{"name":"load"},"spec":{"min":0,"max":1,"metrics_provider":{"name":"p","metric":"load"}},"status":%s}`, test.status),
				// A metric without a value must not count because another one has a value.
				`{"kind":"metric","metadata":{"name":"silent"},"spec":{"min":0,"max":1,"metrics_provider":{"name":"q","metric":"silent"}}}`,
				`{"kind":"cluster","metadata":{"name":"c1"},"spec":{"metrics":[{"name":"load"}]}}`,
				`{"kind":"cluster","metadata":{"name":"c2"},"spec":{"metrics":[{"name":"silent"}]}}`,
				`{"kind":"placement","metadata":{"name":"web"},"spec":{}}`)...)
			result, err := SimulateFile(t.Context(), api.Simulation{Now: &epoch, Objects: objects}, nil, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			objectsByName := map[string]api.Object{}
			for _, o := range result.Objects {
				objectsByName[o.Meta().Name] = o
			}
			var want []string
			if test.reason == api.ReasonAvailable {
				want = []string{"c1"}
			}
			if got := objectsByName["web"].(*api.Placement).Status.Clusters; !slices.Equal(got, want) {
				t.Errorf("clusters %v, want %v", got, want)
			}
			load := objectsByName["load"].(*api.Metric).Status
			available := api.FindCondition(load.Conditions, api.ConditionAvailable)
			if available == nil || available.Reason != test.reason && test.reason != api.ReasonAvailable || (available.Status == api.ConditionTrue) != (want != nil) {
				t.Errorf("condition %+v, want reason %s", available, test.reason)
			}
			if want != nil && (load.Normalized == nil || *load.Normalized != 0.5) {
				t.Errorf("the value is not normalized: %+v", load)
			}
			if seen := objectsByName["c1"].(*api.Cluster).Status.Metrics[0]; want == nil && seen.Reason != test.reason {
				t.Errorf("reason on the cluster %q, want %q", seen.Reason, test.reason)
			}
			if seen := objectsByName["c2"].(*api.Cluster).Status.Metrics[0]; seen.Reason != api.ReasonUnknownMetricsProvider {
				t.Errorf("reason %q of the metric without a value, want UnknownMetricsProvider", seen.Reason)
			}
		})
	}
}

func TestSimulateWithoutAProviderThatIsDeleted(t *testing.T) {
	y, _ := start(t)
	y.twoClusters()
	y.put(newPlacement("web", 1))
	result, err := y.reconciler.Simulate(t.Context(), api.Simulation{Delete: []api.Key{{Kind: api.KindMetricsProvider, Name: "p"}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Changes) != 1 || len(result.Changes[0].To) != 0 {
		text, _ := json.Marshal(result.Changes)
		t.Errorf("without the provider no metric counts, but there are changes: %s", text)
	}
}
