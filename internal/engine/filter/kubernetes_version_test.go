package filter_test

import (
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
)

func TestKubernetesVersion(t *testing.T) {
	for _, tt := range []struct {
		name, asked, observed string
		reason                string // "" = fits
	}{
		{name: "nothing is asked for"},
		{name: "no constraint", observed: "v1.33.0"},
		{name: "match", asked: ">= 1.33, < 2", observed: "v1.33.0"},
		{name: "match with a vendor's suffix", asked: ">= 1.33.2, < 1.33.3", observed: "v1.33.2+k3s1"},
		{name: "match with a vendor's suffix after a dash", asked: "~> 1.32.0", observed: "v1.32.1-eks-4f2e1a"},
		{name: "compared as numbers", asked: ">= 1.9", observed: "v1.33.0"},
		{name: "too old", asked: ">= 1.33, < 2", observed: "v1.32.9-eks-4f2e1a", reason: `Kubernetes version is "v1.32.9-eks-4f2e1a", wanted ">= 1.33, < 2"`},
		{name: "too new", asked: "< 1.33", observed: "v1.33.0", reason: `Kubernetes version is "v1.33.0", wanted "< 1.33"`},
		{name: "unknown version", asked: "!= 1.33.0", reason: `Kubernetes version is not known, wanted "!= 1.33.0"`},
		{name: "not a version", asked: "!= 1.33.0", observed: "latest", reason: `Kubernetes version "latest" cannot be compared, wanted "!= 1.33.0"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, current := range []bool{false, true} {
				w := enginetest.NewWorld()
				w.Cluster("c1", nil).Status.KubernetesVersion = tt.observed
				p := enginetest.NewPlacement("web")
				p.Spec.KubernetesVersion = tt.asked
				filter, reason, fits := verdictOn(t, w, p, "c1", current)
				if reason != tt.reason || (filter == "kubernetes_version") != (tt.reason != "") {
					t.Errorf("filter %q, reason %q, want reason %q", filter, reason, tt.reason)
				}
				want := "1 of 1 cluster fits"
				if tt.reason != "" {
					want = `0 of 1 cluster fit: 1 does not match kubernetes_version "` + tt.asked + `"`
				}
				if fits != want {
					t.Errorf("summary %q, want %q", fits, want)
				}
			}
		})
	}
	// A claim is what a user wrote, not what was observed.
	w := enginetest.NewWorld()
	w.Cluster("c1", nil).Spec.Claims = map[string]string{columns.KubernetesVersionClaim: "v1.33.0"}
	p := enginetest.NewPlacement("web")
	p.Spec.KubernetesVersion = ">= 1.33"
	if filter, _, _ := verdictOn(t, w, p, "c1", false); filter != "kubernetes_version" {
		t.Errorf("rejected by %q, want kubernetes_version", filter)
	}
}
