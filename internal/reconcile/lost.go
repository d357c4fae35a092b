package reconcile

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// lost are the objects that exist and that decisions have to do without: they are
// damaged in the store and no sound version is in memory, or working on them
// panics. A decision that was made from one of them is not made again before it is
// back: what cannot be read has not gone.
type lost struct {
	clusters, sets, policies, hosts, scores, metrics, providers map[api.Key]bool
	// dubious are the names of the clusters that are lost, or less than they were:
	// they list a metric or have a cloud that is lost.
	dubious map[string]bool

	// What waits for them.
	placements map[*tracked]struct{}
	workloads  map[*bound]struct{}
	guests     map[*guest]struct{}
}

func newLost(keys []api.Key) *lost {
	if len(keys) == 0 {
		return nil
	}
	l := &lost{
		clusters: map[api.Key]bool{}, sets: map[api.Key]bool{}, policies: map[api.Key]bool{}, hosts: map[api.Key]bool{},
		scores: map[api.Key]bool{}, metrics: map[api.Key]bool{}, providers: map[api.Key]bool{}, dubious: map[string]bool{},
		placements: map[*tracked]struct{}{}, workloads: map[*bound]struct{}{}, guests: map[*guest]struct{}{},
	}
	of := map[api.Kind]map[api.Key]bool{
		api.KindCluster: l.clusters, api.KindClusterSet: l.sets, api.KindPropagationPolicy: l.policies,
		api.KindCloud: l.hosts, api.KindOpenStackProject: l.hosts, api.KindPlacementScore: l.scores,
		api.KindMetric: l.metrics, api.KindMetricsProvider: l.providers,
	}
	for _, key := range keys {
		if set, counts := of[key.Kind]; counts {
			set[key] = true
		}
	}
	return l
}

// lostIn are the objects of a picture of the fleet that are lost to damage.
func lostIn(snapshot *fleet.Snapshot) []api.Key {
	var keys []api.Key
	for _, d := range snapshot.AllDamaged() {
		if d.Lost {
			keys = append(keys, d.Key)
		}
	}
	return keys
}

// lacks reports whether any of the metrics, or its provider, is lost.
func (l *lost) lacks(refs []api.MetricRef, all *figures) bool {
	for _, ref := range refs {
		if l.metrics[ref.Key()] {
			return true
		}
		if m := all.metrics[ref.Key()]; m != nil && l.providers[m.ProviderKey()] {
			return true
		}
	}
	return false
}

// doubt finds out, from what the planner knows now, which clusters are lost or less
// than they were.
func (p *planner) doubt() {
	l := p.lost
	if l == nil {
		return
	}
	clear(l.dubious)
	for key := range l.clusters {
		l.dubious[key.Name] = true
	}
	for key := range l.hosts {
		if key.Kind != api.KindCloud {
			continue
		}
		for name := range p.onCloud[key.Path()] {
			l.dubious[name] = true
		}
	}
	if len(l.metrics)+len(l.providers) == 0 {
		return
	}
	for key, g := range p.clouds.guests {
		c, ok := g.object.(*api.Cluster)
		if !ok {
			continue
		}
		cloud := p.cloudObjects[p.cloudOf[key.Name]]
		if l.lacks(c.Spec.Metrics, p.figures) || cloud != nil && l.lacks(cloud.Spec.Metrics, p.figures) {
			l.dubious[key.Name] = true
		}
	}
}

// holdsPlacement reports whether a decision that answers its spec rests, or may
// rest, on something that is lost.
func (l *lost) holdsPlacement(placed *tracked) bool {
	if l == nil {
		return false
	}
	if present := placed.present(); !present.Answered || present.Fresh {
		return false
	}
	q := placed.query
	// What is relative to the candidates, or spreads over them, changes with each.
	held := len(l.dubious) > 0 && (q.Relative() || q.Spreads()) ||
		len(l.scores) > 0 && placed.object.Spec.Strategy == api.StrategyPrioritizers
	for _, name := range placed.status.Clusters {
		held = held || l.dubious[name]
	}
	for _, set := range q.Sets() {
		held = held || l.sets[api.Key{Kind: api.KindClusterSet, Name: set}]
	}
	if held {
		l.placements[placed] = struct{}{}
	}
	return held
}

// holdsWorkload is the same for a binding.
func (l *lost) holdsWorkload(w *bound) bool {
	if l == nil {
		return false
	}
	meta := &w.object.Metadata
	if w.status.ObservedGeneration != meta.Generation || w.status.ObservedRescheduleRequests != meta.RescheduleRequests {
		return false
	}
	held := false
	for key := range l.policies {
		held = held || key.Path() == w.status.Policy
	}
	for name := range clustersOf(&w.status) {
		held = held || l.dubious[name]
	}
	if held {
		l.workloads[w] = struct{}{}
	}
	return held
}

// holdsGuest is the same for the host of a guest.
func (l *lost) holdsGuest(g *guest, h *hosting) bool {
	if l == nil || g.host == "" {
		return false
	}
	held := false
	for key := range l.hosts {
		held = held || key.Path() == g.host
	}
	if row := h.hosts[g.host]; row != nil {
		held = held || l.lacks(row.Spec.Metrics, h.figures)
	}
	if held {
		l.guests[g] = struct{}{}
	}
	return held
}

// lose tells the planner which objects it has to do without now. What has waited
// for others is looked at again.
func (p *planner) lose(keys []api.Key) {
	before := p.lost
	p.lost = newLost(keys)
	p.clouds.lost, p.projects.lost = p.lost, p.lost
	if before == nil {
		return
	}
	for placed := range before.placements {
		if !placed.gone {
			p.markStale(placed)
		}
	}
	for w := range before.workloads {
		if !w.gone {
			p.bindings.markStale(w)
		}
	}
	for g := range before.guests {
		if h, known := p.guest(g.key()); known == g {
			h.markStale(g)
		}
	}
}
