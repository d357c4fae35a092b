package split

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Target is how the pods of a workload should be split.
type Target struct {
	// Mode is the mode in force, never api.ModeDefault.
	Mode api.DistributionMode
	Split
	// Clamped says that the requested count exceeds the replicas.
	Clamped bool
}

// defaultMode returns the mode of a workload that names none. Pods of a Deployment are assumed to
// be stateless and go to spot nodes. A StatefulSet with a single pod is cheap to keep on demand;
// with several, the majority must survive the end of all spot nodes at once, or the application
// loses its quorum.
func defaultMode(kind string, replicas int64) api.DistributionMode {
	switch {
	case kind != api.KindStatefulSet:
		return api.ModeAllInSpot
	case replicas == 1:
		return api.ModeAllInOnDemand
	}
	return api.ModeMajorityInOnDemand
}

// Targets returns how many pods of each type a workload should have.
//
// With 5 replicas: all_in_on_demand 5/0, all_in_spot 0/5, majority_in_on_demand 5/2 rounded down,
// plus 1: 3/2; custom "2" 2/3; custom "30%" 1.5 rounded up: 2/3. A count above the replicas takes
// all of them.
func Targets(kind string, replicas int64, d api.DistributionSpec) Target {
	replicas = max(replicas, 0)
	t := Target{Mode: d.Mode}
	if t.Mode == api.ModeDefault {
		t.Mode = defaultMode(kind, replicas)
	}
	switch t.Mode {
	case api.ModeDefault, api.ModeAllInSpot:
	case api.ModeAllInOnDemand:
		t.OnDemand = replicas
	case api.ModeMajorityInOnDemand:
		if replicas > 0 {
			t.OnDemand = replicas/2 + 1
		}
	case api.ModeCustom:
		count, percent, err := d.CustomOnDemand.Parse()
		switch {
		case err != nil: // rejected by validation; choose the safe side
			count = replicas
		case percent:
			// Round up: 34 % of 3 is 1.02, and 1 would be less than requested.
			count = (replicas*count + 99) / 100
		}
		t.OnDemand, t.Clamped = min(count, replicas), count > replicas
	}
	t.Spot = replicas - t.OnDemand
	return t
}

// TopologySpread returns the max_skew of a topology spread constraint over the node type label that
// approximates a split if no webhook can be installed: the Kubernetes scheduler then allows that
// many more pods on spot nodes than on on-demand ones. 10 replicas, 2 of them on on-demand nodes,
// differ by 6.
func TopologySpread(t Target) (maxSkew int64) { return max(1, t.Spot-t.OnDemand) }
