package columns

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
	slots := len(f.rows) + len(changes.Clusters)
	b := &edit{
		Fleet: &g, old: f,
		dirty:        NewBitmap(slots),
		rated:        NewBitmap(slots),
		stale:        map[int32]bool{},
		labels:       valueEdit{},
		claims:       valueEdit{},
		customs:      map[string]*rowSetEdit{},
		apiResources: map[string]*rowSetEdit{},
		places:       map[string]map[string]*rowSetEdit{},
		owners:       map[string]*rowSetEdit{},
		taints:       map[Taint]*rowSetEdit{},
		listed:       map[int32]*rowSetEdit{},
	}
	b.changeProviders(changes.Providers)
	b.changeMetrics(changes.Metrics)
	b.changeClusters(changes.Clusters)
	if len(b.added)+len(b.delta.Gone) > 0 {
		b.orderNames()
	}
	b.applyRowSets()
	b.changeSets(changes.Sets)
	b.changeScores(changes.Scores)
	b.judgeScores()
	b.evaluateMetrics()
	b.scoreRows()
	b.freeMetrics()
	b.rank(Delta{Rows: b.dirty.Rows()})
	slices.Sort(b.delta.Gone)
	if b.rated.Count() > 0 {
		b.dirty.Or(b.rated)
		b.delta.of(ScoreValues, 64*len(b.dirty)).Or(b.rated)
	}
	b.delta.Rows = b.dirty.Rows()
	return b.Fleet, b.delta
}

// edit is one application of With: the new fleet, and which of its parts have
// been copied already and may be written.
type edit struct {
	*Fleet
	old *Fleet

	delta    Delta
	dirty    Bitmap         // rows about which anything changed but placement scores
	rated    Bitmap         // rows with other placement scores
	replaced []int          // rows with another cluster, or other labels
	slab     []Row          // room for rows
	added    []int32        // rows of new clusters, in the order of their names
	stale    map[int32]bool // metrics to evaluate again

	labels       valueEdit
	claims       valueEdit
	customs      map[string]*rowSetEdit
	apiResources map[string]*rowSetEdit
	places       map[string]map[string]*rowSetEdit // by field and value
	owners       map[string]*rowSetEdit
	taints       map[Taint]*rowSetEdit
	listed       map[int32]*rowSetEdit // clusters that list a metric

	bundles map[string]*bundleEdit

	ownRows, ownBits, ownScore, ownMetrics, ownIDs, ownWaiting bool
	ownUncommitted, ownUsable                                  columnEdit
}

// changed notes that an aspect of a row changed.
func (b *edit) changed(aspect Aspects, at int) {
	b.dirty.Set(at)
	b.delta.of(aspect, 64*len(b.dirty)).Set(at)
}

// changedRows is changed for a set of rows.
func (b *edit) changedRows(aspect Aspects, rows *RowSet) {
	if rows.Len() > 0 {
		rows.OrInto(b.dirty)
		rows.OrInto(b.delta.of(aspect, 64*len(b.dirty)))
	}
}

func editOf[K comparable](edits map[K]*rowSetEdit, key K) *rowSetEdit {
	e, ok := edits[key]
	if !ok {
		e = &rowSetEdit{}
		edits[key] = e
	}
	return e
}

// applyRowSets carries out the collected changes of row sets.
func (b *edit) applyRowSets() {
	slots := len(b.rows)
	b.Fleet.owners = applyEdits(b.Fleet.owners, b.owners, slots)
	b.Fleet.customs = applyEdits(b.Fleet.customs, b.customs, slots)
	b.Fleet.apiResources = applyEdits(b.Fleet.apiResources, b.apiResources, slots)
	b.Fleet.places = b.Fleet.places.with(b.places, slots)
	b.Fleet.taints = applyEdits(b.Fleet.taints, b.taints, slots)
	b.Fleet.labels = b.Fleet.labels.with(b.labels, slots)
	b.Fleet.claims = b.Fleet.claims.with(b.claims, slots)
	for id, e := range b.listed {
		state := *b.metrics[id]
		state.Rows = e.apply(state.Rows, slots)
		b.setMetric(id, &state)
	}
}

func applyEdits[K comparable](sets map[K]*RowSet, edits map[K]*rowSetEdit, slots int) map[K]*RowSet {
	if len(edits) == 0 {
		return sets
	}
	out := maps.Clone(sets)
	if out == nil {
		out = make(map[K]*RowSet, len(edits))
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
