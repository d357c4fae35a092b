package binding

import (
	"fmt"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/cputime"
)

// BenchmarkAllocation decides an allocated workload on sites with twenty flavors each: filter, measure, score and
// divide.
func BenchmarkAllocation(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		changes := columns.Changes{Clusters: map[string]*api.Cluster{}}
		var flavors []api.ClusterFlavor
		for i := range 20 {
			flavors = append(flavors, api.ClusterFlavor{Name: fmt.Sprintf("m%02d", i), VCPUs: int64(i + 1), Memory: api.Quantity(fmt.Sprintf("%dGi", 2*i+2))})
		}
		for i := range n {
			c := &api.Cluster{Metadata: api.Metadata{Name: fmt.Sprintf("c%05d", i)}}
			c.Spec.Region, c.Spec.Zones, c.Spec.Flavors = fmt.Sprintf("r%d", i/20), []string{"az1"}, flavors
			c.Spec.Allocatable = api.Quantities{"cpu": "64", "memory": "256Gi", "storage/ssd": "4Ti", "floating_ips": "200"}
			c.Spec.Allocated = api.Quantities{"cpu": api.Quantity(fmt.Sprint(i % 64))}
			changes.Clusters[c.Metadata.Name] = c
		}
		f, _ := (&columns.Fleet{}).With(changes, epoch)
		load := allocated(api.AllocationSpec{Flavors: []string{"m19", "m07"}})
		load.Spec.Replicas = new(int64(100))
		load.Spec.ReplicaRequests = api.Quantities{"storage/ssd": "10Gi"}
		p, err := NewPropagation(load, nil)
		if err != nil {
			b.Fatal(err)
		}
		views := []*placement.View{placement.NewView(f, p.Groups[0].Query, ledger.Others{}, nil)}
		var binder Binder
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			cputime.Measure(b, func() {
				if out := binder.Bind(f, p, views, ledger.Others{}, nil, NewPresent(load, nil), epoch); !out.Complete {
					b.Fatal(out.tried[0].err)
				}
			})
		})
	}
}
