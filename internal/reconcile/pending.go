package reconcile

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// pending are the changes of the fleet that the next pass applies.
type pending struct {
	columns.Changes
	basis *basis
	hosts [2]*hosts // whose metrics follow
}

// metric returns the latest metric with a key, or nil.
func (p *pending) metric(key api.Key) *api.Metric {
	if m, pending := p.Metrics[key]; pending {
		return m
	}
	return p.basis.fleet.Metric(key)
}

// provider returns the latest metrics provider with a key, or nil.
func (p *pending) provider(key api.Key) *api.MetricsProvider {
	if m, pending := p.Providers[key]; pending {
		return m
	}
	return p.basis.fleet.Provider(key)
}

// window returns the latest move window with a key, or nil.
func (p *pending) window(key api.Key) *api.MoveWindow {
	if w, pending := p.Windows[key]; pending {
		return w
	}
	return p.basis.fleet.MoveWindows()[key]
}

// pend records a change of the fleet that the next pass applies.
func pend[K comparable, O any](changes *map[K]O, key K, object O) {
	if *changes == nil {
		*changes = map[K]O{}
	}
	(*changes)[key] = object
}

func (p *pending) changeCluster(name string, c *api.Cluster) { pend(&p.Clusters, name, c) }

func (p *pending) changeMetric(key api.Key, m *api.Metric) {
	pend(&p.Metrics, key, m)
	for _, h := range p.hosts {
		h.changeMetric(key, m)
	}
}

func (p *pending) changeProvider(key api.Key, m *api.MetricsProvider) {
	pend(&p.Providers, key, m)
	for _, h := range p.hosts {
		h.changeProvider(key, m)
	}
}

func (p *pending) changeSet(key api.Key, s *api.ClusterSet) { pend(&p.Sets, key.Name, s) }

func (p *pending) changeWindow(key api.Key, w *api.MoveWindow) { pend(&p.Windows, key, w) }

func (p *pending) changeScore(key api.Key, s *api.PlacementScore) { pend(&p.Scores, key, s) }
