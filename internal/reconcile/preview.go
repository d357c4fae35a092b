package reconcile

import (
	"context"
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine"
)

// Preview answers what a placement would be decided if it were written now. The
// placement is complete as it would be stored: its metadata with uid and
// generation, and the status of the one it replaces, if there is one. Nothing is
// changed. The error is that of a spec that breaks a rule.
func (r *Reconciler) Preview(placement *api.Placement) (api.PlacementStatus, *api.Explanation, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	p := r.planner
	query, err := engine.NewQuery(placement)
	if err != nil {
		return api.PlacementStatus{}, nil, fmt.Errorf("preview: %w", err)
	}
	now := r.now()
	placed := &tracked{object: placement, query: query, status: placement.Status}
	var view *engine.View
	if c, ok := p.classes[query.Class]; ok {
		view = c.view
	} else {
		view = engine.NewView(p.fleet, query, p.others(), nil)
	}
	explained := engine.Explain(p.fleet, query, view.Ranking, p.others(), placed.present(), now)
	status, _ := engine.NewStatus(p.fleet, query, view, placement, explained.Outcome, now, explained.Summary)
	return status, explained.Render(), nil
}

// PreviewWorkload is Preview for a workload.
func (r *Reconciler) PreviewWorkload(workload *api.Workload) (api.WorkloadStatus, *api.Explanation, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	b := r.planner.bindings
	now := r.now()
	policy, reason := b.claims.Choose(workload, workload.Status.Policy)
	if policy == nil && workload.Spec.Allocation == nil {
		status, _, _ := engine.UnclaimedStatus(b.fleet, workload, reason, now)
		return status, unclaimed(workload, reason, b.fleet.Len(), now), nil
	}
	p, err := engine.NewPropagation(workload, policy)
	if err != nil {
		return api.WorkloadStatus{}, nil, fmt.Errorf("preview: %w", err)
	}
	views := make([]*engine.View, len(p.Groups))
	for i, group := range p.Groups {
		if s, ok := b.scopes[group.Query.Class]; ok {
			views[i] = s.view
		} else {
			views[i] = engine.NewView(b.fleet, group.Query, b.others(), nil)
		}
	}
	var binder engine.Binder
	out, explanation := binder.Explain(b.fleet, p, views, b.others(), engine.NewBound(workload, policy), now)
	explanation.PolicyReason = reason
	if policy != nil {
		explanation.Policy = policy.Path()
	}
	status, _, _ := engine.NewBindingStatus(b.fleet, p, workload, policy, out, now, func(group int) string {
		return engine.Fits(b.fleet, p.Groups[group].Query, b.others())
	})
	return status, explanation, nil
}

// PreviewPolicy answers what would become of every workload that follows a policy
// now, or would if the policy were written as given. Nothing is changed: it is a
// simulation.
func (r *Reconciler) PreviewPolicy(ctx context.Context, policy *api.PropagationPolicy) (map[api.Key]api.PreviewedWorkload, error) {
	s, release, err := r.newSimulation(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	p := newPlanner(s.logger)
	p.lose(s.lost)
	now := r.now()
	p.resume(s.sorted(), now)
	path := policy.Path()
	current := map[api.Key]api.WorkloadStatus{}
	for key, w := range p.bindings.workloads {
		current[key] = w.status
	}
	p.put(policy, 2)
	p.pass(now)
	out := map[api.Key]api.PreviewedWorkload{}
	for key, w := range p.bindings.workloads {
		if w.status.Policy != path && current[key].Policy != path {
			continue
		}
		object, _ := w.result().(*api.Workload)
		out[key] = api.PreviewedWorkload{
			Object: object, Current: current[key], Claimed: w.status.Policy == path,
			Summary: p.bindings.explain(w, now).Summary,
		}
	}
	return out, nil
}
