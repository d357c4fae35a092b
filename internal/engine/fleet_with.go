package engine

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
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

func (b *edit) changeProviders(changes map[api.Key]*api.MetricsProvider) {
	if len(changes) == 0 {
		return
	}
	b.providers = maps.Clone(b.providers)
	if b.providers == nil {
		b.providers = map[api.Key]*api.MetricsProvider{}
	}
	for key, provider := range changes {
		if provider == nil {
			delete(b.providers, key)
		} else {
			b.providers[key] = provider
		}
	}
	for id, state := range b.metrics {
		if state.metric == nil {
			continue
		}
		if _, ok := changes[state.metric.ProviderKey()]; ok {
			b.stale[int32(id)] = true
		}
	}
}

func (b *edit) changeMetrics(changes map[api.Key]*api.Metric) {
	for key, metric := range changes {
		id := b.metricID(key)
		state := *b.metrics[id]
		if (state.metric == nil) != (metric == nil) {
			b.metricNames = true
		}
		state.metric = metric
		b.setMetric(id, &state)
		b.stale[id] = true
	}
}

// metricID is the id of a metric, a new one where it is seen first.
func (b *edit) metricID(key api.Key) int32 {
	if id, ok := b.metricIDs[key]; ok {
		return id
	}
	if !b.ownIDs {
		b.ownIDs = true
		b.metricIDs = maps.Clone(b.metricIDs)
		b.named = maps.Clone(b.named)
		if b.metricIDs == nil {
			b.metricIDs, b.named = map[api.Key]int32{}, map[string][]int32{}
		}
	}
	id := int32(len(b.metrics))
	b.metricIDs[key] = id
	b.named[key.Name] = append(slices.Clip(b.named[key.Name]), id)
	b.cloneMetrics()
	b.metrics = append(b.metrics, &metricState{key: key})
	b.stale[id] = true
	return id
}

func (b *edit) cloneMetrics() {
	if !b.ownMetrics {
		b.ownMetrics = true
		b.metrics = slices.Clone(b.metrics)
	}
}

func (b *edit) setMetric(id int32, state *metricState) {
	b.cloneMetrics()
	b.metrics[id] = state
}

func (b *edit) changeClusters(changes map[string]*api.Cluster) {
	if len(changes) == 0 {
		return
	}
	b.ownColumns = map[string]bool{}
	b.cloneRows(changes)
	// In the order of the names' hashes (which sort faster than the names), so
	// that the same changes give the same rows.
	type change struct {
		hash    uint64
		name    string
		cluster *api.Cluster
	}
	ordered := make([]change, 0, len(changes))
	for name, cluster := range changes {
		ordered = append(ordered, change{hashText(name), name, cluster})
	}
	slices.SortFunc(ordered, func(x, y change) int {
		return cmp.Or(cmp.Compare(x.hash, y.hash), cmp.Compare(x.name, y.name))
	})
	for _, change := range ordered {
		name, cluster := change.name, change.cluster
		at, known := b.index[name]
		var before *row
		if known {
			before = b.rows[at]
		}
		switch {
		case cluster == nil && !known:
			continue
		case cluster == nil:
			b.takeOut(at, before)
			b.rows[at] = nil
			delete(b.index, name)
			b.free = append(b.free, at)
			b.gone = append(b.gone, name)
			b.dirty.set(at)
			b.facts.set(at)
			continue
		case !known:
			at = b.slot()
			b.index[name] = at
		}
		b.nameHash[at] = change.hash
		b.putIn(at, before, cluster)
	}
}

// cloneRows makes what a cluster change writes the edit's own, and makes room
// for new rows.
func (b *edit) cloneRows(changes map[string]*api.Cluster) {
	added, removed := 0, 0
	for name, cluster := range changes {
		switch _, known := b.index[name]; {
		case cluster != nil && !known:
			added++
		case cluster == nil && known:
			removed++
		}
	}
	if added+removed > 0 || b.index == nil {
		b.index = maps.Clone(b.index)
		if b.index == nil {
			b.index = make(map[string]int, added)
		}
		b.free = slices.Clone(b.free)
	}
	slots := max(len(b.rows), len(b.rows)+added-len(b.free))
	rows := make([]*row, len(b.rows), slots)
	copy(rows, b.rows)
	b.rows, b.ownRows = rows, true
	hashes := make([]uint64, slots)
	copy(hashes, b.nameHash)
	b.nameHash = hashes
	b.cloneBits(slots)
	b.cloneScore(slots)
}

func (b *edit) cloneBits(slots int) {
	if b.ownBits {
		return
	}
	b.ownBits = true
	b.live, b.online, b.paused = b.live.grown(slots), b.online.grown(slots), b.paused.grown(slots)
	b.failing, b.scored = b.failing.grown(slots), b.scored.grown(slots)
}

func (b *edit) cloneScore(slots int) {
	if b.ownScore {
		return
	}
	b.ownScore = true
	score := make([]float64, slots)
	copy(score, b.score)
	b.score = score
}

// slot is a row for a new cluster.
func (b *edit) slot() int {
	if n := len(b.free); n > 0 {
		at := b.free[n-1]
		b.free = b.free[:n-1]
		return at
	}
	b.rows = append(b.rows, nil)
	return len(b.rows) - 1
}

// takeOut removes what a row says from every set.
func (b *edit) takeOut(at int, r *row) {
	for key, value := range r.cluster.Metadata.Labels {
		e := b.label(key)
		e.key.take(at)
		editOf(e.values, value).take(at)
	}
	for _, custom := range r.cluster.Spec.CustomResources {
		editOf(b.customs, custom).take(at)
	}
	editOf(b.owners, r.cluster.Spec.Namespace).take(at)
	for _, m := range r.metrics {
		editOf(b.listed, m.id).take(at)
	}
	resourcesOf(r.cluster, func(name string) { b.column(name)[at] = unreported })
	b.live.clear(at)
	b.online.clear(at)
	b.paused.clear(at)
	b.failing.clear(at)
	b.scored.clear(at)
}

// putIn writes a cluster into a row. Only what differs from before is touched:
// a heartbeat that reports new amounts costs a column each, and no set.
func (b *edit) putIn(at int, before *row, c *api.Cluster) {
	r := &row{cluster: c, reportedAt: capacityReport(before, c)}
	old := &api.Cluster{}
	if before != nil {
		old = before.cluster
		r.metrics, r.sumWeights, r.sumProducts = before.metrics, before.sumWeights, before.sumProducts
	}
	b.rows[at] = r
	changed := before == nil || !before.reportedAt.Equal(r.reportedAt)
	changed = b.putLabels(at, old, c) || changed
	changed = b.putCustomResources(at, old, c) || changed
	changed = b.putAmounts(at, old, c) || changed
	if before == nil || old.Spec.Namespace != c.Spec.Namespace {
		if before != nil {
			editOf(b.owners, old.Spec.Namespace).take(at)
		}
		editOf(b.owners, c.Spec.Namespace).put(at)
		changed = true
	}
	if before == nil || !slices.EqualFunc(old.Spec.Metrics, c.Spec.Metrics, sameRef) {
		b.putMetrics(at, r)
		changed = true
	}
	if before == nil || isOnline(old) != isOnline(c) || old.Spec.Paused != c.Spec.Paused {
		b.live.set(at)
		b.online.Assign(at, isOnline(c))
		b.paused.Assign(at, c.Spec.Paused)
		changed = true
	}
	if changed {
		b.dirty.set(at)
		b.facts.set(at)
	}
}

func (b *edit) putLabels(at int, old, c *api.Cluster) (changed bool) {
	was, is := old.Metadata.Labels, c.Metadata.Labels
	for key, value := range was {
		now, kept := is[key]
		if kept && now == value {
			continue
		}
		e := b.label(key)
		editOf(e.values, value).take(at)
		if !kept {
			e.key.take(at)
		}
		changed = true
	}
	for key, value := range is {
		before, known := was[key]
		if known && before == value {
			continue
		}
		e := b.label(key)
		editOf(e.values, value).put(at)
		if !known {
			e.key.put(at)
		}
		changed = true
	}
	return changed
}

func (b *edit) putCustomResources(at int, old, c *api.Cluster) (changed bool) {
	was, is := old.Spec.CustomResources, c.Spec.CustomResources
	if slices.Equal(was, is) {
		return false
	}
	for _, name := range was {
		editOf(b.customs, name).take(at)
	}
	for _, name := range is {
		editOf(b.customs, name).put(at)
	}
	return true
}

func (b *edit) putAmounts(at int, old, c *api.Cluster) (changed bool) {
	if sameAmounts(old, c) {
		return false
	}
	resourcesOf(old, func(name string) {
		if uncommittedOf(c, name) == unreported {
			b.column(name)[at] = unreported
			changed = true
		}
	})
	resourcesOf(c, func(name string) {
		amount := uncommittedOf(c, name)
		if column := b.uncommitted[name]; at < len(column) && column[at] == amount {
			return
		}
		b.column(name)[at] = amount
		changed = true
	})
	return changed
}

func sameAmounts(a, b *api.Cluster) bool {
	return maps.Equal(a.Spec.Allocatable, b.Spec.Allocatable) && maps.Equal(a.Spec.Allocated, b.Spec.Allocated) &&
		maps.Equal(a.Status.Allocatable, b.Status.Allocatable) && maps.Equal(a.Status.Allocated, b.Status.Allocated)
}

func (b *edit) putMetrics(at int, r *row) {
	for _, m := range r.metrics {
		editOf(b.listed, m.id).take(at)
	}
	refs := r.cluster.Spec.Metrics
	r.metrics = make([]rowMetric, 0, len(refs))
	for _, ref := range refs {
		id := b.metricID(ref.Key())
		r.metrics = append(r.metrics, rowMetric{id, weightOf(ref)})
		editOf(b.listed, id).put(at)
	}
}

func sameRef(a, b api.MetricRef) bool {
	return a.Name == b.Name && a.Namespace == b.Namespace && weightOf(a) == weightOf(b)
}

// weightOf is the weight of a metric, 1 where none is given.
func weightOf(ref api.MetricRef) float64 {
	if ref.Weight == nil {
		return 1
	}
	return *ref.Weight
}

// column is the edit's own copy of a resource's column.
func (b *edit) column(resource string) []int64 {
	slots := cap(b.rows)
	if b.ownColumns[resource] {
		return b.uncommitted[resource]
	}
	if len(b.ownColumns) == 0 {
		b.uncommitted = maps.Clone(b.uncommitted)
		if b.uncommitted == nil {
			b.uncommitted = map[string][]int64{}
		}
	}
	b.ownColumns[resource] = true
	column := make([]int64, slots)
	for i := copy(column, b.uncommitted[resource]); i < slots; i++ {
		column[i] = unreported
	}
	b.uncommitted[resource] = column
	return column
}

// applySets carries out the collected changes of row sets.
func (b *edit) applySets() {
	slots := len(b.rows)
	b.Fleet.owners = applyEdits(b.Fleet.owners, b.owners, slots)
	b.Fleet.customs = applyEdits(b.Fleet.customs, b.customs, slots)
	if len(b.labels) > 0 {
		labels, keys := maps.Clone(b.Fleet.labels), maps.Clone(b.Fleet.labelKeys)
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
		b.Fleet.labels, b.Fleet.labelKeys = labels, keys
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

// evaluateMetrics judges the metrics that changed, and those that time has made
// too old, and marks the clusters that list one with another outcome.
func (b *edit) evaluateMetrics() {
	if b.now.Before(b.old.now) {
		// Back in time, as a simulation may look: what was too old may be usable.
		for id := range b.metrics {
			b.stale[int32(id)] = true
		}
	}
	for _, id := range b.aging {
		if !b.now.Before(b.metrics[id].staleAt) {
			b.stale[id] = true
		}
	}
	if len(b.stale) == 0 {
		return
	}
	aging := make([]int32, 0, len(b.aging))
	for _, id := range b.aging {
		if !b.stale[id] {
			aging = append(aging, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(b.stale)) {
		before := b.metrics[id]
		next := *before
		next.hasProvider = false
		if next.metric != nil {
			interval := api.DefaultProviderInterval.Or(0)
			provider, ok := b.providers[next.metric.ProviderKey()]
			if ok {
				next.hasProvider = true
				interval = provider.Spec.Interval.Or(interval)
			}
			next.maxAge = next.metric.Spec.MaxAge.Or(maxAgeIntervals * min(interval, math.MaxInt64/maxAgeIntervals))
		}
		after := next.evaluate(b.now)
		b.setMetric(id, after)
		if !after.staleAt.IsZero() {
			aging = append(aging, id)
		}
		var was *metricState
		if int(id) < len(b.old.metrics) {
			was = b.old.metrics[id]
		}
		if was == nil || was.usable != after.usable || was.normalized != after.normalized ||
			was.raw != after.raw || was.onFailure != after.onFailure {
			after.rows.orInto(b.dirty)
		}
	}
	b.aging = aging
}

// scoreRows computes the weighted mean again for every dirty row.
func (b *edit) scoreRows() {
	if b.dirty.Count() == 0 {
		return
	}
	slots := len(b.rows)
	if !b.ownRows {
		b.ownRows = true
		b.rows = slices.Clone(b.rows)
	}
	b.cloneBits(slots)
	b.cloneScore(slots)
	b.dirty.each(func(at int) {
		r := b.rows[at]
		if r == nil {
			b.score[at] = 0
			return
		}
		if at < len(b.old.rows) && b.old.rows[at] == r {
			own := *r
			r = &own
			b.rows[at] = r
		}
		r.sumWeights, r.sumProducts = 0, 0
		failing := false
		for _, m := range r.metrics {
			state := b.metrics[m.id]
			switch {
			case state.usable:
				r.sumWeights += m.weight
				// The conversion keeps the compiler from fusing multiply and add,
				// so that every architecture gets the same bits.
				r.sumProducts += float64(m.weight * state.normalized)
			case state.onFailure != api.FailureIgnore:
				failing = true
			}
		}
		scored := r.sumWeights > 0
		if b.failing.Has(at) != failing {
			b.facts.set(at)
			b.failing.Assign(at, failing)
		}
		b.scored.Assign(at, scored)
		b.score[at] = 0
		if scored {
			b.score[at] = r.sumProducts / r.sumWeights
		}
	})
}
