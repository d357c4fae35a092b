package columns

import (
	"maps"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// PlaceIndex finds rows by where clusters are: by field (provider, region, zone)
// and value. A cluster is in every zone that it spans. Immutable.
type PlaceIndex map[string]map[string]*RowSet

// PlacesOf calls f for every field of a cluster that says where it is.
func PlacesOf(c *api.ClusterSpec, f func(field, value string)) {
	if c.CloudProvider != "" {
		f(api.GroupByProvider, c.CloudProvider)
	}
	if c.Region != "" {
		f(api.GroupByRegion, c.Region)
	}
	for _, zone := range c.Zones {
		f(api.GroupByZone, zone)
	}
}

func (b *edit) takePlaces(at int, c *api.ClusterSpec) {
	PlacesOf(c, func(field, value string) { editOf(b.placesIn(field), value).take(at) })
}

func (b *edit) putPlaces(at int, c *api.ClusterSpec) {
	PlacesOf(c, func(field, value string) { editOf(b.placesIn(field), value).put(at) })
}

func (b *edit) placesIn(field string) map[string]*rowSetEdit {
	edits, ok := b.places[field]
	if !ok {
		edits = map[string]*rowSetEdit{}
		b.places[field] = edits
	}
	return edits
}

// with returns the index after changes.
func (x PlaceIndex) with(edits map[string]map[string]*rowSetEdit, slots int) PlaceIndex {
	if len(edits) == 0 {
		return x
	}
	out := maps.Clone(x)
	if out == nil {
		out = PlaceIndex{}
	}
	for field, values := range edits {
		out[field] = applyEdits(out[field], values, slots)
	}
	return out
}

// putAPIResources notes that a row lists other types of API resources, and
// reports whether it does.
func (b *edit) putAPIResources(at int, was, is []string) (changed bool) {
	if slices.Equal(was, is) {
		return false
	}
	if len(was) > 0 {
		editOf(b.apiResources, "").take(at)
	}
	for _, name := range was {
		editOf(b.apiResources, name).take(at)
	}
	if len(is) > 0 {
		editOf(b.apiResources, "").put(at)
	}
	for _, name := range is {
		editOf(b.apiResources, name).put(at)
	}
	return true
}
