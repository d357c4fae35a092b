package binding

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
)

// TestSplitInvariants checks, for any shares, that the parts in each cluster add up to its share, that the number of
// on-demand replicas is at least what one cluster would have, and that splitting again changes nothing. The input is
// not modified.
func TestSplitInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shares := rapid.SliceOfN(rapid.Int64Range(0, 50), 0, 8).Draw(t, "shares")
		total := int64(0)
		for _, n := range shares {
			total += n
		}
		spec := &api.WorkloadSpec{
			APIVersion: "apps/v1", Kind: rapid.SampledFrom([]string{api.KindDeployment, api.KindStatefulSet}).Draw(t, "kind"),
			Distribution: &api.DistributionSpec{Mode: rapid.SampledFrom(append([]api.DistributionMode{api.ModeDefault}, api.DistributionModes...)).Draw(t, "mode")},
		}
		// Some replicas may wait for capacity. If every cluster has a copy, there are more replicas in total.
		copies := len(shares) > 0 && rapid.Bool().Draw(t, "copies")
		replicas := total + rapid.Int64Range(0, 5).Draw(t, "waiting")
		if copies {
			replicas = shares[0]
			for i := range shares {
				shares[i] = replicas
			}
			total = replicas * int64(len(shares))
		}
		spec.Replicas = &replicas
		amount := rapid.Int64Range(0, 100).Draw(t, "amount")
		spec.Distribution.CustomOnDemand = api.OnDemandAmount(fmt.Sprint(amount))
		if rapid.Bool().Draw(t, "percent") {
			spec.Distribution.CustomOnDemand += "%"
		}
		before := make([]api.WorkloadCluster, len(shares))
		for i, n := range shares {
			before[i] = api.WorkloadCluster{Name: fmt.Sprintf("c%d", i), Replicas: n}
		}
		status := api.WorkloadStatus{Clusters: before}
		if changed := putTargets(spec, &status); changed != (len(shares) > 0) {
			t.Fatalf("putTargets() = %t, but it must report a change if and only if there are clusters", changed)
		}
		onDemand := int64(0)
		for i, c := range status.Clusters {
			if c.OnDemand == nil || c.Spot == nil || *c.OnDemand < 0 || *c.Spot < 0 || *c.OnDemand+*c.Spot != shares[i] {
				t.Fatalf("targets %+v, want two amounts that add up to %d", c, shares[i])
			}
			if before[i].OnDemand != nil {
				t.Fatal("putTargets modified the previous list of clusters")
			}
			onDemand += *c.OnDemand
		}
		one := split.Targets(spec.Kind, total, *spec.Distribution)
		if onDemand < one.OnDemand {
			t.Fatalf("%d replicas on on-demand nodes, want at least the %d that one cluster would have", onDemand, one.OnDemand)
		}
		if _, percent, _ := spec.Distribution.CustomOnDemand.Parse(); spec.Distribution.Mode == api.ModeCustom && !percent && !copies && onDemand != one.OnDemand {
			t.Fatalf("%d replicas on on-demand nodes, want the %d that the spec asks for", onDemand, one.OnDemand)
		}
		if putTargets(spec, &status) {
			t.Fatal("a second call of putTargets reports a change")
		}
		spec.Distribution = nil
		if putTargets(spec, &status) != (len(shares) > 0) || slices.ContainsFunc(status.Clusters, func(c api.WorkloadCluster) bool { return c.OnDemand != nil || c.Spot != nil }) {
			t.Fatalf("clusters %+v, want no targets without a distribution", status.Clusters)
		}
	})
}

// TestClampedSentence checks that the message names the number of replicas that the count exceeds.
func TestClampedSentence(t *testing.T) {
	for _, test := range []struct {
		replicas int64
		shares   []int64
		amount   api.OnDemandAmount
		want     string
	}{
		{3, []int64{3}, "3", ""},
		{3, []int64{3}, "100%", ""},
		{3, []int64{3}, "4", "custom_on_demand 4 is above the 3 replicas: all of them go to on-demand nodes"},
		{3, []int64{2, 1}, "4", "custom_on_demand 4 is above the 3 replicas: all of them go to on-demand nodes"},
		{3, []int64{2, 1}, "3", ""},
		{3, []int64{3, 3}, "3", ""},
		{3, []int64{3, 3}, "4", "custom_on_demand 4 is above the 3 replicas: all of them go to on-demand nodes"},
		{5, []int64{2, 1}, "4", "custom_on_demand 4 is above the 3 replicas: all of them go to on-demand nodes"}, // two replicas wait
		{1, []int64{1}, "2", "custom_on_demand 2 is above the 1 replica: all of them go to on-demand nodes"},
		{0, []int64{0}, "2", ""},
		{2, nil, "2", ""},
	} {
		spec := &api.WorkloadSpec{APIVersion: "apps/v1", Kind: api.KindDeployment, Replicas: &test.replicas, Distribution: &api.DistributionSpec{Mode: api.ModeCustom, CustomOnDemand: test.amount}}
		if got := clampedSentence(spec, test.shares); got != test.want {
			t.Errorf("clampedSentence(%s, %v) = %q, want %q", test.amount, test.shares, got, test.want)
		}
	}
}
