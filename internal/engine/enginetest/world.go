// Package enginetest is test code: random fleets for the tests of the engine, drawn either by a
// property test, which can shrink them, or from a fixed seed.
package enginetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// Epoch is the time around which all tests take place.
var Epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// World is a fleet as plain objects: the input of the engine, and everything that the oracle uses.
type World struct {
	Now       time.Time
	Clusters  map[string]*api.Cluster
	Metrics   map[api.Key]*api.Metric
	Providers map[api.Key]*api.MetricsProvider
	Sets      map[string]*api.ClusterSet
	Scores    map[api.Key]*api.PlacementScore
}

// NewWorld returns an empty world.
func NewWorld() *World {
	return &World{
		Now: Epoch, Clusters: map[string]*api.Cluster{},
		Metrics: map[api.Key]*api.Metric{}, Providers: map[api.Key]*api.MetricsProvider{},
		Sets: map[string]*api.ClusterSet{}, Scores: map[api.Key]*api.PlacementScore{},
	}
}

// Changes returns changes that put all objects of the world.
func (w *World) Changes() columns.Changes {
	return columns.Changes{Clusters: w.Clusters, Metrics: w.Metrics, Providers: w.Providers, Sets: w.Sets, Scores: w.Scores}
}

// Fleet builds the world from scratch.
func (w *World) Fleet() *columns.Fleet {
	f, _ := (&columns.Fleet{}).With(w.Changes(), w.Now)
	return f
}

// Shuffled builds the world with its clusters in another order, adding and removing others in
// between.
func (w *World) Shuffled(d Dice) *columns.Fleet {
	names := w.Names()
	for i := range names {
		j := d(i + 1)
		names[i], names[j] = names[j], names[i]
	}
	f := &columns.Fleet{}
	for i, name := range names {
		ghost := fmt.Sprintf("ghost%d", i%3)
		changes := columns.Changes{Clusters: map[string]*api.Cluster{name: w.Clusters[name], ghost: RollCluster(d, ghost, false)}}
		if i%2 == 1 {
			changes.Clusters[ghost] = nil
		}
		f, _ = f.With(changes, w.Now)
	}
	gone := map[string]*api.Cluster{"ghost0": nil, "ghost1": nil, "ghost2": nil}
	rest := w.Changes()
	rest.Clusters = gone
	f, _ = f.With(rest, w.Now)
	return f
}

// Apply applies changes to the world.
func (w *World) Apply(c columns.Changes, now time.Time) {
	w.Now = now
	lay(w.Clusters, c.Clusters)
	lay(w.Metrics, c.Metrics)
	lay(w.Providers, c.Providers)
	lay(w.Sets, c.Sets)
	lay(w.Scores, c.Scores)
}

func lay[K comparable, V any](base, over map[K]*V) {
	for k, v := range over {
		if v == nil {
			delete(base, k)
		} else {
			base[k] = v
		}
	}
}

// Names returns the sorted names of the clusters.
func (w *World) Names() []string { return slices.Sorted(maps.Keys(w.Clusters)) }

// Gauge adds a metric of the provider "p" as a collector would store it: with the value, or with
// the reason why there is none.
func (w *World) Gauge(name string, low, high, value float64) *api.Metric {
	w.Providers[api.Key{Kind: api.KindMetricsProvider, Name: "p"}] = &api.MetricsProvider{Metadata: api.Metadata{Name: "p"}}
	m := &api.Metric{Metadata: api.Metadata{Name: name}}
	m.Spec = api.MetricSpec{Min: &low, Max: &high, MetricsProvider: api.MetricProviderRef{Name: "p", Metric: name}}
	m.SetDefaults()
	available := api.Condition{Type: api.ConditionAvailable, Status: api.ConditionTrue, Reason: api.ReasonAvailable}
	if _, err := columns.Normalize(m.Spec, value); err != nil {
		available.Status, available.Reason, available.Message = api.ConditionFalse, api.ReasonInvalidMetric, err.Error()
	} else {
		m.Status.Value, m.Status.ObservedAt = &value, &w.Now
	}
	m.Status.Conditions = []api.Condition{available}
	w.Metrics[api.KeyOf(m)] = m
	return m
}

// Cluster adds a cluster with global metrics by weight.
func (w *World) Cluster(name string, weights map[string]float64) *api.Cluster {
	c := &api.Cluster{Metadata: api.Metadata{Name: name, UID: name}}
	for metric, weight := range weights {
		c.Spec.Metrics = append(c.Spec.Metrics, api.MetricRef{Name: metric, Weight: &weight})
	}
	slices.SortFunc(c.Spec.Metrics, func(a, b api.MetricRef) int { return strings.Compare(a.Name, b.Name) })
	w.Clusters[name] = c
	return c
}

// NewPlacement returns a placement for one cluster, with defaults.
func NewPlacement(name string) *api.Placement {
	p := &api.Placement{Metadata: api.Metadata{Name: name, Namespace: "default", UID: "uid-" + name, Generation: 1}}
	p.Spec.NumberOfClusters = new(int64(1))
	p.SetDefaults()
	return p
}
