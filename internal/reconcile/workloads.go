package reconcile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine"
)

// workloads is how workloads are decided: bindings say on which clusters they run,
// and with how many replicas.
var workloads = row[*api.Workload, *bound]{
	kind: api.KindWorkload,
	find: func(p *planner, key api.Key) (*bound, bool) {
		w, ok := p.bindings.workloads[key]
		return w, ok
	},
	put: func(p *planner, w *bound, object *api.Workload, specRevision int64) {
		p.bindings.putWorkload(w, object, specRevision)
	},
	seen:   func(p *planner, w *bound, object *api.Workload) { p.bindings.seeWorkload(w, object) },
	remove: func(p *planner, key api.Key) { p.bindings.removeWorkload(key) },
	turn:   turnOfWorkload,
	decide: func(p *planner, w *bound, now time.Time) (changed, moved bool) {
		return p.bindings.decide(w, now)
	},
	rests: func(p *planner, w *bound) api.Key { return p.lost.underWorkload(w) },
	explain: func(p *planner, w *bound, now time.Time) *api.Explanation {
		return p.bindings.explain(w, now)
	},
	preview: func(p *planner, object *api.Workload, now time.Time) (*api.Workload, *api.Explanation, error) {
		return p.bindings.preview(object, now)
	},
	where: func(w *api.Workload) where {
		at := where{clusters: w.Status.Names(), replicas: map[string]int64{}}
		for _, c := range w.Status.Clusters {
			at.replicas[c.Name] = c.Replicas
		}
		return at
	},
	observe: func(_ *planner, w *api.Workload) api.Object { return w },
	simulate: simulated[*api.Workload, *bound]{
		// A workload that brings no binding of its own is changed as it is live: what its
		// replicas hold is what they were chosen for, not what the new version requests,
		// or they would count as fitting wherever they are.
		startsOver: func(w, was *api.Workload) bool { return !reflect.DeepEqual(w.Status, was.Status) },
		complete: func(_ *simulation, w, _ *api.Workload, given given, _ time.Time) {
			if given.status != nil {
				completeBinding(w, given.answers())
			}
		},
		// A binding is explained while it is made.
		foresee: func(p *planner, w *bound, _ time.Time) *api.Explanation {
			if p.bindings.explained == nil {
				p.bindings.explained = map[api.Key]*api.Explanation{}
			}
			p.bindings.explained[w.key()] = nil
			return nil
		},
		recall: func(p *planner, w *bound, _ *api.Explanation, _ bool, now time.Time) *api.Explanation {
			if x := p.bindings.explained[w.key()]; x != nil {
				return x
			}
			return p.bindings.explain(w, now)
		},
		shown: func(_ *simulation, w *api.Workload, _ *api.Explanation) *api.Workload { return w },
	},
}

func (w *bound) kind() decidedKind  { return &workloads }
func (w *bound) key() api.Key       { return api.KeyOf(w.object) }
func (w *bound) stored() api.Object { return w.object }
func (w *bound) wants() bool        { return w.pending }
func (w *bound) revision() int64    { return w.specRevision }

// result is the workload with its status as last decided.
func (w *bound) result() api.Object {
	object := *w.object
	object.Status = w.status
	return &object
}

// preview is a workload with the binding that it would get.
func (b *bindings) preview(w *api.Workload, now time.Time) (*api.Workload, *api.Explanation, error) {
	policy, reason := b.claims.Choose(w, w.Status.Policy)
	previewed := *w
	if !engine.Directed(w, policy) {
		previewed.Status, _, _ = engine.UnclaimedStatus(b.fleet, w, reason, now)
		return &previewed, unclaimed(w, reason, b.fleet.Len(), now), nil
	}
	p, err := engine.NewPropagation(w, policy)
	if err != nil {
		return nil, nil, fmt.Errorf("preview: %w", err)
	}
	views := make([]*engine.View, len(p.Groups))
	for i, group := range p.Groups {
		views[i] = b.scopes.viewOf(b.picture, group.Query)
	}
	var binder engine.Binder
	out, explanation := binder.Explain(b.fleet, p, views, b.others(), engine.NewBound(w, policy), now)
	explanation.PolicyReason = reason
	if policy != nil {
		explanation.Policy = policy.Path()
	}
	previewed.Status, _, _ = engine.NewBindingStatus(b.fleet, p, w, policy, out, now, func(group int) string {
		return engine.Fits(b.fleet, p.Groups[group].Query, b.others())
	})
	return &previewed, explanation, nil
}

// completeBinding fills in what a hand-written previous binding leaves out, as
// completeDecision does for a placement.
func completeBinding(w *api.Workload, answered bool) {
	status := &w.Status
	slices.SortFunc(status.Clusters, func(a, b api.WorkloadCluster) int { return strings.Compare(a.Name, b.Name) })
	if answered && status.ObservedGeneration == 0 && len(status.Clusters) > 0 {
		status.ObservedGeneration = w.Metadata.Generation
	}
}
