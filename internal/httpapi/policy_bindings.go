package httpapi

import (
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// boundPolicy is a policy with its bindings as a reader may see them. It is
// always a copy: bindings change without a write to the policy, so it is never
// shown as it is stored.
func (s *Server) boundPolicy(who identity, policy *api.PropagationPolicy) *api.PropagationPolicy {
	return visibleBindings(who, s.decisions.ObservePolicy(policy))
}

// visibleBindings is a copy of a policy without the bindings of workloads that
// the reader may not know of.
func visibleBindings(who identity, policy *api.PropagationPolicy) *api.PropagationPolicy {
	shown := *policy
	if who.bound() {
		shown.Status.Bindings = slices.DeleteFunc(slices.Clone(policy.Status.Bindings), func(b api.Binding) bool {
			return !who.seesWorkload(b.Workload)
		})
	}
	return &shown
}
