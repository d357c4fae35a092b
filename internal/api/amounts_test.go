package api

import (
	"strings"
	"testing"
)

// TestAmountsOutOfRangeAreRefused: an amount that cannot be represented is refused where it is
// written, and the error names the field.
func TestAmountsOutOfRangeAreRefused(t *testing.T) {
	report := func(zone CloudZone, flavors ...CloudFlavor) *CloudReport {
		zone.Name = "az1"
		return &CloudReport{Collector: "one", Regions: []CloudRegionReport{{Name: "West", Zones: []CloudZone{zone}, Flavors: &flavors}}}
	}
	const most = "9223372036854775807"
	for field, tt := range map[string]struct {
		wrong, right interface{ Validate() FieldErrors }
	}{
		`spec.allocatable["memory"]`: {
			&Cluster{Metadata: Metadata{Name: "c1"}, Spec: ClusterSpec{Allocatable: Quantities{"memory": "8Ei"}}},
			&Cluster{Metadata: Metadata{Name: "c1"}, Spec: ClusterSpec{Allocatable: Quantities{"memory": most}}},
		},
		`allocated["cpu"]`: {
			&Heartbeat{Allocated: Quantities{"cpu": "1e19"}},
			&Heartbeat{Allocated: Quantities{"cpu": most}},
		},
		`regions[0].zones[0].capacity["memory"]`: {
			report(CloudZone{Capacity: Quantities{"memory": "9Ei"}}),
			report(CloudZone{Capacity: Quantities{"memory": "7Ei"}}),
		},
		`regions[0].zones[0].available["memory"]`: {
			report(CloudZone{Available: Quantities{"memory": "4Ei"}, Allocated: Quantities{"memory": "4Ei"}}),
			report(CloudZone{Available: Quantities{"memory": "4Ei"}, Allocated: Quantities{"memory": "3Ei"}}),
		},
		`regions[0].flavors[0].memory_mib`: {
			report(CloudZone{}, CloudFlavor{Name: "m", MemoryMiB: 1 << 43}),
			report(CloudZone{}, CloudFlavor{Name: "m", MemoryMiB: 1<<43 - 1}),
		},
	} {
		err := tt.wrong.Validate().Err()
		if err == nil || !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), "out of range") {
			t.Errorf("%s: got %v, want that it is out of range", field, err)
		}
		if err := tt.right.Validate().Err(); err != nil && strings.Contains(err.Error(), field) {
			t.Errorf("%s: the largest amount is refused: %v", field, err)
		}
	}
}
