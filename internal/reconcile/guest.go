package reconcile

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/hosting"
)

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
	turn
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
func (g *guest) verdict() any       { return g.outcome.StatusPart() }
func (g *guest) revision() int64    { return g.specRevision }
func (g *guest) part() func(stored api.Object) {
	if g.hosting.lay == nil {
		return nil
	}
	decided := g.outcome
	return func(stored api.Object) { g.hosting.lay(stored, decided) }
}
func (g *guest) wants() bool { return g.wish == statedWish && g.host == "" }

// putGuest applies a new guest, or a new spec of one.
func (h *hosts) putGuest(g *guest, object api.Object, specRevision int64) {
	isNew := g == nil
	if isNew {
		g = h.newGuest(object)
		h.guests[g.key()] = g
		h.occupants.move(g, nowhere, inPlace(g.host))
	} else {
		g.answered = false
	}
	g.object, g.specRevision, g.query = object, specRevision, nil
	_, g.wish = h.request(object)
	if !isNew || g.wish != noWish || api.FindCondition(statusConditions(object), api.ConditionBound) != nil {
		h.picture.queue.mark(g)
	}
	h.askAgain(g)
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
		h.picture.queue.mark(g)
	}
	h.askAgain(g)
}

// askAgain marks a guest as stale if a new decision was requested.
func (h *hosts) askAgain(g *guest) {
	if h.again(g) {
		g.fresh = true
		h.picture.queue.mark(g)
	}
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

// tells reports whether there is anything to report about a guest.
func (g *guest) tells() bool {
	return g.query != nil || g.host != "" || api.FindCondition(statusConditions(g.object), api.ConditionBound) != nil
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
