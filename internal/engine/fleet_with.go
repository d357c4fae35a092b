package engine

import (
	"maps"
	"slices"
	"time"
)

// With returns the fleet after changes, judged at now, and what differs. The
// receiver stays as it is. Cost: proportional to the changes, plus a copy of
// the columns they touch.
func (f *Fleet) With(changes Changes, now time.Time) (*Fleet, Delta) {
	g := *f
	g.now = now
	b := &edit{
		Fleet: &g, old: f,
		dirty:   newBitmap(len(f.rows) + len(changes.Clusters)),
		facts:   newBitmap(len(f.rows) + len(changes.Clusters)),
		stale:   map[int32]bool{},
		labels:  map[string]*labelEdit{},
		customs: map[string]*rowSetEdit{},
		owners:  map[string]*rowSetEdit{},
		listed:  map[int32]*rowSetEdit{},
	}
	b.changeProviders(changes.Providers)
	b.changeMetrics(changes.Metrics)
	b.changeClusters(changes.Clusters)
	b.applySets()
	b.evaluateMetrics()
	b.scoreRows()
	delta := Delta{Gone: b.gone, MetricNames: b.metricNames}
	slices.Sort(delta.Gone)
	b.dirty.each(func(row int) { delta.Rows = append(delta.Rows, row) })
	delta.Facts = b.facts
	b.rank(delta)
	return b.Fleet, delta
}

// labelEdit collects changes to the sets of one label key.
type labelEdit struct {
	key    rowSetEdit // of the set of clusters that have the key at all
	values map[string]*rowSetEdit
}

// edit is one application of With: the new fleet, and which of its parts have
// been copied already and may be written.
type edit struct {
	*Fleet
	old *Fleet

	dirty       Bitmap // rows
	facts       Bitmap // those of dirty where more than metric values changed
	gone        []string
	metricNames bool
	stale       map[int32]bool // metrics to evaluate again

	labels  map[string]*labelEdit
	customs map[string]*rowSetEdit
	owners  map[string]*rowSetEdit
	listed  map[int32]*rowSetEdit // clusters that list a metric

	ownRows, ownBits, ownScore, ownMetrics, ownIDs bool
	ownColumns                                     map[string]bool
}

func editOf[K comparable](edits map[K]*rowSetEdit, key K) *rowSetEdit {
	e, ok := edits[key]
	if !ok {
		e = &rowSetEdit{}
		edits[key] = e
	}
	return e
}

func (b *edit) label(key string) *labelEdit {
	e, ok := b.labels[key]
	if !ok {
		e = &labelEdit{values: map[string]*rowSetEdit{}}
		b.labels[key] = e
	}
	return e
}

// applySets carries out the collected changes of row sets.
func (b *edit) applySets() {
	slots := len(b.rows)
	b.Fleet.owners = applyEdits(b.Fleet.owners, b.owners, slots)
	b.Fleet.customs = applyEdits(b.Fleet.customs, b.customs, slots)
	if len(b.labels) > 0 {
		labels, keys := maps.Clone(b.Fleet.labels), maps.Clone(b.labelKeys)
		if labels == nil {
			labels, keys = map[string]map[string]*rowSet{}, map[string]*rowSet{}
		}
		for key, e := range b.labels {
			labels[key] = applyEdits(labels[key], e.values, slots)
			if len(labels[key]) == 0 {
				delete(labels, key)
				delete(keys, key)
				continue
			}
			keys[key] = e.key.apply(keys[key], slots)
		}
		b.Fleet.labels, b.labelKeys = labels, keys
	}
	for id, e := range b.listed {
		state := *b.metrics[id]
		state.rows = e.apply(state.rows, slots)
		b.setMetric(id, &state)
	}
}

func applyEdits[K comparable](sets map[K]*rowSet, edits map[K]*rowSetEdit, slots int) map[K]*rowSet {
	if len(edits) == 0 {
		return sets
	}
	out := maps.Clone(sets)
	if out == nil {
		out = make(map[K]*rowSet, len(edits))
	}
	for key, e := range edits {
		if s := e.apply(out[key], slots); s.n > 0 {
			out[key] = s
		} else {
			delete(out, key)
		}
	}
	return out
}
