package reconcile

import "github.com/scheduler/terraform-provider-scheduler/internal/api"

// inputs are the kinds of objects that are not decided and that decisions are made
// on: each with what takes in a new version of one, or, with nil, that it is gone.
var inputs = map[api.Kind]func(p *planner, key api.Key, object api.Object){
	api.KindCloud:             input((*planner).changeCloud),
	api.KindOpenStackProject:  input((*planner).changeProject),
	api.KindMetric:            input((*planner).changeMetric),
	api.KindMetricsProvider:   input((*planner).changeProvider),
	api.KindClusterSet:        input((*planner).changeSet),
	api.KindPlacementScore:    input((*planner).changeScore),
	api.KindPropagationPolicy: input((*planner).changePolicy),
}

// input has a function take objects of its own kind as any.
func input[O api.Object](change func(p *planner, key api.Key, object O)) func(*planner, api.Key, api.Object) {
	return func(p *planner, key api.Key, object api.Object) { change(p, key, as[O](object)) }
}

// pend notes a change of the fleet that is applied with the next pass.
func pend[K comparable, O any](changes *map[K]O, key K, object O) {
	if *changes == nil {
		*changes = map[K]O{}
	}
	(*changes)[key] = object
}

func (p *planner) changeCluster(name string, c *api.Cluster) { pend(&p.pending.Clusters, name, c) }

func (p *planner) changeMetric(key api.Key, m *api.Metric) {
	pend(&p.pending.Metrics, key, m)
	change(p.figures.metrics, key, m)
	p.clouds.changeMetric(key, m)
	p.projects.changeMetric(key, m)
}

func (p *planner) changeProvider(key api.Key, m *api.MetricsProvider) {
	pend(&p.pending.Providers, key, m)
	change(p.figures.providers, key, m)
	p.clouds.changeProvider(key, m)
	p.projects.changeProvider(key, m)
}

func (p *planner) changeSet(key api.Key, s *api.ClusterSet) { pend(&p.pending.Sets, key.Name, s) }

func (p *planner) changeScore(key api.Key, s *api.PlacementScore) { pend(&p.pending.Scores, key, s) }

func (p *planner) changePolicy(key api.Key, policy *api.PropagationPolicy) {
	p.bindings.changePolicy(key, policy)
}
