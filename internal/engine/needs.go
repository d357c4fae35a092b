package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Needs are the amounts that one replica of a workload needs, by the names of the
// resources. Immutable.
type Needs []request

// NewNeeds compiles what a replica needs. The error is that of a spec that never
// should have passed validation.
func NewNeeds(w *api.Workload) (Needs, error) {
	needs := make(Needs, 0, len(w.Spec.ReplicaRequests))
	for _, name := range slices.Sorted(maps.Keys(w.Spec.ReplicaRequests)) {
		milli, err := w.Spec.ReplicaRequests[name].Milli()
		if err != nil {
			return nil, fmt.Errorf("%s: spec.replica_requests[%q]: %w", api.KeyOf(w), name, err)
		}
		if milli > 0 && name != resourcePods {
			needs = append(needs, request{name, w.Spec.ReplicaRequests[name], milli})
		}
	}
	return needs, nil
}

// Equal reports whether two replicas need the same.
func (n Needs) Equal(other Needs) bool { return slices.EqualFunc(n, other, sameAmount) }

// Compete reports whether replicas with one need leave less room on a cluster for
// those with the other.
func (n Needs) Compete(f *Fleet, row int, other Needs) bool {
	pods := roomColumn{uncommitted: f.uncommitted[resourcePods]}
	if _, reported := pods.left(row); reported {
		return true
	}
	return slices.ContainsFunc(n, func(a request) bool {
		return slices.ContainsFunc(other, func(b request) bool { return a.resource == b.resource })
	})
}

// sameAmount reports whether two amounts are of one resource and equal.
func sameAmount(a, b request) bool { return a.resource == b.resource && a.milli == b.milli }

// of is what a number of replicas needs.
func (n Needs) of(replicas int64) []request {
	if replicas == 0 {
		return nil
	}
	held := make([]request, 0, len(n)+1)
	for _, r := range n {
		held = append(held, request{resource: r.resource, milli: times(r.milli, replicas)})
	}
	return append(held, request{resource: resourcePods, milli: times(1000, replicas)})
}

func times(milli, replicas int64) int64 {
	if replicas > 0 && milli > maxAmount/replicas {
		return maxAmount
	}
	return milli * replicas
}

// request is an amount of a resource in thousandths.
type request struct {
	resource string
	text     api.Quantity
	milli    int64
}
