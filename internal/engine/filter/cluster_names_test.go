package filter_test

import (
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
)

func TestClusterNames(t *testing.T) {
	names := func(list ...string) []string { return list }
	for _, tt := range []struct {
		name            string
		named, excluded []string
		reason          string // "" = fits
		fits            string
	}{
		{name: "nothing is asked for"},
		{name: "empty lists", named: names(), excluded: names()},
		{name: "named", named: names("c2", "c1", "c1")},
		{name: "other cluster named", named: names("c2"), reason: "is not among cluster_names", fits: "1 is not among cluster_names"},
		{name: "part of the name", named: names("c", "c11"), reason: "is not among cluster_names", fits: "1 is not among cluster_names"},
		{name: "excluded", excluded: names("c2", "c1"), reason: "is excluded by name", fits: "1 is excluded by name"},
		{name: "other cluster excluded", excluded: names("c2")},
		{name: "named and excluded", named: names("c1"), excluded: names("c1"), reason: "is excluded by name", fits: "1 is excluded by name"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, current := range []bool{false, true} {
				w := enginetest.NewWorld()
				w.Cluster("c1", nil)
				p := enginetest.NewPlacement("web")
				p.Spec.ClusterNames, p.Spec.ExcludeClusters = tt.named, tt.excluded
				filter, reason, fits := verdictOn(t, w, p, "c1", current)
				if reason != tt.reason || (filter == "cluster_names") != (tt.reason != "") {
					t.Errorf("filter %q, reason %q, want reason %q", filter, reason, tt.reason)
				}
				want := "1 of 1 cluster fits"
				if tt.fits != "" {
					want = "0 of 1 cluster fit: " + tt.fits
				}
				if fits != want {
					t.Errorf("summary %q, want %q", fits, want)
				}
			}
		})
	}
}
