package reconcile

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/google/btree"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// lost are the objects that exist but cannot be used for decisions: they are damaged in the store
// without an intact version in memory, or processing them panics. A decision that was based on one
// of them is not made again until it is back: an object that cannot be read has not been deleted.
type lost struct {
	clusters, sets, policies, hosts, scores, metrics, providers, windows map[api.Key]bool
	// dubious are the names of the clusters that are lost, or incomplete because they list a metric
	// or have a cloud that is lost; each with what is lost.
	dubious map[string]api.Key

	// waiting are the decisions that wait for lost objects.
	waiting *btree.BTreeG[wait]
}

// wait is a decision that waits, with one object that it waits for.
type wait struct{ key, on api.Key }

func newLost(keys []api.Key) *lost {
	if len(keys) == 0 {
		return nil
	}
	l := &lost{
		clusters: map[api.Key]bool{}, sets: map[api.Key]bool{}, policies: map[api.Key]bool{}, hosts: map[api.Key]bool{},
		scores: map[api.Key]bool{}, metrics: map[api.Key]bool{}, providers: map[api.Key]bool{}, windows: map[api.Key]bool{}, dubious: map[string]api.Key{},
		waiting: btree.NewG(16, func(a, b wait) bool { return a.key.Compare(b.key) < 0 }),
	}
	of := map[api.Kind]map[api.Key]bool{
		api.KindCluster: l.clusters, api.KindClusterSet: l.sets, api.KindPropagationPolicy: l.policies,
		api.KindCloud: l.hosts, api.KindOpenStackProject: l.hosts, api.KindPlacementScore: l.scores,
		api.KindMetric: l.metrics, api.KindMetricsProvider: l.providers, api.KindMoveWindow: l.windows,
	}
	for _, key := range keys {
		if set, counts := of[key.Kind]; counts {
			set[key] = true
		}
	}
	return l
}

// lostIn returns the objects of a snapshot of the fleet that are lost because of damage.
func lostIn(snapshot *fleet.Snapshot) []api.Key {
	var keys []api.Key
	for _, d := range snapshot.AllDamaged() {
		if d.Lost {
			keys = append(keys, d.Key)
		}
	}
	return keys
}

// lacks returns the metric in a list that is lost, or its provider, or the zero key.
func (l *lost) lacks(refs []api.MetricRef, all metricSource) api.Key {
	for _, ref := range refs {
		if l.metrics[ref.Key()] {
			return ref.Key()
		}
		if m := all.metric(ref.Key()); m != nil && l.providers[m.ProviderKey()] {
			return m.ProviderKey()
		}
	}
	return api.Key{}
}

// doubt determines, from what is known of clusters and clouds, which clusters are lost or
// incomplete.
func (l *lost) doubt(known *cloudClusters, figures metricSource, in *inherited) {
	if l == nil {
		return
	}
	clear(l.dubious)
	for key := range l.clusters {
		l.dubious[key.Name] = key
	}
	for key := range l.hosts {
		if key.Kind != api.KindCloud {
			continue
		}
		for name := range known.onCloud[key.Path()] {
			l.dubious[name] = key
		}
	}
	if len(l.metrics)+len(l.providers) == 0 {
		return
	}
	in.takeOverKind(api.KindCluster)
	for key, g := range known.clouds.guests {
		c, ok := g.object.(*api.Cluster)
		if !ok {
			continue
		}
		refs := c.Spec.Metrics
		if cloud := known.objects[known.cloudOf[key.Name]]; cloud != nil {
			refs = slices.Concat(refs, cloud.Spec.Metrics)
		}
		if lacks := l.lacks(refs, figures); lacks != (api.Key{}) {
			l.dubious[key.Name] = lacks
		}
	}
}

// anyOf returns the first key of a set, so that the result is deterministic.
func anyOf(keys iter.Seq[api.Key]) api.Key {
	first := api.Key{}
	for key := range keys {
		if first == (api.Key{}) || key.Compare(first) < 0 {
			first = key
		}
	}
	return first
}

// defers reports whether a decision must be kept, because it was made for the current spec and
// depends, or may depend, on something that is lost.
func (p *planner) defers(d decision) bool {
	if p.lost == nil {
		return false
	}
	key := d.kind().restsOn(p, d)
	if key == (api.Key{}) {
		before, _ := p.lost.waiting.Delete(wait{key: d.key()})
		p.waited(d.key(), before.on)
		return false
	}
	before, _ := p.lost.waiting.ReplaceOrInsert(wait{d.key(), key})
	p.waited(d.key(), before.on)
	return true
}

// waited records what a decision has waited for before it is evaluated again; the zero key means
// nothing.
func (p *planner) waited(key, on api.Key) {
	if _, noted := p.waitedFor[key]; !noted {
		p.waitedFor[key] = on
	}
}

// otherwiseHeld returns the decisions that wait for something else than in the previous snapshot.
func (p *planner) otherwiseHeld(s *snapshot) (keys []api.Key) {
	for key, before := range p.waitedFor {
		if s.waitsFor(key) != before {
			keys = append(keys, key)
		}
	}
	clear(p.waitedFor)
	return keys
}

// waitsFor returns what a decision waits for, or the zero key.
func (s *snapshot) waitsFor(key api.Key) api.Key {
	if s.waiting == nil {
		return api.Key{}
	}
	w, _ := s.waiting.Get(wait{key: key})
	return w.on
}

// underPlacement returns the lost object that a placement depends on.
func (l *lost) underPlacement(placed *placementDecision) (on api.Key) {
	if present := placed.present(); !present.Answered || present.Fresh {
		return on
	}
	q := placed.query
	switch {
	case len(l.dubious) > 0 && (q.Relative() || q.Spreads()):
		on = anyOf(maps.Values(l.dubious)) // each one affects all placements
	case len(l.scores) > 0 && (q.Reads() | q.ScoreReads()).Any(columns.ScoreValues):
		on = anyOf(maps.Keys(l.scores))
	}
	for _, set := range q.Sets() {
		if key := (api.Key{Kind: api.KindClusterSet, Name: set}); l.sets[key] {
			on = key
		}
	}
	for _, name := range placed.status.Clusters {
		if key, dubious := l.dubious[name]; dubious {
			on = key
		}
	}
	return on
}

// underWorkload returns the lost object that a binding depends on.
func (l *lost) underWorkload(w *workloadBinding) api.Key {
	if answered, fresh := w.status.Answers(&w.object.Metadata); !answered || fresh {
		return api.Key{}
	}
	var on []api.Key
	for key := range l.policies {
		if key.Path() == w.status.Policy {
			on = append(on, key)
		}
	}
	for name := range clustersOf(&w.status) {
		if key, dubious := l.dubious[name]; dubious {
			on = append(on, key)
		}
	}
	return anyOf(slices.Values(on))
}

// underGuest returns the lost object that the choice of a host depends on.
func (l *lost) underGuest(g *guest) (on api.Key) {
	if g.host == "" {
		return on
	}
	for key := range l.hosts {
		if key.Path() == g.host {
			on = key
		}
	}
	if row := g.hosting.hosts[g.host]; row != nil && on == (api.Key{}) {
		on = l.lacks(row.Spec.Metrics, g.hosting.figures)
	}
	return on
}

// withMoveHeld returns a copy of an object with a condition that says what its decision waits for,
// or the object itself if it waits for nothing.
func (s *snapshot) withMoveHeld(object api.Object, now time.Time) api.Object {
	on := s.waitsFor(api.KeyOf(object))
	if on == (api.Key{}) {
		return s.withWindow(object, now)
	}
	return api.CopyWith(object, api.Condition{
		Type: api.ConditionMoveHeld, Status: api.ConditionTrue, Reason: api.ReasonInputLost,
		Message: "the decision stays as it is while " + nameFor(object, on) + " cannot be used, because it is damaged in the store or the server fails on it",
	})
}

// withWindow is withMoveHeld for move windows. The condition says what may not move, whether or not it would.
func (s *snapshot) withWindow(object api.Object, now time.Time) api.Object {
	if k := decidedAs(object.ObjectKind()); k == nil || k.hosted() {
		return object
	}
	hold := s.fleet.Windows().Held(object.Meta().Namespace, object.Meta().Labels, now)
	if hold == nil {
		return object
	}
	return api.CopyWith(object, api.Condition{
		Type: api.ConditionMoveHeld, Status: api.ConditionTrue, Reason: api.ReasonHeldByWindow,
		Message: "the decision moves only if it has to: " + hold.String(),
	})
}

// nameFor returns the name of another object for a message of an object: its actual name only if
// the object refers to it or is in the same namespace, because readers of the one need not know the
// other.
func nameFor(object api.Object, key api.Key) string {
	named := func(ref api.Reference) bool { return ref.Key == key }
	if key.Namespace != "" && key.Namespace == object.Meta().Namespace ||
		slices.ContainsFunc(api.References(object), named) || slices.ContainsFunc(api.StatusReferences(object), named) {
		return key.String()
	}
	return "a " + string(key.Kind)
}

// lose sets the lost objects. Decisions that waited for others are evaluated again.
func (p *planner) lose(keys []api.Key) {
	before := p.lost
	p.lost = newLost(keys)
	p.loseWindows()
	if before == nil {
		return
	}
	before.waiting.Ascend(func(w wait) bool {
		p.waited(w.key, w.on)
		if d := p.known(w.key); d != nil {
			p.queue.mark(d)
		}
		return true
	})
}

// effectLost is the effect of a window that stands in for one that is lost. No window that is written can have it.
const effectLost = "lost"

// loseWindows lets a window in the place of each one that is lost deny every move, because nobody knows when that one
// allows them. What has to move moves all the same.
func (p *planner) loseWindows() {
	var lost map[api.Key]bool
	if p.lost != nil {
		lost = p.lost.windows
	}
	for _, all := range []map[api.Key]*api.MoveWindow{p.fleet.MoveWindows(), maps.Clone(p.pending.Windows)} {
		for key := range all {
			if w := p.pending.window(key); w != nil && w.Spec.Effect == effectLost && !lost[key] {
				p.pending.changeWindow(key, nil)
			}
		}
	}
	for key := range lost {
		if p.pending.window(key) == nil {
			p.pending.changeWindow(key, &api.MoveWindow{
				Metadata: api.Metadata{Namespace: key.Namespace, Name: key.Name},
				Spec:     api.MoveWindowSpec{Effect: effectLost, Description: "which cannot be read"},
			})
		}
	}
}
