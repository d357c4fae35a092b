package reconcile

import "github.com/scheduler/terraform-provider-scheduler/internal/api"

// ObservePolicy returns a copy of a policy with its status: the bindings that currently follow it,
// by name of the workload.
func (r *Reconciler) ObservePolicy(policy *api.PropagationPolicy) *api.PropagationPolicy {
	s := r.current.Load()
	observed := s.observePolicy(policy)
	if faulted, ok := s.faulted(observed).(*api.PropagationPolicy); ok {
		return faulted
	}
	return observed
}

func (s *snapshot) observePolicy(policy *api.PropagationPolicy) *api.PropagationPolicy {
	c := *policy
	c.Status = api.PropagationPolicyStatus{ObservedGeneration: policy.Metadata.Generation}
	for key := range following(s.followers, policy.Path()) {
		d, _ := s.get(key)
		w, ok := d.object.(*api.Workload)
		if !ok {
			continue
		}
		c.Status.Bindings = append(c.Status.Bindings, api.Binding{
			Workload: key.Path(), Clusters: w.Status.Clusters,
			ObservedAffinity: w.Status.ObservedAffinity, Conditions: w.Status.Conditions,
		})
	}
	return &c
}
