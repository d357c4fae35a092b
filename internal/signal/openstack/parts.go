package openstack

import (
	"encoding/json"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

const (
	// maxParts is the maximum number of parts of one report, which limits what is buffered until
	// the last one.
	maxParts = 64
	// envelope is an upper bound on the overhead of a report, or of a region in it.
	envelope = 256
)

// divide splits a report into parts whose JSON is within limit, as far as possible: a zone, flavor
// or volume type is not split. All parts except the last say that more follow, and the receiver
// applies nothing before that one: if a part counted as the whole, the contents of the others would
// be gone for a while.
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

// divider fills one part after another.
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

// joined returns a report with additional regions.
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

// both concatenates two lists; nil if both are nil.
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

// length returns the length of a value as JSON.
func length(v any) int {
	text, err := json.Marshal(v)
	if err != nil {
		return 0 // reports contain nothing that cannot be encoded
	}
	return len(text)
}
