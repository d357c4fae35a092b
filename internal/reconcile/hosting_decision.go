package reconcile

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/hosting"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// compile compiles the requirements of a guest; nil if it has none.
func (h *hosts) compile(g *guest) *hosting.HostQuery {
	if g.query != nil || g.wish == noWish {
		return g.query
	}
	request, _ := h.request(g.object)
	query, err := hosting.NewHostQuery(request)
	if err != nil {
		h.picture.logger.Error("a stored object cannot be decided; its decision does not change", "object", g.key().String(), "error", err)
		return nil
	}
	return query
}

// decide chooses the host of one guest if necessary, and reports whether its status changed.
func (h *hosts) decide(g *guest, now time.Time) (changed bool) {
	h.picture.focus(g.key())
	before, answered, fresh := g.host, g.answered && (g.outcome != nil || g.host != ""), g.fresh
	chosen := h.settle(g, now)
	if before != g.host {
		if h.picture.tells {
			g.moves(h.causeOf(g, before, answered, fresh), nil, now)
		}
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
		copied.object, copied.wish, copied.query, copied.answered = object, g.wish, nil, false
		g = &copied
	}
	g.fresh = g.fresh || h.again(g)
	h.settle(g, now)
	if !g.tells() {
		return object, h.explain(g, now)
	}
	return h.result(g, now), h.explain(g, now)
}

// choose chooses a host. It returns false if it is too early for that: the choice is permanent, and
// must wait for metric values that are about to arrive.
func (h *hosts) choose(g *guest, now time.Time) bool {
	if unread := g.query.Unread(h.fleet); unread != "" {
		g.lack = fmt.Sprintf("metric %q has not been read yet", unread)
		return false
	}
	host, score, ok := g.query.Choose(h.fleet, h.view, now)
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

// explain explains why a guest has its host.
func (h *hosts) explain(g *guest, now time.Time) *api.Explanation {
	query := h.compile(g)
	if query == nil {
		text := "nothing is chosen, because it already exists"
		if g.host != "" {
			text = g.host + " was chosen; it now exists, so the choice is final"
		}
		key := g.key()
		return &api.Explanation{Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, At: now.UTC(), Summary: text, Candidates: []api.Candidate{}}
	}
	return query.Explain(h.fleet, g.host, now)
}
