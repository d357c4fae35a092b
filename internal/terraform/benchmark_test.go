package terraform_test

import (
	"fmt"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// BenchmarkReadPlacement measures what Read does with a placement that it has received: the provider's own part of a
// plan.
func BenchmarkReadPlacement(b *testing.B) {
	r := resourceOf(b, api.KindPlacement)
	typ := schemaOf(b.Context(), r).Type().TerraformType(b.Context())
	for _, clusters := range []int{1, 50} {
		b.Run(fmt.Sprintf("clusters=%d", clusters), func(b *testing.B) {
			placement := &api.Placement{
				Metadata: api.Metadata{Name: "web", Namespace: "shop", Labels: map[string]string{"team": "a"}},
				Spec:     api.PlacementSpec{LabelConstraints: []string{"location is DE", "tier is prod"}},
			}
			placement.SetDefaults()
			for n := range clusters {
				placement.Status.Clusters = append(placement.Status.Clusters, fmt.Sprint("cluster-", n))
			}
			prior := nullAttributes(typ)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Values(b.Context(), typ, placement, prior); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
