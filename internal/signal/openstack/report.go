package openstack

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// apply applies a report to the status of a cloud. Unchanged data keeps its times, so that a report
// without changes leaves the status equal.
func apply(old api.CloudStatus, report api.CloudReport, now time.Time) api.CloudStatus {
	now = now.UTC()
	regions := map[string]api.CloudRegion{}
	for _, r := range old.Regions {
		regions[r.Name] = r
	}
	if report.Full {
		next := map[string]api.CloudRegion{}
		for i := range report.Regions {
			if r, ok := regions[report.Regions[i].Name]; ok {
				next[r.Name] = r
			}
		}
		regions = next
	}
	if report.Error != "" {
		for name, r := range regions {
			regions[name] = failing(r, report.Reason, report.Error, now)
		}
	}
	for i := range report.Regions {
		r := &report.Regions[i]
		region := regions[r.Name]
		region.Name = r.Name
		if r.Error != "" {
			region = failing(region, r.Reason, r.Error, now)
			if r.Failures > 0 {
				region.Failures = min(r.Failures, api.MaxUnreachableFailures)
			}
			regions[r.Name] = region
		} else {
			regions[r.Name] = observed(region, r, report.Full || r.Full, now)
		}
	}
	out := old
	out.Regions = nil
	for _, name := range sortedKeys(regions) {
		out.Regions = append(out.Regions, regions[name])
	}
	out.Conditions = withCollected(out, report, now)
	return out
}

// failing returns a region after another failed collection. Its data is kept.
func failing(r api.CloudRegion, reason, message string, now time.Time) api.CloudRegion {
	r.Failures = min(r.Failures+1, api.MaxUnreachableFailures)
	r.Reason, r.Message = reason, message
	if r.Reason != api.ReasonUnauthorized {
		r.Reason = api.ReasonRegionFailed
	}
	if r.FailingSince == nil {
		r.FailingSince = &now
	}
	return r
}

// observed returns a region after a collection.
func observed(r api.CloudRegion, report *api.CloudRegionReport, full bool, now time.Time) api.CloudRegion {
	r.Failures, r.FailingSince, r.Reason, r.Message = 0, nil, "", ""
	different := r.ObservedAt == nil
	zones := map[string]api.CloudZone{}
	for _, zone := range r.Zones {
		zones[zone.Name] = zone
	}
	reported := map[string]bool{}
	for _, zone := range report.Zones {
		reported[zone.Name] = true
		old, known := zones[zone.Name]
		zone.Available = available(zone)
		zone = succeed(old, zone)
		if known && sameFigures(old, zone) {
			continue
		}
		zone.ObservedAt = &now
		zones[zone.Name], different = zone, true
	}
	maps.DeleteFunc(zones, func(name string, _ api.CloudZone) bool {
		gone := full && !reported[name] || slices.Contains(report.RemovedZones, name) && !reported[name]
		different = different || gone
		return gone
	})
	r.Zones = nil
	for _, name := range sortedKeys(zones) {
		r.Zones = append(r.Zones, zones[name])
	}
	if report.Flavors != nil && !slices.Equal(r.Flavors, *report.Flavors) {
		r.Flavors, different = *report.Flavors, true
	}
	if report.VolumeTypes != nil && !slices.Equal(r.VolumeTypes, *report.VolumeTypes) {
		r.VolumeTypes, different = *report.VolumeTypes, true
	}
	if different {
		r.ObservedAt = &now
	}
	return r
}

// succeed returns a zone after a complete report of it: resources that the zone had before and that
// are missing in the report become 0.
func succeed(old, zone api.CloudZone) api.CloudZone {
	gone := slices.Clone(zone.GoneResources) // as reported by an external collector
	zone.GoneResources = api.Missing(old.GoneResources, []api.Quantities{old.Capacity, old.Allocatable}, []api.Quantities{zone.Capacity, zone.Allocatable})
	for _, name := range gone {
		if !slices.Contains(zone.GoneResources, name) {
			zone.GoneResources = append(zone.GoneResources, name)
		}
	}
	slices.Sort(zone.GoneResources)
	zone.Capacity, zone.Allocatable = old.Capacity.Succeed(zone.Capacity), old.Allocatable.Succeed(zone.Allocatable)
	zone.Allocated, zone.Available = old.Allocated.Succeed(zone.Allocated), old.Available.Succeed(zone.Available)
	return zone
}

// sameFigures compares zones without their times.
func sameFigures(a, b api.CloudZone) bool {
	return a.Hosts == b.Hosts && maps.Equal(a.Capacity, b.Capacity) && maps.Equal(a.Allocatable, b.Allocatable) &&
		maps.Equal(a.Allocated, b.Allocated) && maps.Equal(a.Available, b.Available) && slices.Equal(a.GoneResources, b.GoneResources)
}

// available returns what is available in a zone, computing it if the report does not contain it.
func available(zone api.CloudZone) api.Quantities {
	var missing []string
	for name := range zone.Allocatable {
		if _, ok := zone.Available[name]; !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return zone.Available
	}
	out := maps.Clone(zone.Available)
	if out == nil {
		out = api.Quantities{}
	}
	for _, name := range missing {
		allocatable, err := zone.Allocatable[name].Milli()
		if err != nil {
			continue // rejected by validation
		}
		allocated, err := cmp.Or(zone.Allocated[name], "0").Milli()
		if err != nil {
			continue
		}
		out[name] = api.FormatMilli(name, allocatable.Minus(allocated).Rest())
	}
	return out
}

// withCollected returns the conditions with the one that summarizes the regions.
func withCollected(s api.CloudStatus, report api.CloudReport, now time.Time) []api.Condition {
	condition := api.Condition{Type: api.ConditionCollected, Status: api.ConditionTrue, Reason: api.ReasonCollected}
	messages := map[string][]string{} // names of regions by problem
	for i := range s.Regions {
		r := &s.Regions[i]
		if r.Pending() {
			messages[r.Message] = append(messages[r.Message], strconv.Quote(r.Name))
			if condition.Status == api.ConditionTrue {
				condition.Status, condition.Reason = api.ConditionUnknown, api.ReasonPending
			}
			continue
		}
		if r.Failures == 0 {
			continue
		}
		messages[r.Message] = append(messages[r.Message], strconv.Quote(r.Name))
		condition.Status = api.ConditionFalse
		if condition.Reason != api.ReasonUnauthorized {
			condition.Reason = r.Reason
		}
	}
	switch {
	case len(s.Regions) == 0 && report.Error != "":
		r := failing(api.CloudRegion{}, report.Reason, report.Error, now)
		condition.Status, condition.Reason, condition.Message = api.ConditionFalse, r.Reason, r.Message
	case condition.Status == api.ConditionTrue:
		condition.Message = "the capacity of every region is current"
	default:
		var parts []string
		for _, message := range sortedKeys(messages) {
			if len(messages[message]) == len(s.Regions) {
				parts = append(parts, message)
				continue
			}
			parts = append(parts, "region "+strings.Join(messages[message], ", ")+": "+message)
		}
		condition.Message = strings.Join(parts, "; ")
	}
	api.SetCondition(&s.Conditions, condition, now)
	return s.Conditions
}

// difference returns what must be reported of a region to get from one state to another, or nil. It
// contains no unchanged data.
func difference(from, to *api.CloudRegion) *api.CloudRegionReport {
	report := &api.CloudRegionReport{Name: to.Name}
	if to.Pending() {
		return nil
	}
	if to.Failures > 0 {
		if from.Failures == to.Failures && from.Reason == to.Reason && from.Message == to.Message {
			return nil
		}
		report.Error, report.Reason, report.Failures = to.Message, to.Reason, to.Failures
		return report
	}
	// If a region was not observed yet, the receiver does not know its zones.
	report.Full = from.ObservedAt == nil
	for _, zone := range to.Zones {
		zone.ObservedAt = nil
		if old := from.Zone(zone.Name); old == nil || !sameFigures(*old, zone) {
			report.Zones = append(report.Zones, zone)
		}
	}
	for i := range from.Zones {
		if name := from.Zones[i].Name; to.Zone(name) == nil {
			report.RemovedZones = append(report.RemovedZones, name)
		}
	}
	if !slices.Equal(from.Flavors, to.Flavors) {
		report.Flavors = &to.Flavors
	}
	if !slices.Equal(from.VolumeTypes, to.VolumeTypes) {
		report.VolumeTypes = &to.VolumeTypes
	}
	if from.Failures == 0 && reflect.DeepEqual(report, &api.CloudRegionReport{Name: to.Name}) {
		return nil
	}
	return report
}
