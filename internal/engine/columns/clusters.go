package columns

import (
	"maps"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func (b *edit) changeClusters(changes map[string]*api.Cluster) {
	if len(changes) == 0 {
		return
	}
	// In name order, so that the same changes give the same rows. Changes that free a row come
	// first.
	ordered := inNameOrder(changes)
	first := len(b.index) == 0 // all clusters are new, so lookups are not needed
	if first {
		// On the first load, allocate in large chunks.
		b.rowSlab.chunk, b.metricSlab.chunk = min(len(changes), 256), min(len(changes), 1024)
		b.writer.sets.chunk, b.writer.lists.chunk = min(len(changes), 256), min(len(changes), 1024)
	}
	b.cloneRows(ordered)
	for _, change := range ordered {
		if at, known := b.index[change.name]; known && change.cluster == nil {
			b.removeCluster(at, change.name)
		}
	}
	for _, change := range ordered {
		if change.cluster == nil {
			continue
		}
		at, known := 0, false
		if !first {
			at, known = b.index[change.name]
		}
		var before *Row
		if known {
			before = b.rows[at]
		} else {
			at = b.slot()
			b.index[change.name] = at
			b.added = append(b.added, int32(at))
			b.nameHash[at] = HashText(change.name)
			b.meetScores(change.name, at)
		}
		b.putIn(at, before, change.cluster)
	}
}

func (b *edit) removeCluster(at int, name string) {
	b.takeOut(at, b.rows[at])
	b.leaveScores(name, at)
	b.replaced = append(b.replaced, at)
	b.rows[at] = nil
	delete(b.index, name)
	b.free = append(b.free, at)
	b.delta.Gone = append(b.delta.Gone, name)
	b.changed(presence, at)
}

// cloneRows copies what cluster changes modify, and makes space for new rows.
func (b *edit) cloneRows(changes []clusterChange) {
	added, removed := 0, 0
	for _, change := range changes {
		switch _, known := b.index[change.name]; {
		case change.cluster != nil && !known:
			added++
		case change.cluster == nil && known:
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
	if added+removed > 0 {
		b.labels.begin()
		b.claims.begin()
	}
	b.added, b.replaced = make([]int32, 0, added), make([]int, 0, added+removed)
	slots := max(len(b.rows), len(b.rows)+added-len(b.free)-removed)
	b.writer.slots = slots
	rows := make([]*Row, len(b.rows), slots)
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
	b.live, b.online, b.paused = b.live.Grown(slots), b.online.Grown(slots), b.paused.Grown(slots)
	b.failing, b.scored = b.failing.Grown(slots), b.scored.Grown(slots)
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

// slot returns a row for a new cluster.
func (b *edit) slot() int {
	if n := len(b.free); n > 0 {
		at := b.free[n-1]
		b.free = b.free[:n-1]
		return at
	}
	b.rows = append(b.rows, nil)
	return len(b.rows) - 1
}

// takeOut removes a row from every set.
func (b *edit) takeOut(at int, r *Row) {
	b.labels.replace(&b.writer, at, r.cluster.Metadata.Labels, nil)
	b.claims.replace(&b.writer, at, r.cluster.Spec.Claims, nil)
	b.putTaints(at, r.Taints, nil)
	for _, custom := range r.cluster.Spec.CustomResources {
		b.customs.take(&b.writer, custom, at)
	}
	b.putAPIResources(at, r.cluster.Spec.APIResources, nil)
	b.places.take(&b.writer, at, &r.cluster.Spec)
	for _, owner := range owners(r.cluster) {
		b.owners.take(&b.writer, owner, at)
	}
	for _, m := range r.Metrics {
		b.writer.take(b.listedBy(m.ID), at)
	}
	b.amounts.replace(&b.writer, at, r.cluster, &noCluster)
	b.live.Clear(at)
	b.online.Clear(at)
	b.paused.Clear(at)
	b.failing.Clear(at)
	b.scored.Clear(at)
}

// noCluster represents the previous content of a free row.
var noCluster api.Cluster

// putIn writes a cluster to a row. It only modifies what has changed: a heartbeat that reports new
// amounts modifies one column each, and no sets.
func (b *edit) putIn(at int, before *Row, c *api.Cluster) {
	r := &b.rowSlab.take(1)[0]
	*r = Row{cluster: c, reportedAt: capacityReport(before, c), Taints: taintsOf(c), Reports: len(c.Spec.Allocatable)+len(c.Status.Allocatable) > 0}
	old := &noCluster
	var taints []RowTaint
	if before != nil {
		old, taints = before.cluster, before.Taints
		r.Metrics, r.SumWeights, r.SumProducts = before.Metrics, before.SumWeights, before.SumProducts
	}
	b.rows[at] = r
	note := func(aspect Aspects, changed bool) {
		if changed && before != nil {
			b.changed(aspect, at)
		}
	}
	if before == nil {
		b.changed(presence, at)
	}
	note(Flavors, !SameFlavors(old.Spec.Flavors, c.Spec.Flavors))
	relabelled := b.labels.replace(&b.writer, at, old.Metadata.Labels, c.Metadata.Labels)
	if relabelled || before == nil {
		b.replaced = append(b.replaced, at)
	}
	note(Labels, relabelled)
	note(Claims, b.claims.replace(&b.writer, at, old.Spec.Claims, c.Spec.Claims))
	note(Taints, b.putTaints(at, taints, r.Taints))
	if !samePlace(&old.Spec, &c.Spec) {
		b.places.take(&b.writer, at, &old.Spec)
		b.places.put(&b.writer, at, &c.Spec)
		note(Place, true)
	}
	note(APIResources, b.putAPIResources(at, old.Spec.APIResources, c.Spec.APIResources))
	note(CustomResources, b.putCustomResources(at, old, c))
	note(Amounts, b.amounts.replace(&b.writer, at, old, c) || before != nil && !before.reportedAt.Equal(r.reportedAt))
	note(Observations, before != nil && !sameObservations(old, c))
	if before == nil || !api.SameOwners(old, c) {
		if before != nil {
			for _, owner := range owners(old) {
				b.owners.take(&b.writer, owner, at)
			}
		}
		for _, owner := range owners(c) {
			b.owners.put(&b.writer, owner, at)
		}
		note(Owners, true)
	}
	if before == nil || !slices.EqualFunc(old.Spec.Metrics, c.Spec.Metrics, sameRef) {
		b.putMetrics(at, r)
		note(MetricValues, true)
		note(Failing, true)
	}
	wasOnline := before != nil && b.online.Has(at)
	b.live.Set(at)
	b.online.Assign(at, isOnline(c))
	b.paused.Assign(at, c.Spec.Paused)
	note(Online, wasOnline != isOnline(c))
	note(Paused, old.Spec.Paused != c.Spec.Paused)
}

func (b *edit) putCustomResources(at int, old, c *api.Cluster) (changed bool) {
	was, is := old.Spec.CustomResources, c.Spec.CustomResources
	if slices.Equal(was, is) {
		return false
	}
	for _, name := range was {
		b.customs.take(&b.writer, name, at)
	}
	for _, name := range is {
		b.customs.put(&b.writer, name, at)
	}
	return true
}

// samePlace compares the places of clusters.
func samePlace(a, b *api.ClusterSpec) bool {
	return a.Region == b.Region && a.CloudProvider == b.CloudProvider && slices.Equal(a.Zones, b.Zones)
}

// listedBy returns the set of clusters that list a metric, for modification.
func (b *edit) listedBy(id int32) *RowSet {
	rows, ok := b.listed[id]
	if !ok {
		if b.listed == nil {
			b.listed = map[int32]*RowSet{}
		}
		rows = b.writer.writable(b.metrics[id].Rows)
		b.listed[id] = rows
	}
	return rows
}

func (b *edit) putMetrics(at int, r *Row) {
	for _, m := range r.Metrics {
		b.writer.take(b.listedBy(m.ID), at)
	}
	refs := r.cluster.Spec.Metrics
	r.Metrics = b.metricSlab.take(len(refs))
	for i := range refs {
		ref := &refs[i]
		id := b.metricID(ref.Key())
		r.Metrics[i] = RowMetric{id, WeightOf(*ref)}
		b.writer.put(b.listedBy(id), at)
	}
}

func sameRef(a, b api.MetricRef) bool {
	return a.Name == b.Name && a.Namespace == b.Namespace && WeightOf(a) == WeightOf(b)
}

// WeightOf returns the weight of a metric, by default 1.
func WeightOf(ref api.MetricRef) float64 {
	if ref.Weight == nil {
		return 1
	}
	return *ref.Weight
}

// Everybody is the owner key of clusters without an owner.
const Everybody = ""

// owners returns the owner keys of a cluster.
func owners(c *api.Cluster) []string {
	if list := c.Owners(); len(list) > 0 {
		return list
	}
	return []string{Everybody}
}

// SameFlavors reports whether two clusters have the same flavors.
func SameFlavors(a, b []api.ClusterFlavor) bool {
	return slices.EqualFunc(a, b, func(x, y api.ClusterFlavor) bool {
		return x.Name == y.Name && x.VCPUs == y.VCPUs && x.Memory == y.Memory &&
			(x.Count == nil) == (y.Count == nil) && (x.Count == nil || *x.Count == *y.Count)
	})
}
