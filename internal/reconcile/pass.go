package reconcile

import "time"

// write is a status to be made durable.
type write struct {
	decision
	specRevision int64
	moved        bool // clusters or replicas changed
	observed     bool // only observations changed, and nothing was decided
}

// writes collects the changes of a pass in order.
type writes struct {
	of    map[decision]write
	order []decision
}

func (w *writes) add(s decision, moved bool) {
	known := w.known(s)
	w.of[s] = write{s, s.revision(), moved || known.moved, false}
}

// addObserved adds a status of which only observations changed.
func (w *writes) addObserved(s decision) {
	if _, decided := w.of[s]; !decided {
		w.known(s)
		w.of[s] = write{s, s.revision(), false, true}
	}
}

// known returns the write found earlier, and adds the decision to the list.
func (w *writes) known(s decision) write {
	known, again := w.of[s]
	if !again {
		w.order = append(w.order, s)
		if w.of == nil {
			w.of = map[decision]write{}
		}
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

// pass applies all pending changes and makes every stale decision again. It returns what changed.
func (p *planner) pass(now time.Time) []write {
	p.passes++
	p.advance(now)
	p.placer.catchUp()
	p.placer.followLoad()
	p.lost.doubt(p.clusters, p.pending, p.inherited)
	p.queue.markDue(now)
	for _, g := range p.clusters.zoned {
		if g.gone {
			continue
		}
		g.outcome = p.clouds.result(g, now)
		p.found.addObserved(g)
	}
	p.clusters.zoned = nil
	for p.queue.len() > 0 && !p.limit.reached() {
		p.bindings.now = now
		for _, k := range decidedKinds {
			p.decideStale(k, now)
		}
	}
	p.bindings.observed.pass(p.fleet, now, &p.found)
	for _, d := range p.found.order {
		p.record(d.key())
	}
	for _, key := range p.bindings.changed {
		p.record(key)
	}
	p.bindings.changed = nil
	p.changes.end()
	found := p.found.list()
	p.found = writes{}
	return found
}

// decideStale makes the stale decisions of a kind again, until the limit of the planner is reached.
func (p *planner) decideStale(k decidedKind, now time.Time) {
	for d := range p.queue.round(k) {
		t := d.queued()
		if p.limit.reached() {
			return
		}
		switch {
		case t.gone:
			continue
		case p.defers(d):
		case !t.rounds.another(p.passes):
			p.logger.Warn("a decision did not settle in one pass; it is checked again in a second", "object", d.key().String())
			p.queue.agenda.set(d, now.Add(time.Second))
		default:
			if changed, moved := k.decided(p, d, now); changed {
				p.limit.count(d)
				p.found.add(d, moved)
				continue // recorded at the end of the pass
			}
		}
		p.note(d)
	}
}

// note records a decision for the following snapshots, if anything changed that they need.
func (p *planner) note(d decision) {
	if placed, ok := d.(*placementDecision); ok && placed.recorded != nil && *placed.recorded == placed.state() {
		return // the most common case
	}
	p.recordDecision(d)
}
