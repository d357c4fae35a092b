package ledger

import (
	"fmt"
	"maps"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// Needs are the amounts that one replica of a workload needs. Immutable.
type Needs []Amount

// NewNeeds compiles the needs of a replica. It fails only for a spec that should not have passed
// validation.
func NewNeeds(w *api.Workload) (Needs, error) {
	needs := make(Needs, 0, len(w.Spec.ReplicaRequests))
	for _, name := range slices.Sorted(maps.Keys(w.Spec.ReplicaRequests)) {
		milli, err := w.Spec.ReplicaRequests[name].Milli()
		if err != nil {
			return nil, fmt.Errorf("%s: spec.replica_requests[%q]: %w", api.KeyOf(w), name, err)
		}
		if milli.Positive() && name != columns.ResourcePods {
			needs = append(needs, Amount{name, w.Spec.ReplicaRequests[name], milli})
		}
	}
	return needs, nil
}

// Equal reports whether two needs are equal.
func (n Needs) Equal(other Needs) bool { return slices.EqualFunc(n, other, sameAmount) }

// Compete reports whether replicas with these needs reduce the room for replicas with the others.
func (n Needs) Compete(f *columns.Fleet, row int, other Needs) bool {
	pods := RoomColumn{uncommitted: f.Uncommitted()[columns.ResourcePods]}
	if _, reported := pods.left(row); reported {
		return true
	}
	return slices.ContainsFunc(n, func(a Amount) bool {
		return slices.ContainsFunc(other, func(b Amount) bool { return a.Resource == b.Resource })
	})
}

// sameAmount reports whether two amounts have the same resource and value.
func sameAmount(a, b Amount) bool { return a.Resource == b.Resource && a.Milli == b.Milli }

// Of returns what a number of replicas need.
func (n Needs) Of(replicas int64) []Amount {
	if replicas == 0 {
		return nil
	}
	held := make([]Amount, 0, len(n)+1)
	for _, r := range n {
		held = append(held, Amount{Resource: r.Resource, Milli: r.Milli.Times(replicas)})
	}
	return append(held, Amount{Resource: columns.ResourcePods, Milli: amount.Units(replicas)})
}

// Amount is an amount of a resource in thousandths.
type Amount struct {
	Resource string
	Text     api.Quantity
	Milli    amount.Milli
}
