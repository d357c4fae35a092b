package columns

import (
	"slices"
	"time"
)

// With returns the fleet after the changes, evaluated at now, and the difference. The receiver is
// not modified. The cost is proportional to the changes, plus a copy of each modified column.
func (f *Fleet) With(changes Changes, now time.Time) (*Fleet, Delta) {
	g := *f
	g.now = now
	g.version++
	slots := len(f.rows) + len(changes.Clusters)
	b := &edit{
		Fleet: &g, old: f,
		writer:       writer{version: g.version, slots: len(f.rows)},
		dirty:        NewBitmap(slots),
		rated:        NewBitmap(slots),
		stale:        map[int32]bool{},
		labels:       valueEdit{table: f.labels},
		claims:       valueEdit{table: f.claims},
		places:       placeEdit{index: f.places},
		customs:      setTable[string]{sets: f.customs},
		apiResources: setTable[string]{sets: f.apiResources},
		owners:       setTable[string]{sets: f.owners},
		taints:       setTable[Taint]{sets: f.taints},
		amounts:      editAmounts(f.amounts),
	}
	if f.labels == nil {
		b.labels.table, b.claims.table = newKeyTable(labelsOf), newKeyTable(claimsOf)
	}
	b.changeProviders(changes.Providers)
	b.changeMetrics(changes.Metrics)
	b.changeClusters(changes.Clusters)
	if len(b.added)+len(b.delta.Gone) > 0 {
		b.orderNames()
	}
	b.keepTables()
	b.changeSets(changes.Sets)
	b.changeScores(changes.Scores)
	b.changeWindows(changes.Windows)
	b.judgeScores()
	b.evaluateMetrics()
	b.scoreRows()
	b.freeMetrics()
	b.delta.Rows = b.dirty.Rows()
	b.rank(b.delta)
	slices.Sort(b.delta.Gone)
	if b.rated.Count() > 0 {
		b.dirty.Or(b.rated)
		b.delta.of(ScoreValues, 64*len(b.dirty)).Or(b.rated)
		b.delta.Rows = b.dirty.Rows()
	}
	return b.Fleet, b.delta
}

// edit is one call of With: the new fleet, and which of its parts have been copied and may be
// modified.
type edit struct {
	*Fleet
	old *Fleet

	delta    Delta
	dirty    Bitmap         // rows in which anything but placement scores changed
	rated    Bitmap         // rows whose placement scores changed
	replaced []int          // rows whose cluster or labels changed
	added    []int32        // rows of new clusters, in name order
	stale    map[int32]bool // metrics to evaluate again

	rowSlab    slab[Row]
	metricSlab slab[RowMetric]

	writer       writer
	labels       valueEdit
	claims       valueEdit
	places       placeEdit
	customs      setTable[string]
	apiResources setTable[string]
	owners       setTable[string]
	taints       setTable[Taint]
	amounts      amountEdit
	listed       map[int32]*RowSet // clusters that list a metric, if that changed

	bundles map[string]*bundleEdit

	ownRows, ownBits, ownScore, ownMetrics, ownIDs, ownWaiting bool
}

// changed records that an aspect of a row changed.
func (b *edit) changed(aspect Aspects, at int) {
	b.dirty.Set(at)
	b.delta.of(aspect, 64*len(b.dirty)).Set(at)
}

// changedRows records that an aspect changed in a set of rows.
func (b *edit) changedRows(aspect Aspects, rows *RowSet) {
	if rows.Len() > 0 {
		rows.OrInto(b.dirty)
		rows.OrInto(b.delta.of(aspect, 64*len(b.dirty)))
	}
}

// keepTables stores the finished tables in the fleet.
func (b *edit) keepTables() {
	b.Fleet.labels, b.Fleet.claims, b.Fleet.amounts = b.labels.done(), b.claims.done(), b.amounts.done()
	b.Fleet.places = b.places.done()
	b.Fleet.customs, b.Fleet.apiResources = b.customs.sets, b.apiResources.sets
	b.Fleet.owners, b.Fleet.taints = b.owners.sets, b.taints.sets
	for id, rows := range b.listed {
		state := *b.metrics[id]
		state.Rows = rows
		b.setMetric(id, &state)
	}
}
