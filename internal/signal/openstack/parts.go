package openstack

import (
	"encoding/json"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

const (
	// maxParts is how many parts one report may have, so that what is kept until the
	// last of them has a bound.
	maxParts = 64
	// envelope is more than what stands around the pieces of a report, or of a region
	// in it, takes up.
	envelope = 256
)

// divide cuts a report into parts whose JSON is no longer than limit, as far as
// that goes: what is not cut is a zone, a flavor and a volume type. All parts but the last say
// that more follows, and the receiver lets nothing count before that one: no part
// may stand for the whole, or what is in the others would be gone for a while.
func divide(report api.CloudReport, limit int) []api.CloudReport {
	if length(report) <= limit {
		return []api.CloudReport{report}
	}
	d := &divider{limit: limit, sequence: report.Sequence, blank: api.CloudReport{Collector: report.Collector}}
	for i := range report.Regions {
		r := &report.Regions[i]
		head := *r
		head.Zones, head.Flavors, head.VolumeTypes = nil, nil, nil
		if r.Flavors != nil {
			head.Flavors = &[]api.CloudFlavor{}
		}
		if r.VolumeTypes != nil {
			head.VolumeTypes = &[]api.CloudVolumeType{}
		}
		d.add(length(head), head)
		for _, zone := range r.Zones {
			d.add(length(zone), api.CloudRegionReport{Name: r.Name, Zones: []api.CloudZone{zone}})
		}
		if r.Flavors != nil {
			for _, flavor := range *r.Flavors {
				d.add(length(flavor), api.CloudRegionReport{Name: r.Name, Flavors: &[]api.CloudFlavor{flavor}})
			}
		}
		if r.VolumeTypes != nil {
			for _, kind := range *r.VolumeTypes {
				d.add(length(kind), api.CloudRegionReport{Name: r.Name, VolumeTypes: &[]api.CloudVolumeType{kind}})
			}
		}
	}
	d.parts[0].Full = report.Full
	d.parts[len(d.parts)-1].More = false
	return d.parts
}

// divider fills one part after the other.
type divider struct {
	limit    int
	sequence int64
	blank    api.CloudReport
	parts    []api.CloudReport
	used     int // by the last part
}

func (d *divider) add(bytes int, piece api.CloudRegionReport) {
	cost := bytes + 1
	if last := len(d.parts) - 1; last < 0 || !holds(&d.parts[last], piece.Name) {
		cost += envelope + length(piece.Name)
	}
	if len(d.parts) == 0 || d.used+cost > d.limit {
		next := d.blank
		next.Sequence, next.More = d.sequence, true
		d.sequence++
		d.parts = append(d.parts, next)
		d.used = length(next) + envelope
	}
	d.used += cost
	last := &d.parts[len(d.parts)-1]
	*last = joined(*last, []api.CloudRegionReport{piece})
}

func holds(report *api.CloudReport, region string) bool {
	return slices.ContainsFunc(report.Regions, func(r api.CloudRegionReport) bool { return r.Name == region })
}

// joined is a report with more of its regions.
func joined(report api.CloudReport, regions []api.CloudRegionReport) api.CloudReport {
	for i := range regions {
		piece := &regions[i]
		at := slices.IndexFunc(report.Regions, func(r api.CloudRegionReport) bool { return r.Name == piece.Name })
		if at < 0 {
			report.Regions = append(report.Regions, *piece)
			continue
		}
		r := &report.Regions[at]
		r.Full = r.Full || piece.Full
		r.Zones = append(r.Zones, piece.Zones...)
		r.RemovedZones = append(r.RemovedZones, piece.RemovedZones...)
		r.Flavors = both(r.Flavors, piece.Flavors)
		r.VolumeTypes = both(r.VolumeTypes, piece.VolumeTypes)
	}
	return report
}

// both is one list after the other; nil where there is neither.
func both[T any](a, b *[]T) *[]T {
	switch {
	case b == nil:
		return a
	case a == nil:
		a = &[]T{}
	}
	list := append(*a, *b...)
	return &list
}

// length is how long something is as JSON.
func length(v any) int {
	text, err := json.Marshal(v)
	if err != nil {
		return 0 // what is reported has nothing that JSON cannot hold
	}
	return len(text)
}
