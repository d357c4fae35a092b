package reconcile

import (
	"context"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Preview answers what a placement would be decided if it were written now. The
// placement is complete as it would be stored: its metadata with uid and
// generation, and the status of the one it replaces, if there is one. Nothing is
// changed. The error is that of a spec that breaks a rule.
func (r *Reconciler) Preview(placement *api.Placement) (api.PlacementStatus, *api.Explanation, error) {
	previewed, explanation, err := preview(r, placement)
	if err != nil {
		return api.PlacementStatus{}, nil, err
	}
	return previewed.Status, explanation, nil
}

// PreviewWorkload is Preview for a workload.
func (r *Reconciler) PreviewWorkload(workload *api.Workload) (api.WorkloadStatus, *api.Explanation, error) {
	previewed, explanation, err := preview(r, workload)
	if err != nil {
		return api.WorkloadStatus{}, nil, err
	}
	return previewed.Status, explanation, nil
}

// preview asks the row of an object's kind.
func preview[O api.Object](r *Reconciler, object O) (O, *api.Explanation, error) {
	previewed, explanation, err := decidedAs(object.ObjectKind()).previewed(r.current.Load(), object, r.now())
	return as[O](previewed), explanation, err
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
