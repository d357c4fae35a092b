package openstack

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// largeReport returns a report on several regions with many zones and flavors.
func largeReport() api.CloudReport {
	report := api.CloudReport{Collector: "c", Sequence: 7, Full: true}
	for r := range 3 {
		region := api.CloudRegionReport{Name: fmt.Sprint("region-", r), Full: true, Flavors: &[]api.CloudFlavor{}, VolumeTypes: &[]api.CloudVolumeType{}}
		for z := range 40 * r {
			region.Zones = append(region.Zones, api.CloudZone{Name: fmt.Sprint("zone-", z), Hosts: int64(z), Allocatable: api.Quantities{"cpu": "8"}})
		}
		for f := range 30 {
			*region.Flavors = append(*region.Flavors, api.CloudFlavor{ID: fmt.Sprint(f), Name: fmt.Sprint("flavor-", f), VCPUs: int64(f)})
		}
		report.Regions = append(report.Regions, region)
	}
	return report
}

func TestPartsKeepToTheLimitAndLoseNothing(t *testing.T) {
	report := largeReport()
	whole := apply(api.CloudStatus{}, report, time.Unix(0, 0))
	for _, limit := range []int{1 << 20, 8 << 10, 4 << 10, 2 << 10} {
		parts := divide(report, limit)
		if (len(parts) == 1) != (limit == 1<<20) {
			t.Errorf("limit %d: %d parts", limit, len(parts))
		}
		all := parts[0]
		for i, part := range parts {
			if got := length(part); got > limit {
				t.Errorf("limit %d: part %d has %d bytes", limit, i, got)
			}
			if part.Sequence != 7+int64(i) || part.More != (i < len(parts)-1) || part.Full != (i == 0) || part.Collector != "c" {
				t.Errorf("limit %d: unexpected part %d: %+v", limit, i, part)
			}
			if err := part.Validate().Err(); err != nil {
				t.Errorf("limit %d: part %d: %v", limit, i, err)
			}
			if i > 0 {
				all = joined(all, part.Regions)
			}
		}
		if got := apply(api.CloudStatus{}, all, time.Unix(0, 0)); !reflect.DeepEqual(got, whole) {
			t.Errorf("limit %d: the parts do not add up to the whole", limit)
		}
	}
}

// TestPartsCountOnlyWhenComplete checks that a region in a later part never disappears in between.
func TestPartsCountOnlyWhenComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReceiver(t)
		before := largeReport()
		before.Collector, before.Sequence = "old", 1
		send := func(report api.CloudReport) error {
			_, _, err := r.Report(t.Context(), "paris", report)
			return err
		}
		if err := send(before); err != nil {
			t.Fatal(err)
		}
		stored := r.status("paris")
		after := largeReport()
		after.Regions[2].Zones[0].Hosts = 99
		parts := divide(after, 4<<10)
		for i, part := range parts {
			if err := send(part); err != nil {
				t.Fatal(err)
			}
			if got := r.status("paris"); i < len(parts)-1 && !reflect.DeepEqual(got, stored) {
				t.Fatalf("the status changed after part %d, %d regions", i, len(got.Regions))
			}
			if i%3 == 1 { // the response was lost
				if err := send(part); err != nil {
					t.Fatal(err)
				}
			}
		}
		got := r.status("paris")
		if got.Region("region-2").Zone("zone-0").Hosts != 99 || len(got.Region("region-2").Zones) != 80 || got.Collector.Sequence != parts[len(parts)-1].Sequence {
			t.Errorf("unexpected collector %+v after all parts", got.Collector)
		}

		// A part out of sequence is rejected, and nothing of it is kept.
		lone := divide(after, 4<<10)[1]
		lone.Sequence += 100
		if _, wrong := errors.AsType[*SequenceError](send(lone)); !wrong {
			t.Error("a part without its predecessors was accepted")
		}
		twice := divide(after, 4<<10)
		twice[1].Regions = twice[0].Regions
		err := send(twice[0])
		for _, part := range twice[1:] {
			if err == nil {
				err = send(part)
			}
		}
		if _, invalid := errors.AsType[api.FieldErrors](err); !invalid {
			t.Errorf("zone in two parts: error %v, want FieldErrors", err)
		}
		if endless := after; true {
			endless.Regions, endless.More = nil, true
			var err error
			for i := 0; err == nil && i < 1000; i++ {
				err = send(endless)
				endless.Full = false
				endless.Sequence++
			}
			if err == nil {
				t.Error("an endless report was accepted")
			}
		}
		if got := r.status("paris"); len(got.Regions) != 3 {
			t.Errorf("%d regions, want 3", len(got.Regions))
		}
	})
}
