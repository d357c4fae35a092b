package columns

import (
	"maps"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// PlaceIndex finds rows by place: by field (provider, region, zone) and value. A cluster is in
// every zone that it spans. Immutable.
type PlaceIndex map[string]map[string]*RowSet

// PlacesOf calls f for every place field of a cluster.
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

// placeEdit is a PlaceIndex that is being modified.
type placeEdit struct {
	index  PlaceIndex
	fields map[string]*setTable[string] // modified fields
}

func (e *placeEdit) put(w *writer, row int, c *api.ClusterSpec) {
	PlacesOf(c, func(field, value string) { e.of(field).put(w, value, row) })
}

func (e *placeEdit) take(w *writer, row int, c *api.ClusterSpec) {
	PlacesOf(c, func(field, value string) { e.of(field).take(w, value, row) })
}

func (e *placeEdit) of(field string) *setTable[string] {
	t, ok := e.fields[field]
	if !ok {
		if e.fields == nil {
			e.fields = map[string]*setTable[string]{}
		}
		t = &setTable[string]{sets: e.index[field]}
		e.fields[field] = t
	}
	return t
}

// done returns the finished index.
func (e *placeEdit) done() PlaceIndex {
	if len(e.fields) == 0 {
		return e.index
	}
	out := maps.Clone(e.index)
	if out == nil {
		out = PlaceIndex{}
	}
	for field, t := range e.fields {
		out[field] = t.sets
	}
	return out
}

// putAPIResources updates the API resource types of a row, and reports whether they changed.
func (b *edit) putAPIResources(at int, was, is []string) (changed bool) {
	if slices.Equal(was, is) {
		return false
	}
	if len(was) > 0 {
		b.apiResources.take(&b.writer, "", at)
	}
	for _, name := range was {
		b.apiResources.take(&b.writer, name, at)
	}
	if len(is) > 0 {
		b.apiResources.put(&b.writer, "", at)
	}
	for _, name := range is {
		b.apiResources.put(&b.writer, name, at)
	}
	return true
}
