package reconcile

import (
	"maps"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// ObservePolicy returns a copy of a policy with its status: the bindings that
// follow it now, by the names of the workloads.
func (r *Reconciler) ObservePolicy(policy *api.PropagationPolicy) *api.PropagationPolicy {
	r.mu.RLock()
	defer r.mu.RUnlock()
	observed := r.planner.bindings.observe(policy)
	if faulted, ok := r.lot.faulted(observed).(*api.PropagationPolicy); ok {
		return faulted
	}
	return observed
}

func (b *bindings) observe(policy *api.PropagationPolicy) *api.PropagationPolicy {
	c := *policy
	c.Status = api.PropagationPolicyStatus{ObservedGeneration: policy.Metadata.Generation}
	following := slices.SortedFunc(maps.Keys(b.followers[policy.Path()]), func(a, b *bound) int { return a.key().Compare(b.key()) })
	for _, w := range following {
		c.Status.Bindings = append(c.Status.Bindings, api.Binding{
			Workload: w.key().Path(), Clusters: w.status.Clusters,
			ObservedAffinity: w.status.ObservedAffinity, Conditions: w.status.Conditions,
		})
	}
	return &c
}
