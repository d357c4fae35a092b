package reconcile

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/hosting"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// hosts decides on which host each guest is created: clusters on clouds, Magnum clusters in
// OpenStack projects. The hosts are the rows of an engine fleet, so that one engine makes all three
// kinds of decisions.
//
// A host is chosen once. It is chosen again if it is gone, if the guest's spec has changed and the
// host no longer fits, or on explicit request: what was created somewhere is not moved because a
// metric value has changed.
type hosts struct {
	role
	kind    decidedKind
	basis   *basis // of the decisions that depend on the guests
	fleet   *columns.Fleet
	pending columns.Changes // changes for the fleet, not yet applied
	figures metricSource

	hosts     map[string]*api.Cluster // as rows, by name
	listed    map[api.Key]int         // metrics by the number of hosts that list them
	guests    map[api.Key]*guest
	occupants occupants[*guest]
	// cohort contains all guests: each has its own requirements, and is woken by every change of
	// the hosts while no host fits, or a metric value is missing.
	cohort cohort[*guest]
	// views are shared by guests with the same requirements, by engine.Query.Class, for one version
	// of the fleet.
	views  map[string]*placement.View
	viewed *columns.Fleet
}

// metricSource provides all metrics and providers, for hosts that begin to list one.
type metricSource interface {
	metric(key api.Key) *api.Metric
	provider(key api.Key) *api.MetricsProvider
}

// role distinguishes the kinds of guests.
type role struct {
	// request returns what a guest requires, and whether it needs a host.
	request func(object api.Object) (hosting.HostRequest, wish)
	// chosen returns the host in a guest's stored status.
	chosen func(object api.Object) (host string, score *float64)
	// again reports whether a new decision was requested and has not been made yet.
	again func(g *guest) bool
	// result returns the guest with the decision in its status.
	result func(g *guest, now time.Time) api.Object
	// lay lays what is decided over the status as it is stored, where others write the rest
	// of it; nil where nobody does.
	lay func(stored, decided api.Object)
}

// wish is whether a guest needs a host.
type wish int

const (
	// noWish: it already exists, or is bound by other means.
	noWish wish = iota
	// silentWish: a host is chosen if one fits, but it is not reported if none does.
	silentWish
	// statedWish: it requests a host, and it is reported if none fits.
	statedWish
)

// guest is something that is created on a host.
type guest struct {
	queueEntry
	hosting      *hosts
	object       api.Object
	specRevision int64
	host         string // "" = none
	score        *float64
	wish         wish
	query        *hosting.HostQuery    // nil if not compiled yet
	lack         string                // why no host fits
	outcome      api.Object            // with the status as last decided
	waits        bool                  // no host fits, or a metric value is missing
	answered     bool                  // the decision was made for the current spec
	asked        []string              // metric constraints with which the host was chosen
	fresh        bool                  // a new decision was requested
	zone         *api.ClusterOpenStack // that it represents, once its amounts were observed
}

func (g *guest) kind() decidedKind  { return g.hosting.kind }
func (g *guest) key() api.Key       { return api.KeyOf(g.object) }
func (g *guest) stored() api.Object { return g.object }
func (g *guest) result() api.Object { return g.outcome }
func (g *guest) revision() int64    { return g.specRevision }
func (g *guest) part() func(stored api.Object) {
	if g.hosting.lay == nil {
		return nil
	}
	decided := g.outcome
	return func(stored api.Object) { g.hosting.lay(stored, decided) }
}
func (g *guest) wants() bool { return g.wish == statedWish && g.host == "" }

func newHosting(kind decidedKind, r role, p *basis, figures metricSource) *hosts {
	return &hosts{
		role: r, kind: kind, basis: p, fleet: &columns.Fleet{}, figures: figures,
		hosts: map[string]*api.Cluster{}, listed: map[api.Key]int{}, guests: map[api.Key]*guest{},
		occupants: occupants[*guest]{},
	}
}

// onHosts completes the row of a kind that is created on hosts with what is common to all of them.
func onHosts[O api.Object](r row[O, *guest], of func(p *planner) *hosts) row[O, *guest] {
	r.onHost = true
	r.find = func(p *planner, key api.Key) (*guest, bool) {
		g, ok := of(p).guests[key]
		return g, ok
	}
	// The rest of the status is not decided.
	r.agrees = func(g *guest, stored O) bool {
		host, score := g.hosting.chosen(stored)
		return g.host == host && (g.score == score || g.score != nil && score != nil && *g.score == *score)
	}
	r.holds = func(O) []hold { return nil } // hosts are not used up
	r.order = func(a, b *guest) int { return a.key().Compare(b.key()) }
	r.rests = func(p *planner, g *guest) api.Key { return p.lost.underGuest(g) }
	r.explain = func(s *snapshot, _ O, known *record, now time.Time) *api.Explanation {
		return s.hosting(known.key.Kind).explain(known.guest, now)
	}
	r.preview = func(s *snapshot, object O, now time.Time) (O, *api.Explanation, error) {
		known, _ := s.get(api.KeyOf(object))
		previewed, explanation := s.hosting(object.ObjectKind()).preview(known.guest, object, now)
		return as[O](previewed), explanation, nil
	}
	r.simulate.startsOver = func(_, _ O) bool { return false }
	r.simulate.explainBefore = func(*planner, *guest, time.Time) *api.Explanation { return nil }
	r.simulate.explainAfter = func(_ *planner, g *guest, _ *api.Explanation, _ bool, now time.Time) *api.Explanation {
		if g.host == "" && !g.wants() {
			return nil
		}
		return g.hosting.explain(g, now)
	}
	r.simulate.shown = func(_ *simulation, object O, _ *api.Explanation) O { return object }
	return r
}

// putHost applies a new version of a host; nil deletes it.
func (h *hosts) putHost(name string, row *api.Cluster) {
	if before := h.hosts[name]; before != nil {
		for _, ref := range before.Spec.Metrics {
			if h.listed[ref.Key()]--; h.listed[ref.Key()] == 0 {
				delete(h.listed, ref.Key())
			}
		}
	}
	pend(&h.pending.Clusters, name, row)
	h.occupants.wake(&h.basis.queue, name) // their statuses contain data of the host
	if row == nil {
		delete(h.hosts, name)
		return
	}
	h.hosts[name] = row
	for _, ref := range row.Spec.Metrics {
		if h.listed[ref.Key()]++; h.listed[ref.Key()] == 1 {
			h.changeMetric(ref.Key(), h.figures.metric(ref.Key()))
		}
	}
}

// changeMetric applies a new version of a metric, if a host lists it.
func (h *hosts) changeMetric(key api.Key, m *api.Metric) {
	if h.listed[key] == 0 {
		return
	}
	if m != nil && m.Status.Clusters != nil {
		copied := *m
		copied.Status.Clusters = nil // of clusters; a host may have the same name as one
		m = &copied
	}
	pend(&h.pending.Metrics, key, m)
	if m != nil {
		h.changeProvider(m.ProviderKey(), h.figures.provider(m.ProviderKey()))
	}
}

// changeProvider applies a new version of a metrics provider.
func (h *hosts) changeProvider(key api.Key, provider *api.MetricsProvider) {
	if len(h.listed) == 0 {
		return
	}
	pend(&h.pending.Providers, key, provider)
}

// putGuest applies a new guest, or a new spec of one.
func (h *hosts) putGuest(g *guest, object api.Object, specRevision int64) {
	isNew := g == nil
	if isNew {
		g = h.newGuest(object)
		h.guests[g.key()] = g
		h.occupants.move(g, nowhere, inPlace(g.host))
	}
	h.respecify(g, object)
	g.specRevision = specRevision
	if !isNew || g.wish != noWish || api.FindCondition(statusConditions(object), api.ConditionBound) != nil {
		h.basis.queue.mark(g)
	}
	h.askAgain(g)
}

// respecify gives a guest another spec. Its host is checked again only if it requests something else
// of it: a label of a cluster does not take it off a cloud.
func (h *hosts) respecify(g *guest, object api.Object) {
	before, _ := h.request(g.object)
	request, wish := h.request(object)
	g.answered = g.answered && reflect.DeepEqual(before, request)
	g.object, g.query, g.wish = object, nil, wish
}

// newGuest returns a guest with only the state in its object.
func (h *hosts) newGuest(object api.Object) *guest {
	g := &guest{hosting: h, object: object, answered: true}
	g.host, g.score = h.chosen(object)
	request, wish := h.request(object)
	if g.wish = wish; wish != noWish {
		g.asked = request.MetricConstraints
	}
	return g
}

// seeGuest applies a status of a known spec. A report about a cluster may show that it exists.
func (h *hosts) seeGuest(g *guest, object api.Object) {
	wished := g.wish
	g.object = object
	if _, g.wish = h.request(object); g.wish != wished {
		g.query = nil
		h.basis.queue.mark(g)
	}
	h.askAgain(g)
}

// askAgain marks a guest as stale if a new decision was requested.
func (h *hosts) askAgain(g *guest) {
	if h.again(g) {
		g.fresh = true
		h.basis.queue.mark(g)
	}
}

// compile compiles the requirements of a guest; nil if it has none.
func (h *hosts) compile(g *guest) *hosting.HostQuery {
	if g.query != nil || g.wish == noWish {
		return g.query
	}
	request, _ := h.request(g.object)
	query, err := hosting.NewHostQuery(request)
	if err != nil {
		h.basis.logger.Error("a stored object cannot be decided; its decision does not change", "object", g.key().String(), "error", err)
		return nil
	}
	return query
}

// statusConditions returns the conditions of a guest.
func statusConditions(object api.Object) []api.Condition {
	switch o := object.(type) {
	case *api.Cluster:
		return o.Status.Conditions
	case *api.MagnumCluster:
		return o.Status.Conditions
	}
	return nil
}

func (h *hosts) removeGuest(key api.Key) {
	g, ok := h.guests[key]
	if !ok {
		return
	}
	g.gone = true
	delete(h.guests, key)
	h.cohort.wait(g, false)
	h.occupants.move(g, inPlace(g.host), nowhere)
}

// changes reports whether the hosts have changed since follow.
func (h *hosts) changes() bool {
	return len(h.pending.Clusters)+len(h.pending.Metrics)+len(h.pending.Providers) > 0
}

// follow updates the hosts to a time, with all pending changes, before their guests are decided.
func (h *hosts) follow(now time.Time) {
	if h.changes() {
		next, delta := h.fleet.With(h.pending, now)
		h.fleet, h.pending = next, columns.Changes{}
		if !delta.Empty() {
			h.cohort.wake(&h.basis.queue)
		}
	}
	if h.basis.queue.has(h.kind) {
		h.fleet, _ = h.fleet.With(columns.Changes{}, now) // last good values may have become too old
	}
}

// decide chooses the host of one guest if necessary, and reports whether its status changed.
func (h *hosts) decide(g *guest, now time.Time) (changed bool) {
	h.basis.focus(g.key())
	before := g.host
	chosen := h.settle(g, now)
	if before != g.host {
		h.occupants.move(g, inPlace(before), inPlace(g.host))
	}
	g.waits = g.wish != noWish && (g.host == "" || !chosen)
	h.cohort.wait(g, g.waits)
	if !g.tells() {
		return false
	}
	g.outcome = h.result(g, now)
	return before != g.host || !reflect.DeepEqual(g.outcome.StatusPart(), g.object.StatusPart())
}

// tells reports whether there is anything to report about a guest.
func (g *guest) tells() bool {
	return g.query != nil || g.host != "" || api.FindCondition(statusConditions(g.object), api.ConditionBound) != nil
}

// settle determines the host of a guest: its current one, or another. It returns false if it is too
// early for that.
func (h *hosts) settle(g *guest, now time.Time) (chosen bool) {
	// With no clouds, thousands of existing clusters must not cost anything.
	if g.wish == statedWish || h.fleet.Len() > 0 || g.host != "" {
		g.query = h.compile(g)
	}
	if g.query != nil {
		_, there := h.fleet.Row(g.host)
		others := !slices.Equal(g.asked, g.query.MetricConstraints())
		if (!there || g.fresh || !g.answered && !g.query.Fits(h.fleet, g.host, others)) && !h.choose(g, now) {
			return false
		}
		g.asked = g.query.MetricConstraints()
	}
	if g.wish == noWish {
		g.asked = nil // so that the decision does not depend on history, as for a new guest
	}
	g.answered, g.fresh = true, false
	return true
}

// preview returns a guest, known or not, with the host that it would get, and the explanation.
func (h *hosts) preview(known *guest, object api.Object, now time.Time) (api.Object, *api.Explanation) {
	g := h.newGuest(object)
	if known != nil && known.object.Meta().UID == object.Meta().UID {
		copied := *known
		h.respecify(&copied, object)
		g = &copied
	}
	g.fresh = g.fresh || h.again(g)
	h.settle(g, now)
	if !g.tells() {
		return object, h.explain(g, now)
	}
	return h.result(g, now), h.explain(g, now)
}

// choose chooses a host. If none can be chosen, the guest keeps the one that it has unless something
// is known to speak against it. It returns false if it is too early to choose: the choice is permanent,
// and must wait for metric values that are about to arrive.
func (h *hosts) choose(g *guest, now time.Time) bool {
	if unread := g.query.Unread(h.fleet); unread != "" {
		g.lack = fmt.Sprintf("metric %q has not been read yet", unread)
		return false
	}
	host, score, ok := g.query.Choose(h.fleet, h.view, now)
	if !ok && g.query.Keeps(h.fleet, g.host) {
		g.lack = ""
		return true // it could be chosen if its metrics could be read
	}
	g.host, g.score, g.lack = "", nil, ""
	if ok {
		g.host, g.score = host, &score
		return true
	}
	g.lack = g.query.Sentence(h.fleet)
	return true
}

// view returns the current view of the hosts, shared by all guests with the same requirements.
func (h *hosts) view(q *placement.Query) *placement.View {
	if h.viewed != h.fleet {
		h.viewed, h.views = h.fleet, map[string]*placement.View{}
	}
	v, seen := h.views[q.Class]
	if !seen {
		v = placement.NewView(h.fleet, q, ledger.Others{}, nil)
		h.views[q.Class] = v
	}
	return v
}

// condition returns the Bound condition of a guest, or nil.
func (g *guest) condition(reason string) *api.Condition {
	switch {
	case g.host != "":
		return &api.Condition{Type: api.ConditionBound, Status: api.ConditionTrue, Reason: api.ReasonBound}
	case g.wish == statedWish:
		return &api.Condition{Type: api.ConditionBound, Status: api.ConditionFalse, Reason: reason, Message: g.lack}
	}
	return nil
}

// setBound updates the Bound condition.
func setBound(conditions *[]api.Condition, condition *api.Condition, now time.Time) {
	if condition == nil {
		api.RemoveCondition(conditions, api.ConditionBound)
		return
	}
	api.SetCondition(conditions, *condition, now)
}

// explain explains why a guest has its host.
func (h *hosts) explain(g *guest, now time.Time) *api.Explanation {
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

// change updates a map; nil deletes the entry.
func change[K comparable, T any](all map[K]*T, key K, object *T) {
	if object == nil {
		delete(all, key)
		return
	}
	all[key] = object
}
