//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func number[T any](n T) *T { return &n }

func staticProvider(name string, values map[string]float64) *api.MetricsProvider {
	return &api.MetricsProvider{
		Metadata: api.Metadata{Name: name},
		Spec:     api.MetricsProviderSpec{Type: api.ProviderStatic, Static: &api.StaticSpec{Metrics: values}},
	}
}

func prometheusProvider(name, url string) *api.MetricsProvider {
	return &api.MetricsProvider{
		Metadata: api.Metadata{Name: name},
		Spec: api.MetricsProviderSpec{
			Type: api.ProviderPrometheus, Prometheus: &api.PrometheusSpec{URL: url}, Interval: "1s", Timeout: "900ms",
		},
	}
}

func metric(name, provider, query string, onFailure api.OnFailure) *api.Metric {
	return &api.Metric{
		Metadata: api.Metadata{Name: name},
		Spec: api.MetricSpec{
			Min: number(0.0), Max: number(100.0), OnFailure: onFailure,
			MetricsProvider: api.MetricProviderRef{Name: provider, Metric: query},
		},
	}
}

// cluster returns a cluster in a group, which placements select by label.
func cluster(name, group string, metrics ...string) *api.Cluster {
	c := &api.Cluster{Metadata: api.Metadata{Name: name, Labels: map[string]string{"group": group}}}
	for _, m := range metrics {
		c.Spec.Metrics = append(c.Spec.Metrics, api.MetricRef{Name: m, Weight: number(1.0)})
	}
	return c
}

// placement returns a placement that chooses the best cluster of a group, and follows changes at once.
func placement(name, group string) *api.Placement {
	return &api.Placement{
		Metadata: api.Metadata{Namespace: "shop", Name: name},
		Spec: api.PlacementSpec{
			NumberOfClusters: number(int64(1)), LabelConstraints: []string{"group is " + group}, RescheduleAfter: "0s",
			Metrics: &api.MetricsStrategy{Stickiness: number(0.0)},
		},
	}
}

func placementKey(name string) api.Key {
	return api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: name}
}

func metricKey(name string) api.Key { return api.Key{Kind: api.KindMetric, Name: name} }

// staticFleet creates clusters with a static metric each, all with different values.
func staticFleet(p *process, clusters int) {
	values := map[string]float64{}
	for i := range clusters {
		values[fmt.Sprintf("m%d", i)] = float64(10 + i)
	}
	put(p, staticProvider("rates", values))
	for i := range clusters {
		name := fmt.Sprintf("m%d", i)
		put(p, metric(name, "rates", name, api.FailureExclude))
		put(p, cluster(fmt.Sprintf("c%d", i), "static", name))
	}
}

// jsonOf formats a value as JSON.
func jsonOf(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
