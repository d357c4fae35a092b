package main

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func number[T any](n T) *T { return &n }

func staticProvider(name string, values map[string]float64) *api.MetricsProvider {
	return &api.MetricsProvider{
		Metadata: api.Metadata{Name: name},
		Spec:     api.MetricsProviderSpec{Type: api.ProviderStatic, Static: &api.StaticSpec{Metrics: values}},
	}
}

func metric(name, provider, query string) *api.Metric {
	return &api.Metric{
		Metadata: api.Metadata{Name: name},
		Spec:     api.MetricSpec{Min: number(0.0), Max: number(100.0), MetricsProvider: api.MetricProviderRef{Name: provider, Metric: query}},
	}
}

func cluster(name string, metrics ...string) *api.Cluster {
	c := &api.Cluster{Metadata: api.Metadata{Name: name, Labels: map[string]string{"location": "DE"}}}
	for _, m := range metrics {
		c.Spec.Metrics = append(c.Spec.Metrics, api.MetricRef{Name: m, Weight: number(1.0)})
	}
	return c
}

func placement(namespace, name string) *api.Placement {
	return &api.Placement{
		Metadata: api.Metadata{Namespace: namespace, Name: name},
		Spec: api.PlacementSpec{
			NumberOfClusters: number(int64(1)), LabelConstraints: []string{"location is DE"}, RescheduleAfter: "0s",
		},
	}
}

func placementKey(namespace, name string) api.Key {
	return api.Key{Kind: api.KindPlacement, Namespace: namespace, Name: name}
}
