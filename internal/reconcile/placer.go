package reconcile

import (
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// placer decides the placements of a planner: it holds each one, its decision, and what makes that
// stale. The picture is the planner's.
type placer struct {
	*picture
	// note notifies the planner that the standing of a decision has changed, although the decision
	// is the same.
	note func(placed *placementDecision)

	placements map[api.Key]*placementDecision
	compiled   compiled
	classes    cohorts[*placementDecision, *class]
	rankings   rankings
	occupants  occupants[*placementDecision]
	// holding are the classes with placements whose moves are held.
	holding map[*class]struct{}
}

func newPlacer(p *picture, note func(*placementDecision)) *placer {
	return &placer{
		picture: p, note: note,
		placements: map[api.Key]*placementDecision{},
		compiled:   compiled{},
		classes:    newCohorts[*placementDecision, *class](),
		rankings:   rankings{},
		occupants:  occupants[*placementDecision]{},
		holding:    map[*class]struct{}{},
	}
}

// put applies a new placement, or a new spec of one. resumed says that the decision of a new one
// was made by an earlier run of the server, or by another server.
func (p *placer) put(known *placementDecision, object *api.Placement, specRevision int64, resumed bool) {
	query, err := p.compiled.query(object)
	if err != nil {
		p.logger.Error("a stored placement cannot be decided; its decision does not change", "placement", api.KeyOf(object).Path(), "error", err)
		return
	}
	if known == nil {
		known = &placementDecision{object: object, specRevision: specRevision, query: query, status: &object.Status}
		known.resumed = resumed
		p.placements[query.Key] = known
		p.joinClass(known)
		known.class.share(query)
		p.index(known, nil, object.Status.Involved())
		p.reserve(known, nil, object.Status.Holding())
		p.moves.account(query.Key, "", nil, "", object.Status.Moves)
		p.queue.mark(known)
		return
	}
	p.leaveClass(known)
	known.rewritten(known.object)
	known.object, known.specRevision, known.query = object, specRevision, query
	p.joinClass(known)
	known.class.share(query)
	before := known.status
	if sameStatus(&object.Status, before) {
		known.status = &object.Status
	}
	if now := object.Status; now.ObservedGeneration == object.Metadata.Generation &&
		now.ObservedGeneration > before.ObservedGeneration {
		// The decision was committed together with the spec: it was previewed. A decision made here
		// in the meantime for the previous spec, which could no longer be written, is void.
		known.status, known.reported = withReports(&object.Status, before)
		known.move, known.brewing = nil, nil
		p.index(known, before.Involved(), known.status.Involved())
	}
	p.reserve(known, before.Holding(), known.status.Holding())
	p.moves.account(query.Key, "", before.Moves, "", known.status.Moves)
	p.queue.mark(known)
}

// see applies a status of a known spec. An older one may arrive after a newer one was decided.
func (p *placer) see(known *placementDecision, object *api.Placement) {
	if sameStatus(&object.Status, known.status) {
		known.object, known.status = object, &object.Status // share the memory of the fleet's copy
	}
}

func (p *placer) remove(placed *placementDecision) {
	placed.gone = true
	p.leaveClass(placed)
	p.index(placed, placed.status.Involved(), nil)
	p.reserve(placed, placed.status.Holding(), nil)
	p.moves.account(placed.query.Key, "", placed.status.Moves, "", nil)
	p.waits.hold(placed.query.Key, nil)
	delete(p.placements, placed.query.Key)
}

func (p *placer) joinClass(placed *placementDecision) {
	c := p.classOf(placed.query)
	c.add(placed)
	placed.class, placed.wanting, placed.decided = c, false, false
}

// classOf returns the class of a query and counts another use of it.
func (p *placer) classOf(q *placement.Query) *class {
	return p.classes.join(q, concerning(q), func(shared cohort[*placementDecision]) *class {
		c := &class{cohort: shared}
		p.rankings.join(c, func(r *score.Ranking) *placement.View { return p.classes.view(p.picture, q, r) })
		c.view.Ceiling = &c.panel.ceiling
		c.expired = c.view.Expired(p.fleet, q)
		return c
	})
}

// concerning returns the aspects of a cluster whose change makes the class of a query be evaluated:
// those that determine which clusters are admitted, and those that affect more than one cluster.
func concerning(q *placement.Query) columns.Aspects {
	reads := q.Reads()
	if q.Relative() {
		reads |= q.ScoreReads() & columns.OfCluster
	}
	if q.Spreads() {
		reads |= columns.OfCluster
	}
	return reads
}

func (p *placer) leaveClass(placed *placementDecision) {
	c := placed.class
	c.remove(placed)
	c.wait(placed, false)
	p.unlistHeld(placed)
	c.silence(&placed.sentence)
	c.forgetFloor()
	if p.classes.leave(c) {
		p.rankings.leave(c)
	}
}

// index updates occupants, and the count of decisions, for a decision.
func (p *placer) index(placed *placementDecision, before, after []string) {
	for _, name := range before {
		if !slices.Contains(after, name) {
			p.load.Drop(p.fleet, name)
			drop(p.occupants, name, placed)
		}
	}
	for _, name := range after {
		if !p.occupants.has(name, placed) {
			add(p.occupants, name, placed)
			p.load.Add(p.fleet, name)
		}
	}
}

// reserve updates the reservations for a decision, and marks everything that requests resources on
// the affected clusters.
func (p *placer) reserve(placed *placementDecision, before, after []api.Decision) {
	if !placed.query.HasRequests() && !placed.holding {
		return
	}
	placed.holding = placed.query.HasRequests() && len(after) > 0
	for _, d := range before {
		p.reserved.Release(p.fleet, placed.query.Key, d.Cluster)
	}
	for _, d := range after {
		since := placed.status.ScheduledAt
		if d.Since != nil {
			since = d.Since
		}
		if since == nil {
			since = &time.Time{}
		}
		p.reserved.Hold(p.fleet, placed.query.Key, placed.query.Requests(), d.Cluster, *since)
	}
	var rows []int
	for _, list := range [2][]api.Decision{before, after} {
		for _, d := range list {
			if row, ok := p.fleet.Row(d.Cluster); ok && !slices.Contains(rows, row) {
				rows = append(rows, row)
			}
		}
	}
	slices.Sort(rows)
	p.heldOtherwise(rows, rows, rows)
}

// advance follows the fleet from one version to the next.
func (p *placer) advance(was *columns.Fleet, delta columns.Delta) {
	p.rankings.update(p.fleet, delta.Rows)
	for _, name := range delta.Gone {
		p.inherited.takeOverAll(onCluster, name)
		p.occupants.wake(&p.queue, name)
	}
	// Whether metrics and sets exist, and sets have members, affects conditions.
	for _, aspect := range apart {
		if delta.Fleet.Any(aspect) {
			for c := range p.classes.readers[aspect] {
				c.markAll(p.picture)
			}
		}
	}
	p.touch(was, &delta)
}

// reservedChanged marks everything that requests resources on some rows.
func (p *placer) reservedChanged(rows []int) {
	delta := columns.AllOf(columns.Reserved, rows)
	p.touch(nil, &delta)
}

// expired handles rows that differ in the view of a class through the passing of time: they were
// removed, unless the clock was set back. A row that was added concerns even placements that have
// what they want, if it is better.
func (p *placer) expired(c *class, differ []int, back bool) {
	c.markSpreading(&p.queue)
	all := c.query.Relative() && placement.UpdateRanking(c.panel.ranking.Ranking, p.fleet, c.query, c.view.Mask, differ)
	if c.noteExpired(p.fleet) || all || back {
		c.markAll(p.picture)
	}
	c.wake(&p.queue)
	c.markHeld(&p.queue)
}

// decide makes one decision again, and reports whether the status changed, and whether the clusters
// did.
func (p *placer) decide(placed *placementDecision, now time.Time) (changed, moved bool) {
	p.focus(placed.query.Key)
	redated := p.redate(placed, now)
	present := placed.present()
	present.Standing = placed.resumed
	if present.Holding = p.moves.holding(placed.moving(), now); present.Holding == nil && placed.held {
		present.Holding = free
	}
	out := placement.Decide(p.fleet, placed.query, placed.class.view, p.others(), present, now)
	var why func() string
	if !out.Full || len(out.Choices) == 0 {
		why = p.why(placed, present, len(out.Choices), now)
	}
	before := placed.status
	status, changed := placement.NewStatus(p.fleet, placed.query, placed.class.view, &placed.object.Metadata, placement.Meant(p.fleet, placed.query, before), out, now, why)
	if out.Moved > 0 {
		status.Moves = p.moves.spent(placed.moving(), out.Moved, now)
		p.moves.account(placed.query.Key, "", before.Moves, "", status.Moves)
	}
	next := placement.Next{Status: status, Changed: changed, Moved: !out.Same, NextAt: out.NextAt}
	if placed.query.Stages() || before.Rollout != nil {
		next = placement.Stage(p.fleet, placed.query, p.reserved, before, next, now)
	}
	switch {
	case !p.tells || !next.Moved && (out.Same || next.Status.DecisionRevision == before.DecisionRevision):
		// Only what stands in another order is in the history as well: another target is meant, or
		// another spec answered.
	case out.Same:
		placed.moves(&api.Cause{Type: api.CauseStage}, nil, now)
	case placed.held && out.Moved > 0:
		placed.moves(p.waits.released(placed.query.Key), p.margin(placed, present, &out), now)
	default:
		placed.moves(p.causeOf(placed, present, &out), p.margin(placed, present, &out), now)
	}
	p.brew(placed, &out) // after the cause was determined, which is what has brewed until now
	if next.Changed {
		placed.status = placed.class.says(next.Status)
	}
	if next.Moved || retargeted(before, &next.Status) {
		p.index(placed, before.Involved(), next.Status.Involved())
		p.reserve(placed, before.Holding(), next.Status.Holding())
	}
	wanting := placed.query.Wanted != 0 && !out.Full && (placed.query.Wanted != score.All || len(out.Choices) == 0)
	placed.want(wanting)
	if out.Held != nil || placed.held {
		p.keepHeld(placed, out.Held != nil)
		p.waits.hold(placed.query.Key, out.Held)
	}
	placed.full, placed.worst, placed.worstTotal = out.Full, out.Worst, out.WorstTotal
	placed.decided, placed.resumed = true, false
	placed.made()
	placed.class.forgetFloor()
	p.queue.agenda.set(placed, next.NextAt)
	if out.Held != nil && !out.Same {
		p.queue.mark(placed) // from where it is now, something else may keep it
	}
	if placed.status.Rollout != nil && len(before.Health) > 0 && len(placed.status.Health) == 0 {
		p.queue.mark(placed) // no report is left: its health is that of the clusters now
	}
	return placed.written() || next.Changed || redated, next.Moved
}

// retargeted reports whether a rollout begins, ends, or has another target than before.
func retargeted(before, now *api.PlacementStatus) bool {
	if before.Rollout == nil || now.Rollout == nil {
		return before.Rollout != now.Rollout
	}
	return before.Rollout.Revision != now.Rollout.Revision
}

// keepHeld records whether a move of a placement is held.
func (p *placer) keepHeld(placed *placementDecision, held bool) {
	if placed.held = held; !held {
		p.unlistHeld(placed)
		return
	}
	c := placed.class
	if c.held == nil {
		c.held = map[*placementDecision]struct{}{}
	}
	c.held[placed] = struct{}{}
	p.holding[c] = struct{}{}
}

// unlistHeld removes a placement from those whose moves are held in its class.
func (p *placer) unlistHeld(placed *placementDecision) {
	c := placed.class
	if delete(c.held, placed); len(c.held) == 0 {
		delete(p.holding, c)
	}
}

// touchHeld marks the placements whose moves are held and whose class reads what has changed: what
// they would be may differ.
func (p *placer) touchHeld(delta *columns.Delta) {
	for c := range p.holding {
		if delta.Fleet != 0 || delta.Concerns(c.query.Reads()|c.query.ScoreReads()|c.query.SeatReads()) {
			c.markHeld(&p.queue)
		}
	}
}

// redate has a decision that another server dated ahead count as made now, and reports
// whether it was. Its reservations too end with the next capacity report then.
func (p *placer) redate(placed *placementDecision, now time.Time) bool {
	redated := placement.Redated(placed.status, now)
	if redated == placed.status {
		return false
	}
	p.moves.account(placed.query.Key, "", placed.status.Moves, "", redated.Moves)
	placed.status = redated
	p.reserve(placed, redated.Holding(), redated.Holding())
	return true
}

// why returns a function that explains why a placement does not have what it wants.
func (p *placer) why(placed *placementDecision, present placement.Present, chosen int, now time.Time) func() string {
	return func() string {
		if chosen == 0 && len(present.Decisions) == 0 {
			return placed.class.fits(p.picture, &placed.sentence, placed.query)
		}
		return placement.Explain(p.fleet, placed.query, placed.class.view.Ranking, p.others(), present, now).Summary()
	}
}

// explain evaluates one placement without changing anything: why it is where it is, or where it
// goes if a relevant change has not been evaluated yet.
func (p *placer) explain(placed *placementDecision, now time.Time) *placement.Explained {
	present := placed.present()
	present.Standing = placed.resumed || placed.decided && !placed.stale
	present.Holding = p.moves.holding(placed.moving(), now)
	return p.explainFrom(placed, present, now)
}

// explainFrom explains a decision that starts from the given one.
func (p *placer) explainFrom(placed *placementDecision, present placement.Present, now time.Time) *placement.Explained {
	return placement.Explain(p.fleet, placed.query, placed.class.view.Ranking, p.others(), present, now)
}

// recall explains a decision of the last pass. It starts from the previous decision, unless there
// are reservations: those are already the new ones, and reservations made by others in the pass
// count too.
func (p *placer) recall(placed *placementDecision, foreseen *api.Explanation, written bool, now time.Time) *api.Explanation {
	if foreseen != nil && (!written || !placed.query.HasRequests()) {
		return foreseen
	}
	was := *placed
	if !placed.query.HasRequests() {
		was.status = &placed.object.Status
	}
	present := was.present()
	present.Holding = p.moves.holding(was.moving(), now)
	return p.explainFrom(&was, present, now).Render()
}
