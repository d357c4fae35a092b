package static

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

func read(t *testing.T, values map[string]float64, query string) source.Reading {
	t.Helper()
	provider := &api.MetricsProvider{Spec: api.MetricsProviderSpec{Type: api.ProviderStatic}}
	if values != nil {
		provider.Spec.Static = &api.StaticSpec{Metrics: values}
	}
	src, err := Type.New(provider, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	readings, err := src.Read(t.Context(), []string{query})
	if err != nil {
		t.Fatal(err)
	}
	return readings[query]
}

func TestValue(t *testing.T) {
	if got := read(t, map[string]float64{"load": 0.25}, "load"); got.Err != nil || got.Value != 0.25 {
		t.Errorf("got %+v, want 0.25", got)
	}
}

func TestMissingNameErrorListsExistingNames(t *testing.T) {
	many := map[string]float64{}
	for i := range 12 {
		many[fmt.Sprintf("m%02d", i)] = 1
	}
	for _, c := range []struct {
		name   string
		values map[string]float64
		want   string
	}{
		{"no block", nil, `static.metrics has no "x"; it has no metrics`},
		{"some", map[string]float64{"load": 1, "heat": 2}, `static.metrics has no "x"; it has "heat", "load"`},
		{"many", many, "and 2 more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := read(t, c.values, "x")
			var e *source.Error
			if !errors.As(got.Err, &e) || e.Reason != api.ReasonInvalidMetric || !strings.Contains(e.Message, c.want) {
				t.Errorf("got %#v, want InvalidMetric with %q", got.Err, c.want)
			}
		})
	}
}
