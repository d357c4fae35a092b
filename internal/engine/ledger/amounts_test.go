package ledger_test

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// units reads a whole number of units as Kubernetes does.
func units(t rapid.TB, q api.Quantity) *big.Int {
	v, err := resource.ParseQuantity(string(q))
	if err != nil {
		t.Fatal(err)
	}
	return big.NewInt(v.Value())
}

func replicasOf(t rapid.TB, name string, requests api.Quantities) (api.Key, ledger.Needs) {
	w := &api.Workload{Metadata: api.Metadata{Name: name}, Spec: api.WorkloadSpec{ReplicaRequests: requests}}
	needs, err := ledger.NewNeeds(w)
	if err != nil {
		t.Fatal(err)
	}
	return api.KeyOf(w), needs
}

// TestHoldsOfManyTebibytes: 60 replicas leave room for 68 more, whatever the magnitude.
func TestHoldsOfManyTebibytes(t *testing.T) {
	for _, tt := range []struct{ has, each, left api.Quantity }{
		{"128Gi", "1Gi", "68Gi"}, {"128Ti", "1Ti", "68Ti"}, {"6400Pi", "50Pi", "3400Pi"},
		{"9223372036854775807", "72057594037927936", "4899916394579099647"},
	} {
		c := &api.Cluster{Metadata: api.Metadata{Name: "c1"}, Spec: api.ClusterSpec{Allocatable: api.Quantities{"memory": tt.has}}}
		f, _ := (&columns.Fleet{}).With(enginetest.Clusters(c), enginetest.Epoch)
		reserved := ledger.NewReservations()
		key, needs := replicasOf(t, "first", api.Quantities{"memory": tt.each})
		reserved.HoldReplicas(f, key, needs, "c1", 60, enginetest.Epoch)
		if left := ledger.Available(f, reserved, 0)["memory"]; left != tt.left {
			t.Errorf("%s less 60 times %s is %s, want %s", tt.has, tt.each, left, tt.left)
		}
		room := ledger.MeasureNeeds(f, needs, reserved, nil, nil)
		if n := room.Free(0); n < 67 || n > 68 {
			t.Errorf("%s has room for %d of %s more, want 68", tt.has, n, tt.each)
		}
	}
}

// TestAmountsOfAllMagnitudes compares what is available, and how many replicas fit, with big
// integers, over random reports and holds.
func TestAmountsOfAllMagnitudes(t *testing.T) {
	names := []string{"cpu", "memory", "example.com/bytes"}
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.SampledFrom([]int{20, 52, 63}).Draw(t, "bits")
		draw := func(what string) api.Quantity {
			n := rapid.Uint64().Draw(t, what) >> (64 - rapid.IntRange(0, bits).Draw(t, what+" bits"))
			return api.Quantity(fmt.Sprint(n))
		}
		f, reserved := &columns.Fleet{}, ledger.NewReservations()
		held := map[string]map[api.Key]map[string]*big.Int{"c0": {}, "c1": {}}
		clusters := map[string]*api.Cluster{}
		for step := range rapid.IntRange(1, 12).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"c0", "c1"}).Draw(t, "cluster")
			at := enginetest.Epoch.Add(time.Duration(step) * time.Second)
			if clusters[name] == nil || rapid.IntRange(0, 2).Draw(t, "report") == 0 {
				c := &api.Cluster{Metadata: api.Metadata{Name: name}}
				c.Spec.Allocatable, c.Spec.Allocated = api.Quantities{}, api.Quantities{}
				for _, resource := range names {
					c.Spec.Allocatable[resource], c.Spec.Allocated[resource] = draw("allocatable"), draw("allocated")
				}
				clusters[name] = c
				var delta columns.Delta
				f, delta = f.With(enginetest.Clusters(c), enginetest.Epoch)
				reserved.Sync(f, delta)
			}
			requests := api.Quantities{}
			for _, resource := range names {
				requests[resource] = draw("request")
			}
			replicas := rapid.Int64Range(1, 1<<31-1).Draw(t, "replicas") >> rapid.IntRange(0, 30).Draw(t, "fewer")
			key, needs := replicasOf(t, fmt.Sprint("w", rapid.IntRange(0, 3).Draw(t, "workload")), requests)
			switch rapid.IntRange(0, 3).Draw(t, "change") {
			case 0:
				reserved.Release(f, key, name)
				delete(held[name], key)
			case 1:
				reserved = reserved.Freeze().Thaw()
			default:
				reserved.HoldReplicas(f, key, needs, name, replicas, at)
				held[name][key] = map[string]*big.Int{}
				for resource, q := range requests {
					held[name][key][resource] = new(big.Int).Mul(units(t, q), big.NewInt(replicas))
				}
			}
			for name, c := range clusters {
				row, _ := f.Row(name)
				free, fits := ledger.Available(f, reserved, row), big.NewInt(1<<45) // the largest count
				limited := false
				for _, resource := range names {
					left := new(big.Int).Sub(units(t, c.Spec.Allocatable[resource]), units(t, c.Spec.Allocated[resource]))
					if left.Sign() < 0 {
						left.SetInt64(0)
					}
					for _, by := range held[name] {
						left.Sub(left, by[resource])
					}
					if left.Sign() < 0 {
						left.SetInt64(0)
					}
					if got := units(t, free[resource]); got.Cmp(left) != 0 {
						t.Fatalf("%s has %s of %s, want %s", name, got, resource, left)
					}
					if each := units(t, requests[resource]); each.Sign() > 0 {
						limited = true
						if n := left.Div(left, each); n.Cmp(fits) < 0 {
							fits = n
						}
					}
				}
				want := fits.Int64()
				if !limited {
					want = ledger.Unknown
				}
				measured := ledger.MeasureNeeds(f, needs, reserved, nil, nil)
				if n := measured.Free(row); n != want {
					t.Fatalf("%s has room for %d, want %d", name, n, want)
				}
				if n := ledger.RoomOn(f, reserved, row).For(needs); limited && n != want {
					t.Fatalf("%s has room for %d as seen by row, want %d", name, n, want)
				}
				// What is spare counts in addition.
				spare := ledger.Spare{}
				spare.AddHold(f, needs, name, 2)
				measured = ledger.MeasureNeeds(f, needs, nil, spare, nil)
				again := ledger.MeasureNeeds(f, needs, nil, nil, nil)
				if n, without := measured.Free(row), again.Free(row); limited && n != min(without+2, 1<<45) {
					t.Fatalf("%s has room for %d with 2 to spare, %d without", name, n, without)
				}
			}
		}
	})
}
