package enginetest

import (
	"maps"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/constraint"
)

// Supplied returns the cluster that a demand asks for, with nothing else.
func Supplied(t rapid.TB, name string, c *api.DemandedCluster) *api.Cluster {
	made := &api.Cluster{Metadata: api.Metadata{Name: name, UID: name, Generation: 1, Labels: maps.Clone(c.Labels)}}
	s := &made.Spec
	s.Claims, s.CloudProvider, s.Region = maps.Clone(c.Claims), c.CloudProvider, c.Region
	if c.Zone != "" {
		s.Zones = []string{c.Zone}
	}
	s.Allocatable, s.CustomResources, s.APIResources = c.Resources, c.CustomResources, c.APIResources
	if c.KubernetesVersion != "" {
		is, err := constraint.ParseVersion(c.KubernetesVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, version := range []string{"v1.32.1", "v1.33.0", "v1.33.4", "v1.35.2"} {
			if is.Match(version) {
				made.Status.KubernetesVersion = version
			}
		}
	}
	made.SetDefaults()
	return made
}
