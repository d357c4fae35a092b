package reconcile

import (
	"cmp"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// write is a status to be made durable.
type write struct {
	decision
	specRevision int64
	moved        bool // the set of clusters, or of replicas, changed
	observed     bool // only what was observed differs, and nothing was decided
}

// decision is what is decided: the clusters of a placement, the binding of a
// workload.
type decision interface {
	key() api.Key
	// result is the object with its status as last decided, and revision that of
	// the spec that was decided.
	result() api.Object
	revision() int64
	// wants reports whether it did not get what it wants.
	wants() bool
	isGone() bool
}

func (p *tracked) key() api.Key        { return p.query.Key }
func (p *tracked) instant() *time.Time { return &p.at }
func (p *tracked) isGone() bool        { return p.gone }
func (p *tracked) wants() bool         { return p.wanting }
func (p *tracked) revision() int64     { return p.specRevision }

// result is the placement with its status as last decided.
func (p *tracked) result() api.Object {
	object := *p.object
	object.Status = p.status
	return &object
}

// maxRounds is how often a decision is made in one pass. A second time is due
// when a reservation taken or freed in the pass concerns it.
const maxRounds = 4

// rounds counts how often a decision was made in a pass.
type rounds struct{ pass, made int }

// another reports whether it may be made once more in a pass.
func (r *rounds) another(pass int) bool {
	if r.pass != pass {
		r.pass, r.made = pass, 0
	}
	r.made++
	return r.made <= maxRounds
}

// writes collects what differs after a pass, in the order in which it was found.
type writes struct {
	of    map[decision]write
	order []decision
}

func (w *writes) add(s decision, moved bool) {
	known := w.known(s)
	w.of[s] = write{s, s.revision(), moved || known.moved, false}
}

// addObserved adds one of which only what was observed differs.
func (w *writes) addObserved(s decision) {
	if _, decided := w.of[s]; !decided {
		w.known(s)
		w.of[s] = write{s, s.revision(), false, true}
	}
}

// known is what was found before, and has it listed from now on.
func (w *writes) known(s decision) write {
	known, again := w.of[s]
	if !again {
		w.order = append(w.order, s)
	}
	return known
}

func (w *writes) list() []write {
	out := make([]write, 0, len(w.order))
	for _, s := range w.order {
		out = append(out, w.of[s])
	}
	return out
}

// pass applies what changed up to now and makes every stale decision again. It
// returns what differs.
func (p *planner) pass(now time.Time) []write {
	p.passes++
	p.advance(now)
	p.doubt()
	for _, placed := range p.agenda.due(now) {
		p.markStale(placed)
	}
	for _, w := range p.bindings.agenda.due(now) {
		p.bindings.markStale(w)
	}
	found := &writes{of: map[decision]write{}}
	for _, g := range p.hosted {
		found.add(g, true)
	}
	p.hosted = nil
	for _, g := range p.zoned {
		if g.gone {
			continue
		}
		g.outcome = p.clouds.result(g, now)
		found.addObserved(g)
	}
	p.zoned = nil
	for len(p.stale)+len(p.bindings.stale) > 0 {
		p.passPlacements(now, found)
		p.bindings.pass(p.passes, now, found)
	}
	p.bindings.passObserved(now, found)
	return found.list()
}

func (p *planner) passPlacements(now time.Time, found *writes) {
	batch := p.stale
	p.stale = nil
	// Placements that compete for resources take their turn by name.
	slices.SortFunc(batch, func(a, b *tracked) int {
		return cmp.Or(cmp.Compare(a.query.Key.Namespace, b.query.Key.Namespace), cmp.Compare(a.query.Key.Name, b.query.Key.Name))
	})
	for _, placed := range batch {
		placed.stale = false
		if placed.gone || p.lost.holdsPlacement(placed) {
			continue
		}
		if !placed.rounds.another(p.passes) {
			p.logger.Warn("a placement did not settle in one pass; it is looked at again in a second", "placement", placed.query.Key.Path())
			p.agenda.set(placed, now.Add(time.Second))
			continue
		}
		if changed, moved := p.decide(placed, now); changed {
			found.add(placed, moved)
		}
	}
}

// pass makes the stale bindings again.
func (b *bindings) pass(number int, now time.Time, found *writes) {
	b.now = now
	for _, w := range b.next() {
		w.stale = false
		if w.gone || b.lost.holdsWorkload(w) {
			continue
		}
		if !w.rounds.another(number) {
			b.logger.Warn("a workload did not settle in one pass; it is looked at again in a second", "workload", w.key().Path())
			b.agenda.set(w, now.Add(time.Second))
			continue
		}
		if changed, moved := b.decide(w, now); changed {
			found.add(w, moved)
		}
	}
}
