package reconcile

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine"
)

// hosting decides on which host each guest is created: clusters on clouds, Magnum
// clusters in OpenStack projects. The hosts are the rows of an engine fleet, so
// that one engine serves all three decisions.
//
// A host is chosen once. It is chosen again when it is gone, when the guest's spec
// has changed and the host fits it no more, or on explicit request: what was
// created somewhere is not moved because a figure has changed.
type hosting struct {
	role
	logger  *slog.Logger
	fleet   *engine.Fleet
	pending engine.Changes // of the fleet, not yet applied
	figures *figures
	lost    *lost // may be nil

	hosts   map[string]*api.Cluster // as rows, by name
	listed  map[api.Key]int         // metrics, by how many hosts list them
	guests  map[api.Key]*guest
	on      map[string]map[*guest]struct{} // guests by host
	wanting map[*guest]struct{}            // guests that no host fits, or that wait for figures
	stale   []*guest
	changed []*guest // since the planner last asked
	focus   func(api.Key)
}

// figures are all metrics and providers there are, for hosts that begin to list
// one.
type figures struct {
	metrics   map[api.Key]*api.Metric
	providers map[api.Key]*api.MetricsProvider
}

// role is what tells one kind of guest from another.
type role struct {
	// request is what a guest asks for, and how much it wants a host.
	request func(object api.Object) (engine.HostRequest, wish)
	// chosen is the host in a guest's stored status.
	chosen func(object api.Object) (host string, score *float64)
	// result is the guest with the decision in its status.
	result func(g *guest, now time.Time) api.Object
}

// wish is how much a guest wants a host.
type wish int

const (
	// noWish: it exists already, or is bound by other means.
	noWish wish = iota
	// silentWish: a host is chosen where there is one that fits, and it is no
	// news where there is none.
	silentWish
	// statedWish: it asks for a host, and is told where none fits.
	statedWish
)

// guest is something that is created on a host.
type guest struct {
	object       api.Object
	specRevision int64
	host         string // "" = none
	score        *float64
	wish         wish
	query        *engine.HostQuery     // nil where it has not been asked yet
	lack         string                // why no host fits
	outcome      api.Object            // with the status as last decided
	answered     bool                  // the decision answers the present spec
	asked        []string              // metric constraints that the host was chosen by
	fresh        bool                  // a new decision is wanted
	zone         *api.ClusterOpenStack // that it stands for, once its amounts were observed
	stale, gone  bool
}

func (g *guest) key() api.Key       { return api.KeyOf(g.object) }
func (g *guest) revision() int64    { return g.specRevision }
func (g *guest) wants() bool        { return g.wish == statedWish && g.host == "" }
func (g *guest) isGone() bool       { return g.gone }
func (g *guest) result() api.Object { return g.outcome }

func newHosting(r role, all *figures, p *picture) *hosting {
	return &hosting{
		role: r, logger: p.logger, focus: p.focus, fleet: &engine.Fleet{}, figures: all,
		hosts: map[string]*api.Cluster{}, listed: map[api.Key]int{}, guests: map[api.Key]*guest{},
		on: map[string]map[*guest]struct{}{}, wanting: map[*guest]struct{}{},
	}
}

// putHost takes in a new version of a host; nil takes it away.
func (h *hosting) putHost(name string, row *api.Cluster) {
	if before := h.hosts[name]; before != nil {
		for _, ref := range before.Spec.Metrics {
			if h.listed[ref.Key()]--; h.listed[ref.Key()] == 0 {
				delete(h.listed, ref.Key())
			}
		}
	}
	if h.pending.Clusters == nil {
		h.pending.Clusters = map[string]*api.Cluster{}
	}
	h.pending.Clusters[name] = row
	for g := range h.on[name] {
		h.markStale(g) // its status repeats what the host says
	}
	if row == nil {
		delete(h.hosts, name)
		return
	}
	h.hosts[name] = row
	for _, ref := range row.Spec.Metrics {
		if h.listed[ref.Key()]++; h.listed[ref.Key()] == 1 {
			h.changeMetric(ref.Key(), h.figures.metrics[ref.Key()])
		}
	}
}

// changeMetric takes in a new version of a metric, where a host lists it.
func (h *hosting) changeMetric(key api.Key, m *api.Metric) {
	if h.listed[key] == 0 {
		return
	}
	if h.pending.Metrics == nil {
		h.pending.Metrics = map[api.Key]*api.Metric{}
	}
	h.pending.Metrics[key] = m
	if m != nil {
		h.changeProvider(m.ProviderKey(), h.figures.providers[m.ProviderKey()])
	}
}

// changeProvider takes in a new version of a metrics provider.
func (h *hosting) changeProvider(key api.Key, provider *api.MetricsProvider) {
	if len(h.listed) == 0 {
		return
	}
	if h.pending.Providers == nil {
		h.pending.Providers = map[api.Key]*api.MetricsProvider{}
	}
	h.pending.Providers[key] = provider
}

// putGuest takes in a new version of a guest. The decision in its status is used
// where none is known; otherwise the one known is at least as new.
func (h *hosting) putGuest(object api.Object, specRevision int64) {
	key := api.KeyOf(object)
	g, ok := h.guests[key]
	if ok && g.object.Meta().UID != object.Meta().UID {
		h.removeGuest(key)
		ok = false
	}
	if !ok {
		g = &guest{answered: true}
		g.host, g.score = h.chosen(object)
		if request, wish := h.request(object); wish != noWish {
			g.asked = request.MetricConstraints
		}
		h.guests[key] = g
		if g.host != "" {
			add(h.on, g.host, g)
		}
	}
	same := ok && g.specRevision == specRevision
	g.answered = g.answered && (!ok || same)
	wished := g.wish
	g.object, g.specRevision = object, specRevision
	// What is reported about a cluster can tell that it exists.
	_, g.wish = h.request(object)
	if same && wished == g.wish || !ok && g.wish == noWish && api.FindCondition(statusConditions(object), api.ConditionBound) == nil {
		return
	}
	g.query = nil
	h.markStale(g)
}

// compile is what a guest asks for; nil where it asks for nothing.
func (h *hosting) compile(g *guest) *engine.HostQuery {
	if g.query != nil || g.wish == noWish {
		return g.query
	}
	request, _ := h.request(g.object)
	query, err := engine.NewHostQuery(request)
	if err != nil {
		h.logger.Error("a stored object cannot be decided; its decision stands", "object", g.key().String(), "error", err)
		return nil
	}
	return query
}

// statusConditions are those of a guest.
func statusConditions(object api.Object) []api.Condition {
	switch o := object.(type) {
	case *api.Cluster:
		return o.Status.Conditions
	case *api.MagnumCluster:
		return o.Status.Conditions
	}
	return nil
}

func (h *hosting) removeGuest(key api.Key) {
	g, ok := h.guests[key]
	if !ok {
		return
	}
	g.gone = true
	delete(h.guests, key)
	delete(h.wanting, g)
	drop(h.on, g.host, g)
}

func (h *hosting) markStale(g *guest) {
	if !g.stale {
		g.stale = true
		h.stale = append(h.stale, g)
	}
}

// pass applies what changed up to now and makes every stale decision again.
func (h *hosting) pass(now time.Time) {
	if len(h.pending.Clusters)+len(h.pending.Metrics)+len(h.pending.Providers) > 0 {
		next, delta := h.fleet.With(h.pending, now)
		h.fleet, h.pending = next, engine.Changes{}
		if !delta.Empty() {
			for g := range h.wanting {
				h.markStale(g)
			}
		}
	}
	if len(h.stale) == 0 {
		return
	}
	h.fleet, _ = h.fleet.With(engine.Changes{}, now) // last good values may be too old by now
	batch := h.stale
	h.stale = nil
	slices.SortFunc(batch, func(a, b *guest) int { return a.key().Compare(b.key()) })
	for _, g := range batch {
		if g.stale = false; !g.gone && !h.lost.holdsGuest(g, h) {
			h.decide(g, now)
		}
	}
}

// decide chooses the host of one guest where it has to be chosen.
func (h *hosting) decide(g *guest, now time.Time) {
	h.focus(g.key())
	before := g.host
	// Thousands of clusters that exist elsewhere ask nothing of clouds that there are
	// none of.
	if g.wish == statedWish || len(h.hosts) > 0 || before != "" {
		g.query = h.compile(g)
	}
	chosen := true
	if g.query != nil {
		_, there := h.fleet.Row(g.host)
		others := !slices.Equal(g.asked, g.query.MetricConstraints())
		if !there || g.fresh || !g.answered && !g.query.Fits(h.fleet, g.host, others) {
			chosen = h.choose(g, now)
		}
	}
	if chosen {
		g.answered, g.fresh = true, false
		if g.query != nil {
			g.asked = g.query.MetricConstraints()
		}
	}
	if before != g.host {
		drop(h.on, before, g)
		if g.host != "" {
			add(h.on, g.host, g)
		}
	}
	delete(h.wanting, g)
	if g.wish != noWish && (g.host == "" || !chosen) {
		h.wanting[g] = struct{}{}
	}
	if g.query == nil && g.host == "" && api.FindCondition(statusConditions(g.object), api.ConditionBound) == nil {
		return // there is nothing to say of it
	}
	g.outcome = h.result(g, now)
	if before != g.host || !reflect.DeepEqual(g.outcome.StatusPart(), g.object.StatusPart()) {
		h.changed = append(h.changed, g)
	}
}

// choose chooses a host anew. It reports false where it is too early for that: a
// choice stays, and is not to be made without figures that are about to come.
func (h *hosting) choose(g *guest, now time.Time) bool {
	if unread := g.query.Unread(h.fleet); unread != "" {
		g.lack = fmt.Sprintf("metric %q has not been read yet", unread)
		return false
	}
	host, score, ok := g.query.Choose(h.fleet, now)
	g.host, g.score, g.lack = "", nil, ""
	if ok {
		g.host, g.score = host, &score
		return true
	}
	g.lack = g.query.Sentence(h.fleet)
	return true
}

// take returns what has changed since it was last called.
func (h *hosting) take() []*guest {
	changed := h.changed
	h.changed = nil
	return slices.DeleteFunc(changed, func(g *guest) bool { return g.gone })
}

// bound is the Bound condition of a guest, nil where it has none.
func (g *guest) bound(reason string) *api.Condition {
	switch {
	case g.host != "":
		return &api.Condition{Type: api.ConditionBound, Status: api.ConditionTrue, Reason: api.ReasonBound}
	case g.wish == statedWish:
		return &api.Condition{Type: api.ConditionBound, Status: api.ConditionFalse, Reason: reason, Message: g.lack}
	}
	return nil
}

// withBound are conditions with the Bound condition as it is now.
func withBound(conditions []api.Condition, bound *api.Condition, now time.Time) []api.Condition {
	old := api.FindCondition(conditions, api.ConditionBound)
	switch {
	case bound == nil && old == nil:
		return conditions
	case bound == nil:
		return slices.DeleteFunc(slices.Clone(conditions), func(c api.Condition) bool { return c.Type == api.ConditionBound })
	case old != nil && sameCondition(*old, *bound):
		return conditions
	}
	return api.WithCondition(conditions, *bound, now)
}

// explain says why a guest has the host it has.
func (h *hosting) explain(g *guest, now time.Time) *api.Explanation {
	query := h.compile(g)
	if query == nil {
		text := "nothing is chosen for it: it exists already"
		if g.host != "" {
			text = g.host + " was chosen; it exists, so that nothing is chosen any more"
		}
		key := g.key()
		return &api.Explanation{Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, At: now.UTC(), Summary: text, Candidates: []api.Candidate{}}
	}
	return query.Explain(h.fleet, g.host, now)
}

// newFigures knows no metrics.
func newFigures() *figures {
	return &figures{metrics: map[api.Key]*api.Metric{}, providers: map[api.Key]*api.MetricsProvider{}}
}

// change keeps one of the maps; nil takes the object away.
func change[T any](all map[api.Key]*T, key api.Key, object *T) {
	if object == nil {
		delete(all, key)
		return
	}
	all[key] = object
}
