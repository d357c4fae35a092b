package httpapi

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

// boundPolicy is a policy with its bindings as a reader may see them. It is
// always a copy: bindings change without a write to the policy, so it is never
// shown as it is stored.
func (s *Server) boundPolicy(who auth.Identity, policy *api.PropagationPolicy) *api.PropagationPolicy {
	return who.VisibleBindings(s.decisions.ObservePolicy(policy))
}
