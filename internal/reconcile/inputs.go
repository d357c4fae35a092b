package reconcile

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// inputs are the kinds of objects that decisions are based on, but that are not decided themselves.
var inputs = map[api.Kind]inputKind{
	api.KindCloud: input[*api.Cloud]{
		change:  func(p *planner, key api.Key, c *api.Cloud) { p.clusters.changeCloud(key, c) },
		keep:    func(p *planner, key api.Key) (*api.Cloud, bool) { c, ok := p.clusters.objects[key.Name]; return c, ok },
		adopt:   func(p *planner, key api.Key, c *api.Cloud) { p.clusters.objects[key.Name] = c },
		observe: (*snapshot).observeCloud,
	},
	api.KindOpenStackProject: input[*api.OpenStackProject]{
		change: (*planner).changeProject,
		keep: func(p *planner, key api.Key) (*api.OpenStackProject, bool) {
			o, ok := p.projectObjects[key.Path()]
			return o, ok
		},
		adopt:   func(p *planner, key api.Key, o *api.OpenStackProject) { p.projectObjects[key.Path()] = o },
		observe: (*snapshot).observeProject,
	},
	api.KindMetric:          input[*api.Metric]{change: func(p *planner, key api.Key, o *api.Metric) { p.pending.changeMetric(key, o) }},
	api.KindMetricsProvider: input[*api.MetricsProvider]{change: func(p *planner, key api.Key, o *api.MetricsProvider) { p.pending.changeProvider(key, o) }},
	api.KindClusterSet:      input[*api.ClusterSet]{change: func(p *planner, key api.Key, o *api.ClusterSet) { p.pending.changeSet(key, o) }},
	api.KindMoveWindow:      input[*api.MoveWindow]{change: func(p *planner, key api.Key, o *api.MoveWindow) { p.pending.changeWindow(key, o) }},
	api.KindPlacementScore: input[*api.PlacementScore]{
		change: func(p *planner, key api.Key, o *api.PlacementScore) { p.pending.changeScore(key, o) },
		show:   func(_ *snapshot, score *api.PlacementScore, now time.Time) api.Object { return score.Observed(now) },
	},
	api.KindPropagationPolicy: input[*api.PropagationPolicy]{
		change: func(p *planner, key api.Key, o *api.PropagationPolicy) { p.bindings.changePolicy(key, o) },
		show: func(s *snapshot, policy *api.PropagationPolicy, _ time.Time) api.Object {
			return s.observePolicy(policy)
		},
	},
}

// inputKind is a row of the table, regardless of its type.
type inputKind interface {
	// take applies a new version of an object, or, if it is nil, its deletion.
	take(p *planner, key api.Key, object api.Object)
	kept(p *planner, key api.Key) api.Object
	adopted(p *planner, r *record)
	observed(s *snapshot, object api.Object) api.Object
	shown(s *snapshot, object api.Object, now time.Time) api.Object
}

// input is how one kind of object is applied.
type input[O api.Object] struct {
	change func(p *planner, key api.Key, object O)
	// keep returns an object from the records; nil if they contain none of the kind.
	keep func(p *planner, key api.Key) (O, bool)
	// adopt copies an object of a snapshot.
	adopt func(p *planner, key api.Key, object O)
	// observe completes a status by data that changes without a write; nil if there is none.
	observe func(s *snapshot, object O) api.Object
	// show returns an object for the result of a simulation; nil = as observed.
	show func(s *snapshot, object O, now time.Time) api.Object
}

func (i input[O]) take(p *planner, key api.Key, object api.Object) { i.change(p, key, as[O](object)) }

func (i input[O]) kept(p *planner, key api.Key) api.Object {
	if i.keep != nil {
		if object, ok := i.keep(p, key); ok {
			return object
		}
	}
	return nil
}

func (i input[O]) adopted(p *planner, r *record) { i.adopt(p, *r.key, as[O](r.object)) }

func (i input[O]) observed(s *snapshot, object api.Object) api.Object {
	if i.observe == nil {
		return object
	}
	return i.observe(s, as[O](object))
}

func (i input[O]) shown(s *snapshot, object api.Object, now time.Time) api.Object {
	if i.show == nil {
		return i.observed(s, object)
	}
	return i.show(s, as[O](object), now)
}
