package openstack

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// drawZones draws the zones of a region, sorted by name.
func drawZones(t *rapid.T) []api.CloudZone {
	figures := rapid.MapOfN(rapid.SampledFrom([]string{"cpu", "memory", "storage/ssd"}), rapid.SampledFrom([]api.Quantity{"0", "1", "2Gi"}), 0, 3)
	zones := map[string]api.CloudZone{}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4, rapid.ID[string]).Draw(t, "zones") {
		available := api.Quantities(figures.Draw(t, "available"))
		zones[name] = api.CloudZone{Name: name, Hosts: rapid.Int64Range(0, 2).Draw(t, "hosts"), Allocatable: maps.Clone(available), Available: available}
	}
	var out []api.CloudZone
	for _, name := range sortedKeys(zones) {
		out = append(out, zones[name])
	}
	return out
}

func drawRegion(t *rapid.T, name string) api.CloudRegion {
	flavors := []api.CloudFlavor{{ID: "1", Name: "small"}, {ID: "2", Name: "large"}}
	return api.CloudRegion{
		Name: name, Zones: drawZones(t), Flavors: flavors[:rapid.IntRange(0, 2).Draw(t, "flavors")],
		VolumeTypes: []api.CloudVolumeType{{ID: "1", Name: "ssd"}}[:rapid.IntRange(0, 1).Draw(t, "types")],
	}
}

// bare formats a region without what depends on the time of collection.
func bare(r api.CloudRegion) string {
	r.ObservedAt, r.FailingSince = nil, nil
	zones := slices.Clone(r.Zones)
	for i := range zones {
		zones[i].ObservedAt = nil
	}
	r.Zones = nil
	return fmt.Sprintf("%+v %+v", r, zones)
}

// withGone returns zones after a report on others: resources that a zone no longer has are 0, and listed as gone.
func withGone(from *api.CloudRegion, zones []api.CloudZone) []api.CloudZone {
	out := slices.Clone(zones)
	for i := range out {
		old := from.Zone(out[i].Name)
		if old == nil {
			continue
		}
		allocatable, available := maps.Clone(out[i].Allocatable), maps.Clone(out[i].Available)
		for _, name := range sortedKeys(old.Allocatable) {
			if _, there := allocatable[name]; !there {
				allocatable[name], available[name] = "0", "0"
				out[i].GoneResources = append(out[i].GoneResources, name)
			}
		}
		out[i].Allocatable, out[i].Available = allocatable, available
	}
	return out
}

// TestDifferenceLeadsToTheNewReport checks that the difference between any two states leads from one to the other, contains
// nothing unchanged, and reports nothing twice. A missing resource is 0 from then on.
func TestDifferenceLeadsToTheNewReport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := api.CloudStatus{}
		now := epoch
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			now = now.Add(time.Minute)
			to := drawRegion(t, "r")
			from := &api.CloudRegion{}
			if r := s.Region("r"); r != nil {
				from = r
			}
			if rapid.Bool().Draw(t, "fails") {
				to = failing(*from, api.ReasonRegionFailed, rapid.SampledFrom([]string{"x", "y"}).Draw(t, "message"), now)
				to.Name = "r"
			}
			report := difference(from, &to)
			if to.Failures == 0 {
				to.Zones = withGone(from, to.Zones)
			}
			if report == nil {
				if bare(*from) != bare(to) {
					t.Fatalf("no report for the change from\n%s\nto\n%s", bare(*from), bare(to))
				}
				continue
			}
			for _, zone := range report.Zones {
				if old := from.Zone(zone.Name); old != nil && sameFigures(*old, zone) {
					t.Fatalf("zone %s is reported although it has not changed", zone.Name)
				}
			}
			next := apply(s, api.CloudReport{Regions: []api.CloudRegionReport{*report}}, now)
			if got := next.Region("r"); bare(*got) != bare(to) {
				t.Fatalf("got\n%s\nwant\n%s", bare(*got), bare(to))
			}
			for i := range next.Region("r").Zones {
				zone := &next.Region("r").Zones[i]
				moved := zone.ObservedAt.Equal(now)
				if old := from.Zone(zone.Name); moved != (to.Failures == 0 && (old == nil || !sameFigures(*old, *zone))) {
					t.Fatalf("zone %s was observed at %s, now is %s", zone.Name, zone.ObservedAt, now)
				}
			}
			again := apply(next, api.CloudReport{Regions: []api.CloudRegionReport{*report}}, now.Add(time.Second))
			if !reflect.DeepEqual(next, again) {
				t.Fatalf("the same report again changes\n%+v\nto\n%+v", next, again)
			}
			s = next
		}
	})
}

// TestApplyDoesNotChangeItsInput: statuses are shared with readers.
func TestApplyDoesNotChangeItsInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) api.CloudReport {
			r := drawRegion(t, name)
			return api.CloudReport{Full: rapid.Bool().Draw(t, "full"), Regions: []api.CloudRegionReport{{Name: name, Zones: r.Zones, Flavors: &r.Flavors, RemovedZones: []string{"a"}}}}
		}
		s := apply(apply(api.CloudStatus{}, draw("r"), epoch), draw("s"), epoch)
		before := fmt.Sprintf("%+v", s)
		apply(s, draw("r"), epoch.Add(time.Hour))
		apply(s, api.CloudReport{Error: "x"}, epoch.Add(time.Hour))
		if after := fmt.Sprintf("%+v", s); after != before {
			t.Fatalf("the status was modified from\n%s\nto\n%s", before, after)
		}
	})
}

func TestCollectedCondition(t *testing.T) {
	region := func(name, reason, message string) api.CloudRegionReport {
		return api.CloudRegionReport{Name: name, Reason: reason, Error: message}
	}
	for name, c := range map[string]struct {
		report api.CloudReport
		want   string
	}{
		"well":              {api.CloudReport{Regions: []api.CloudRegionReport{{Name: "a"}, {Name: "b"}}}, isCurrent},
		"one of two":        {api.CloudReport{Regions: []api.CloudRegionReport{{Name: "a"}, region("b", "", "x")}}, `False RegionFailed: region "b": x`},
		"two in two ways":   {api.CloudReport{Regions: []api.CloudRegionReport{region("a", "", "y"), region("b", api.ReasonUnauthorized, "x")}}, `False Unauthorized: region "b": x; region "a": y`},
		"two in one way":    {api.CloudReport{Regions: []api.CloudRegionReport{region("a", "", "x"), region("b", "", "x")}}, "False RegionFailed: x"},
		"not even a region": {api.CloudReport{Error: "x", Reason: api.ReasonUnauthorized}, "False Unauthorized: x"},
		"unheard of reason": {api.CloudReport{Error: "x", Reason: "Whim"}, "False RegionFailed: x"},
	} {
		s := apply(api.CloudStatus{}, c.report, epoch)
		got := api.FindCondition(s.Conditions, api.ConditionCollected)
		if text := fmt.Sprint(got.Status, " ", got.Reason, ": ", got.Message); text != c.want {
			t.Errorf("%s: got %s, want %s", name, text, c.want)
		}
	}
}

// TestMissingZoneAmounts checks that a resource that is missing in a zone's next report, even a full one, is 0 until it
// is reported again.
func TestMissingZoneAmounts(t *testing.T) {
	s := api.CloudStatus{}
	for i, c := range []struct {
		amounts api.Quantities
		want    string
	}{
		{api.Quantities{"cpu": "8", "storage/ssd": "1Ti"}, "map[cpu:8 storage/ssd:1Ti] []"},
		{api.Quantities{"cpu": "8"}, "map[cpu:8 storage/ssd:0] [storage/ssd]"},
		{api.Quantities{"cpu": "4"}, "map[cpu:4 storage/ssd:0] [storage/ssd]"},
		{nil, "map[cpu:0 storage/ssd:0] [cpu storage/ssd]"},
		{api.Quantities{"cpu": "4", "storage/ssd": "1Gi"}, "map[cpu:4 storage/ssd:1Gi] []"},
	} {
		zone := api.CloudZone{Name: "z", Hosts: 1, Capacity: c.amounts, Allocatable: c.amounts}
		s = apply(s, api.CloudReport{Full: true, Regions: []api.CloudRegionReport{{Name: "r", Full: true, Zones: []api.CloudZone{zone}}}}, epoch)
		got := s.Region("r").Zone("z")
		for what, amounts := range map[string]api.Quantities{"capacity": got.Capacity, "allocatable": got.Allocatable, "available": got.Available} {
			if text := fmt.Sprint(amounts, " ", got.GoneResources); text != c.want {
				t.Errorf("report %d: %s: got %s, want %s", i, what, text, c.want)
			}
		}
	}
}
