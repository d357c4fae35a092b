package reconcile

import (
	"context"

	"github.com/google/btree"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Preview returns the decision that a placement would get if it were written now. The placement
// must be complete as it would be stored: with UID and generation, and the status of the one it
// replaces, if any. Nothing is changed. The error is that of an invalid spec.
func (r *Reconciler) Preview(placement *api.Placement) (api.PlacementStatus, *api.Explanation, error) {
	previewed, explanation, err := preview(r, placement)
	if err != nil {
		return api.PlacementStatus{}, nil, err
	}
	return previewed.Status, explanation, nil
}

// PreviewWorkload is Preview for a workload. If it does not fit, but may displace others, it is
// simulated: what it displaces depends on all of them.
func (r *Reconciler) PreviewWorkload(ctx context.Context, workload *api.Workload) (api.WorkloadStatus, *api.Explanation, error) {
	previewed, explanation, err := preview(r, workload)
	if err != nil {
		return api.WorkloadStatus{}, nil, err
	}
	s := r.current.Load()
	policy, _ := s.policies.Choose(workload, workload.Status.Policy)
	scheduled := api.FindCondition(previewed.Status.Conditions, api.ConditionScheduled)
	if policy == nil || policy.Spec.WorkloadPreemption != api.WorkloadPreemptionLowerPriority || scheduled == nil || scheduled.Status == api.ConditionTrue {
		return previewed.Status, explanation, nil
	}
	release, err := r.mayFork(ctx)
	if err != nil {
		return api.WorkloadStatus{}, nil, err
	}
	defer release()
	now := r.now()
	p, _ := r.fork(now)
	p.put(workload, laid)
	p.limit = &limit{ctx: ctx, most: maxChosen}
	p.pass(now)
	if err := p.limit.err(); err != nil {
		return api.WorkloadStatus{}, nil, err
	}
	w, ok := p.bindings.workloads[api.KeyOf(workload)]
	if !ok {
		return previewed.Status, explanation, nil
	}
	return w.status, p.bindings.explain(w, now), nil
}

// preview uses the row of an object's kind.
func preview[O api.Object](r *Reconciler, object O) (O, *api.Explanation, error) {
	previewed, explanation, err := decidedAs(object.ObjectKind()).previewed(r.current.Load(), object, r.now())
	return as[O](previewed), explanation, err
}

// PreviewPolicy returns what would happen to every workload that follows a policy now, or would if
// the policy were written as given. Nothing is changed: it is a simulation.
func (r *Reconciler) PreviewPolicy(ctx context.Context, policy *api.PropagationPolicy) (map[api.Key]api.PreviewedWorkload, error) {
	release, err := r.mayFork(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	now := r.now()
	p, _ := r.fork(now)
	before, path := p.snapshot(nil), policy.Path()
	p.put(policy, laid)
	p.limit = &limit{ctx: ctx, most: maxChosen}
	p.pass(now)
	out := map[api.Key]api.PreviewedWorkload{}
	for _, followers := range [2]*btree.BTreeG[follower]{before.followers, p.bindings.followers} {
		for key := range following(followers, path) {
			if err := p.limit.err(); err != nil {
				return nil, err
			}
			w := p.bindings.workloads[key]
			was, _ := before.get(key)
			object, _ := w.result().(*api.Workload)
			out[key] = api.PreviewedWorkload{
				Object: object, Current: as[*api.Workload](was.object).Status, Claimed: w.status.Policy == path,
				Summary: p.bindings.explain(w, now).Summary,
			}
		}
	}
	return out, nil
}
