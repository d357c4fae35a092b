package split

import "github.com/scheduler/terraform-provider-scheduler/internal/api"

// Next is what the next pod of a workload is for, where live are those that there
// are. What lacks on on-demand nodes comes first, whatever there is on spot nodes.
// Pods beyond the target come and go with a rollout: they may be interrupted, unless
// nothing of the workload may.
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
