package ledger_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// TestFrozenLedgerDoesNotChange checks that a frozen ledger keeps its values whatever happens to reservations and
// counts later, and that freezing does not affect the live one.
func TestFrozenLedgerDoesNotChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type copied struct {
			reserved *ledger.Reservations
			load     *ledger.Load
			said     []string
		}
		var (
			f        = &columns.Fleet{}
			reserved = [2]*ledger.Reservations{ledger.NewReservations(), ledger.NewReservations()} // the second is never frozen
			load     = [2]*ledger.Load{ledger.NewLoad(), ledger.NewLoad()}
			counts   = map[string]int{}
			frozen   []copied
			names    = []string{"c1", "c2", "c3", "c4"}
			owners   = []api.Key{{Kind: api.KindPlacement, Namespace: "a", Name: "p"}, {Kind: api.KindWorkload, Namespace: "a", Name: "w"}, {Kind: api.KindWorkload, Namespace: "b", Name: "w"}}
		)
		for step := range rapid.IntRange(1, 40).Draw(t, "steps") {
			name := rapid.SampledFrom(names).Draw(t, "cluster")
			owner := rapid.SampledFrom(owners).Draw(t, "owner")
			resource := rapid.SampledFrom([]string{"cpu", "memory"}).Draw(t, "resource")
			units := rapid.Int64Range(1, 3).Draw(t, "units")
			at := enginetest.Epoch.Add(time.Duration(rapid.IntRange(-5, 5).Draw(t, "at")) * time.Second)
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				c := &api.Cluster{Metadata: api.Metadata{Name: name, UID: name}}
				c.Spec.Allocatable = api.Quantities{"cpu": "100", "memory": "100"}
				c.Status.CapacityReportedAt = &at
				changes := columns.Changes{Clusters: map[string]*api.Cluster{name: c}}
				if rapid.Bool().Draw(t, "gone") {
					changes.Clusters[name] = nil
				}
				next, delta := f.With(changes, enginetest.Epoch)
				f = next
				for i := range reserved {
					reserved[i].Sync(f, delta)
					load[i].Sync(f, delta)
				}
			case 1, 2:
				needs := ledger.Needs{{Resource: resource, Text: api.Quantity(fmt.Sprint(units)), Milli: amount.Units(units)}}
				for i := range reserved {
					reserved[i].HoldReplicas(f, owner, needs, name, units, at)
				}
			case 3:
				for i := range reserved {
					reserved[i].Release(f, owner, name)
				}
			case 4:
				had := counts[name]
				for i := range load {
					if had > 0 && step%2 == 0 {
						load[i].Drop(f, name)
					} else {
						load[i].Add(f, name)
					}
				}
				if had > 0 && step%2 == 0 {
					counts[name]--
				} else {
					counts[name]++
				}
			case 5:
				frozen = append(frozen, copied{reserved[0].Freeze(), load[0].Freeze(), saying(reserved[0], load[0], owners, names)})
			}
			if a, b := saying(reserved[0], load[0], owners, names), saying(reserved[1], load[1], owners, names); !slices.Equal(a, b) {
				t.Fatalf("with an earlier freeze\n%q, without\n%q", a, b)
			}
			for _, c := range frozen {
				if now := saying(c.reserved, c.load, owners, names); !slices.Equal(now, c.said) {
					t.Fatalf("the frozen copy has\n%q, want as before\n%q", now, c.said)
				}
			}
		}
	})
}

// saying returns everything that can be read from reservations and counts.
func saying(r *ledger.Reservations, l *ledger.Load, owners []api.Key, names []string) (said []string) {
	for _, owner := range owners {
		for _, name := range names {
			if h, ok := r.Held(owner, name); ok {
				said = append(said, fmt.Sprintf("%s holds %+v on %s", owner, *h, name))
			}
		}
	}
	for _, resource := range []string{"cpu", "memory"} {
		for row := range 8 {
			if n := ledger.At(r.Column(resource), row); n != (amount.Milli{}) {
				said = append(said, fmt.Sprintf("%s %d: %s", resource, row, n))
			}
		}
	}
	seen := l.Without(nil, 8)
	said = append(said, fmt.Sprint(seen.Low, seen.High))
	for row := range 8 {
		said = append(said, fmt.Sprint(seen.At(row)))
	}
	return said
}
