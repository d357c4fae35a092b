package columns_test

import (
	"slices"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// TestZoneOfManyTebibytes: a cluster that represents a zone has what the zone reports, however
// much, also if only the available amount is reported.
func TestZoneOfManyTebibytes(t *testing.T) {
	for _, tt := range []struct{ available, allocated, want api.Quantity }{
		{"1Ti", "1Ti", "2Ti"}, {"40Ti", "0", "40Ti"}, {"40Ti", "24Ti", "64Ti"}, {"3Ei", "4Ei", "7Ei"}, {"4Ei", "4611686018427387903", "9223372036854775807"},
	} {
		cloud := &api.Cloud{Status: api.CloudStatus{Regions: []api.CloudRegion{{Name: "West", Zones: []api.CloudZone{{
			Name: "az1", Hosts: 1, Available: api.Quantities{"memory": tt.available}, Allocated: api.Quantities{"memory": tt.allocated},
		}}}}}}
		c := &api.Cluster{Spec: api.ClusterSpec{OpenStack: &api.ClusterOpenStack{Cloud: "one", Region: "West", AvailabilityZone: "az1"}}}
		if got := columns.Effective(c, cloud).Status.Allocatable["memory"]; got != tt.want {
			t.Errorf("with %s available and %s allocated, %q is allocatable, want %q", tt.available, tt.allocated, got, tt.want)
		}
	}
}

// TestPlaceOfAZoneWithoutCloud: a cluster that represents a zone is where its owner says, also while
// no cloud of that name may be used, so that decisions about places do not depend on whether there is
// one. It has the amounts that are declared.
func TestPlaceOfAZoneWithoutCloud(t *testing.T) {
	c := &api.Cluster{Spec: api.ClusterSpec{
		OpenStack:   &api.ClusterOpenStack{Cloud: "one", Region: "West", AvailabilityZone: "az1"},
		Allocatable: api.Quantities{"cpu": "4"},
	}}
	got := columns.Effective(c, nil)
	if got.Spec.Region != "West" || !slices.Equal(got.Spec.Zones, []string{"az1"}) {
		t.Errorf("in region %q, zones %q, want West and az1", got.Spec.Region, got.Spec.Zones)
	}
	if got.Spec.Allocatable["cpu"] != "4" || len(got.Status.Allocatable)+len(got.Status.Conditions) > 0 {
		t.Errorf("has other amounts than declared: %+v", got)
	}
}
