package split

import "github.com/scheduler/terraform-provider-scheduler/internal/api"

// Next returns the type of the next pod of a workload, given its live pods. Missing on-demand pods
// come first. Pods beyond the target are temporary, as in a rollout, and may be interrupted, unless
// no pod of the workload may.
func Next(target Target, live Split) NodeType {
	switch {
	case live.OnDemand < target.OnDemand:
		return OnDemand
	case live.Spot < target.Spot:
		return Spot
	case target.Mode == api.ModeAllInOnDemand:
		return OnDemand
	}
	return Spot
}
