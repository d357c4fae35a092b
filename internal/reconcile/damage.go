package reconcile

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// lost are the objects that exist and are not known, because they are damaged in
// the store and no sound version is in memory. A decision that was made from one
// of them is not made again before it is known: what cannot be read has not gone.
type lost struct {
	clusters map[string]bool
	sets     map[string]bool
	policies map[string]bool // by path
	hosts    map[string]bool // by path
	scores   bool
	// figures: a metric or provider is lost, and with it what may count for
	// anything that is compared by metrics.
	figures bool
	clouds  bool // with what clusters inherit from them

	// What waits for them.
	placements map[*tracked]struct{}
	workloads  map[*bound]struct{}
	guests     map[*guest]struct{}
}

func newLost(objects []*fleet.Damage) *lost {
	l := &lost{
		clusters: map[string]bool{}, sets: map[string]bool{}, policies: map[string]bool{}, hosts: map[string]bool{},
		placements: map[*tracked]struct{}{}, workloads: map[*bound]struct{}{}, guests: map[*guest]struct{}{},
	}
	for _, d := range objects {
		if !d.Lost {
			continue
		}
		switch d.Key.Kind {
		case api.KindCluster:
			l.clusters[d.Key.Name] = true
		case api.KindClusterSet:
			l.sets[d.Key.Name] = true
		case api.KindPropagationPolicy:
			l.policies[d.Key.Path()] = true
		case api.KindPlacementScore:
			l.scores = true
		case api.KindMetric, api.KindMetricsProvider:
			l.figures = true
		case api.KindCloud:
			l.clouds, l.hosts[d.Key.Path()] = true, true
		case api.KindOpenStackProject:
			l.hosts[d.Key.Path()] = true
		}
	}
	return l
}

// holdsPlacement reports whether a decision that answers its spec rests, or may
// rest, on something that is lost.
func (l *lost) holdsPlacement(placed *tracked) bool {
	if present := placed.present(); l == nil || !present.Answered || present.Fresh {
		return false
	}
	q := placed.query
	held := l.figures || l.clouds || len(l.clusters) > 0 && (q.Relative() || q.Spreads()) ||
		l.scores && placed.object.Spec.Strategy == api.StrategyPrioritizers
	for _, name := range placed.status.Clusters {
		held = held || l.clusters[name]
	}
	for _, set := range q.Sets() {
		held = held || l.sets[set]
	}
	if held {
		l.placements[placed] = struct{}{}
	}
	return held
}

// holdsWorkload is the same for a binding.
func (l *lost) holdsWorkload(w *bound) bool {
	meta := &w.object.Metadata
	if l == nil || w.status.ObservedGeneration != meta.Generation || w.status.ObservedRescheduleRequests != meta.RescheduleRequests {
		return false
	}
	held := l.clouds || l.figures || l.policies[w.status.Policy]
	for name := range clustersOf(&w.status) {
		held = held || l.clusters[name]
	}
	if held {
		l.workloads[w] = struct{}{}
	}
	return held
}

// holdsGuest is the same for the host of a guest.
func (l *lost) holdsGuest(g *guest) bool {
	if l == nil || g.host == "" || !l.figures && !l.hosts[g.host] {
		return false
	}
	l.guests[g] = struct{}{}
	return true
}

// lose tells the planner which objects are damaged now. What has waited for
// others is looked at again.
func (p *planner) lose(damaged []*fleet.Damage) {
	before := p.lost
	p.lost = newLost(damaged)
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
