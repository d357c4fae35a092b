package reconcile

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/hosting"
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
	picture *picture // of the decisions that depend on the guests
	fleet   *columns.Fleet
	pending columns.Changes // changes for the fleet, not yet applied
	figures figures

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

// figures provides all metrics and providers, for hosts that begin to list one.
type figures interface {
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

func newHosting(kind decidedKind, r role, p *picture, figures figures) *hosts {
	return &hosts{
		role: r, kind: kind, picture: p, fleet: &columns.Fleet{}, figures: figures,
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
	r.turn = func(a, b *guest) int { return a.key().Compare(b.key()) }
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
	r.simulate.foresee = func(*planner, *guest, time.Time) *api.Explanation { return nil }
	r.simulate.recall = func(_ *planner, g *guest, _ *api.Explanation, _ bool, now time.Time) *api.Explanation {
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
	h.occupants.wake(&h.picture.queue, name) // their statuses contain data of the host
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
			h.cohort.wake(&h.picture.queue)
		}
	}
	if h.picture.queue.has(h.kind) {
		h.fleet, _ = h.fleet.With(columns.Changes{}, now) // last good values may have become too old
	}
}

// change updates a map; nil deletes the entry.
func change[K comparable, T any](all map[K]*T, key K, object *T) {
	if object == nil {
		delete(all, key)
		return
	}
	all[key] = object
}
