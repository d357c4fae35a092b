package reconcile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/binding"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// workloads is how workloads are decided: bindings determine on which clusters they run, and with
// how many replicas.
var workloads = row[*api.Workload, *workloadBinding]{
	kind: api.KindWorkload,
	find: func(p *planner, key api.Key) (*workloadBinding, bool) {
		w, ok := p.bindings.workloads[key]
		return w, ok
	},
	put: func(p *planner, w *workloadBinding, object *api.Workload, specRevision int64) {
		p.bindings.putWorkload(w, object, specRevision)
	},
	seen:   func(p *planner, w *workloadBinding, object *api.Workload) { p.bindings.seeWorkload(w, object) },
	agrees: func(w *workloadBinding, stored *api.Workload) bool { return w.status.Agrees(&stored.Status) },
	remove: func(p *planner, key api.Key) { p.bindings.removeWorkload(key) },
	adopt:  func(p *planner, w *api.Workload, r *record) { p.bindings.adoptWorkload(w, r) },
	holds:  holdsOfWorkload,
	order:  turnOfWorkload,
	decide: func(p *planner, w *workloadBinding, now time.Time) (changed, moved bool) {
		return p.bindings.decide(w, now)
	},
	rests:   func(p *planner, w *workloadBinding) api.Key { return p.lost.underWorkload(w) },
	explain: (*snapshot).explainWorkload,
	preview: (*snapshot).previewWorkload,
	where: func(w *api.Workload) where {
		return where{clusters: w.Status.Names(), replicas: w.Status.ReplicasByCluster()}
	},
	observe: func(_ *snapshot, w *api.Workload) api.Object { return w },
	simulate: simulated[*api.Workload, *workloadBinding]{
		// A workload without its own binding in the request is changed as in the live server: its
		// replicas hold what they were chosen for, not what the new version requests; otherwise
		// they would count as fitting wherever they are.
		startsOver: func(w, was *api.Workload) bool { return !reflect.DeepEqual(w.Status, was.Status) },
		complete: func(_ *simulation, w, _ *api.Workload, given given, _ time.Time) {
			if given.status != nil {
				completeBinding(w, given.answers())
			}
		},
		// A binding is explained while it is made.
		explainBefore: func(p *planner, w *workloadBinding, _ time.Time) *api.Explanation {
			if p.bindings.explained == nil {
				p.bindings.explained = map[api.Key]*api.Explanation{}
			}
			p.bindings.explained[w.key()] = nil
			return nil
		},
		explainAfter: func(p *planner, w *workloadBinding, _ *api.Explanation, _ bool, now time.Time) *api.Explanation {
			if x := p.bindings.explained[w.key()]; x != nil {
				return x
			}
			return p.bindings.explain(w, now)
		},
		shown: func(_ *simulation, w *api.Workload, _ *api.Explanation) *api.Workload { return w },
	},
}

func (w *workloadBinding) kind() decidedKind  { return &workloads }
func (w *workloadBinding) key() api.Key       { return api.KeyOf(w.object) }
func (w *workloadBinding) stored() api.Object { return w.object }
func (w *workloadBinding) wants() bool        { return w.pending }
func (w *workloadBinding) revision() int64    { return w.specRevision }

func (w *workloadBinding) part() func(api.Object) { return nil }

// result returns the workload with its status as last decided.
func (w *workloadBinding) result() api.Object {
	object := *w.object
	object.Status = w.status
	return &object
}

// explainWorkload explains where a workload runs.
func (s *snapshot) explainWorkload(w *api.Workload, r *record, now time.Time) *api.Explanation {
	policy, reason := r.binding.policy, r.binding.reason
	if binding.Directed(w, policy) {
		if p, err := binding.NewPropagation(w, policy); err == nil {
			_, x := s.bind(p, w, policy, reason, now)
			return x
		}
	}
	if reason == "" {
		_, reason = s.policies.Choose(w, w.Status.Policy)
	}
	return unclaimed(w, reason, s.fleet.Len(), now)
}

// previewWorkload returns a workload with the binding that it would get.
func (s *snapshot) previewWorkload(w *api.Workload, now time.Time) (*api.Workload, *api.Explanation, error) {
	policy, reason := s.policies.Choose(w, w.Status.Policy)
	previewed := *w
	if !binding.Directed(w, policy) {
		previewed.Status, _, _ = binding.UnclaimedStatus(s.fleet, w, reason, now)
		return &previewed, unclaimed(w, reason, s.fleet.Len(), now), nil
	}
	p, err := binding.NewPropagation(w, policy)
	if err != nil {
		return nil, nil, fmt.Errorf("preview: %w", err)
	}
	out, explanation := s.bind(p, w, policy, reason, now)
	previewed.Status, _, _ = binding.NewBindingStatus(s.fleet, p, w, policy, out, now, func(group int) string {
		return placement.Sentence(s.fleet, p.Groups[group].Query, s.others())
	})
	if previewed.Status.DecisionRevision != w.Status.DecisionRevision {
		previewed.Status.Cause = s.writtenCause(w, &w.Status)
	}
	return &previewed, explanation, nil
}

// bind returns where a workload would go, and the explanation.
func (s *snapshot) bind(p *binding.Propagation, w *api.Workload, policy *api.PropagationPolicy, reason string, now time.Time) (binding.Binding, *api.Explanation) {
	views := make([]*placement.View, len(p.Groups))
	for i, group := range p.Groups {
		views[i] = s.view(group.Query)
	}
	var binder binding.Binder
	out, x := binder.Explain(s.fleet, p, views, s.others(), binding.NewPresent(w, policy), now)
	x.PolicyReason = reason
	if policy != nil {
		x.Policy = policy.Path()
	}
	return out, x
}

// completeBinding adds what a hand-written previous binding omits, as completeDecision does for a
// placement.
func completeBinding(w *api.Workload, answered bool) {
	status := &w.Status
	slices.SortFunc(status.Clusters, func(a, b api.WorkloadCluster) int { return strings.Compare(a.Name, b.Name) })
	if answered && status.ObservedGeneration == 0 && len(status.Clusters) > 0 {
		status.ObservedGeneration = w.Metadata.Generation
	}
}
