package reconcile

import (
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// placementPlanner decides the placements of a planner: it holds each one, its decision, and what makes that
// stale. The basis is the planner's.
type placementPlanner struct {
	*basis
	// note notifies the planner that the standing of a decision has changed, although the decision
	// is the same.
	note func(placed *placementDecision)

	placements map[api.Key]*placementDecision
	classes    cohorts[*placementDecision, *class]
	rankings   rankings
	occupants  occupants[*placementDecision]
	// spreading are the classes with spread constraints in which the decisions of others count.
	spreading map[*class]struct{}
	// deciding is the placement whose decision is being taken in. Its own place does not move it.
	deciding *placementDecision
	late     lateClasses
}

func newPlacementPlanner(p *basis, note func(*placementDecision)) *placementPlanner {
	return &placementPlanner{
		basis: p, note: note,
		placements: map[api.Key]*placementDecision{},
		classes:    newCohorts[*placementDecision, *class](),
		rankings:   newRankings(),
		occupants:  occupants[*placementDecision]{},
		spreading:  map[*class]struct{}{},
		late:       newLateClasses(),
	}
}

// put applies a new placement, or a new spec of one.
func (p *placementPlanner) put(known *placementDecision, object *api.Placement, specRevision int64) {
	query, err := placement.NewQuery(object)
	if err != nil {
		p.logger.Error("a stored placement cannot be decided; its decision does not change", "placement", api.KeyOf(object).Path(), "error", err)
		return
	}
	if known == nil {
		known = &placementDecision{object: object, specRevision: specRevision, query: query, status: &object.Status}
		p.placements[query.Key] = known
		p.joinClass(known)
		known.class.share(query)
		p.index(known, nil, object.Status.Clusters)
		p.reserve(known, nil, object.Status.Decisions)
		p.queue.mark(known)
		return
	}
	p.leaveClass(known)
	known.rewritten(known.object, known.status.ObservedGeneration)
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
		known.status = &object.Status
		p.index(known, before.Clusters, object.Status.Clusters)
	}
	p.reserve(known, before.Decisions, known.status.Decisions)
	p.queue.mark(known)
}

// see applies a status of a known spec. An older one may arrive after a newer one was decided.
func (p *placementPlanner) see(known *placementDecision, object *api.Placement) {
	if sameStatus(&object.Status, known.status) {
		known.object, known.status = object, &object.Status // share the memory of the fleet's copy
	}
}

func (p *placementPlanner) remove(placed *placementDecision) {
	placed.gone = true
	p.leaveClass(placed)
	p.index(placed, placed.status.Clusters, nil)
	p.reserve(placed, placed.status.Decisions, nil)
	delete(p.placements, placed.query.Key)
}

func (p *placementPlanner) joinClass(placed *placementDecision) {
	c := p.classOf(placed.query)
	if c.add(placed); len(c.spreading) > 0 && placed.query.ScoreReads().Any(columns.Chosen) {
		p.spreading[c] = struct{}{}
	}
	placed.class, placed.wanting, placed.decided, placed.movable = c, false, false, false
}

// classOf returns the class of a query and counts another use of it.
func (p *placementPlanner) classOf(q *placement.Query) *class {
	return p.classes.join(q, concerning(q), func(shared cohort[*placementDecision]) *class {
		c := &class{cohort: shared}
		p.rankings.join(c, func(r *score.Ranking) *placement.View { return p.newView(c, r) })
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

func (p *placementPlanner) leaveClass(placed *placementDecision) {
	c := placed.class
	if c.remove(placed); len(c.spreading) == 0 {
		delete(p.spreading, c)
	}
	c.wait(placed, false)
	c.silence(&placed.sentence)
	c.forgetFloor()
	if p.classes.leave(c) {
		p.rankings.leave(c)
		p.late.remove(c)
	}
}

// index updates occupants, and the count of decisions, for a decision.
func (p *placementPlanner) index(placed *placementDecision, before, after []string) {
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
func (p *placementPlanner) reserve(placed *placementDecision, before, after []api.Decision) {
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
func (p *placementPlanner) advance(was *columns.Fleet, delta columns.Delta) {
	p.rankings.update(p.fleet, delta.Rows)
	for _, name := range delta.Gone {
		p.inherited.takeOverAll(onCluster, name)
		p.occupants.wake(&p.queue, name)
	}
	// Whether metrics and sets exist, and sets have members, affects conditions.
	for _, aspect := range apart {
		if delta.Fleet.Any(aspect) {
			for c := range p.classes.readers[aspect] {
				c.markAll(p.basis)
			}
		}
	}
	p.touch(was, &delta)
}

// reservedChanged marks everything that requests resources on some rows.
func (p *placementPlanner) reservedChanged(rows []int) {
	delta := columns.AllOf(columns.Reserved, rows)
	p.touch(nil, &delta)
	for panel := range p.rankings.mindful {
		if panel.reads.Any(columns.Reserved) {
			for _, c := range panel.classes {
				p.markMovable(c, nil)
			}
		}
	}
}

// expired handles rows that differ in the view of a class through the passing of time: they were
// removed, unless the clock was set back. A row that was added concerns even placements that have
// what they want, if it is better.
func (p *placementPlanner) expired(c *class, differ []int, back bool) {
	c.markSpreading(&p.queue)
	p.measureAgain(c)
	all := c.query.Relative() && placement.UpdateRanking(c.panel.ranking.Ranking, p.fleet, c.query, c.view.Mask, differ)
	if c.noteExpired(p.fleet) || all || back {
		c.markAll(p.basis)
	}
	c.wake(&p.queue)
}

// decide makes one decision again, and reports whether the status changed, and whether the clusters
// did.
func (p *placementPlanner) decide(placed *placementDecision, now time.Time) (changed, moved bool) {
	p.focus(placed.query.Key)
	redated := p.redate(placed, now)
	if placed.class.late {
		return p.postpone(placed, now) || redated, false
	}
	present := placed.present()
	scaled := p.comparesMore(placed)
	out := placement.Decide(p.fleet, placed.query, placed.class.view, p.others(), present, now)
	var why func() string
	if !out.Full || len(out.Choices) == 0 {
		why = p.why(placed, present, len(out.Choices), now)
	}
	status, changed := placement.NewStatus(p.fleet, placed.query, placed.class.view, &placed.object.Metadata, placed.status, out, now, why)
	before := placed.status
	if status.DecisionRevision != before.DecisionRevision {
		status.Cause = p.causeOf(placed, present, &out)
	}
	if changed {
		status.Conditions = placed.class.says(status.Conditions)
		kept := status
		placed.status = &kept
	}
	if !out.Same {
		p.deciding = placed
		p.index(placed, before.Clusters, status.Clusters)
		p.followLoad()
		p.reserve(placed, before.Decisions, status.Decisions)
		p.deciding = nil
	}
	wanting := placed.query.Wanted != 0 && !out.Full && (placed.query.Wanted != score.All || len(out.Choices) == 0)
	placed.want(wanting)
	placed.full, placed.movable, placed.worst, placed.worstTotal = out.Full, out.Movable, out.Worst, out.WorstTotal
	switch {
	case p.comparesMore(placed):
		placed.worst, placed.worstTotal = lowest, lowest // the class has another scale
	case !out.Movable:
		placed.worstTotal = lowest // what others decide since is not followed
	}
	placed.decided, placed.answered = true, nil
	placed.class.forgetFloor()
	p.queue.agenda.set(placed, out.NextAt)
	if scaled && !out.Same {
		p.queue.mark(placed) // without a cluster that it has left, the others may compare differently
	}
	return changed || redated, !out.Same
}

// redate has a decision that another server dated ahead count as made now, and reports
// whether it was. Its reservations too end with the next capacity report then.
func (p *placementPlanner) redate(placed *placementDecision, now time.Time) bool {
	redated := placement.Redated(placed.status, now)
	if redated == placed.status {
		return false
	}
	placed.status = redated
	p.reserve(placed, redated.Decisions, redated.Decisions)
	return true
}

// why returns a function that explains why a placement does not have what it wants.
func (p *placementPlanner) why(placed *placementDecision, present placement.Present, chosen int, now time.Time) func() string {
	return func() string {
		if chosen == 0 && len(present.Decisions) == 0 {
			return placed.class.fits(p.basis, &placed.sentence, placed.query)
		}
		return placement.Explain(p.fleet, placed.query, placed.class.view.Ranking, p.others(), present, now).Summary()
	}
}

// explain evaluates one placement without changing anything: why it is where it is, or where it
// goes if a relevant change has not been evaluated yet.
func (p *placementPlanner) explain(placed *placementDecision, now time.Time) *placement.Explained {
	return p.explainFrom(placed, placed.present(), now)
}

// explainFrom explains a decision that starts from the given one.
func (p *placementPlanner) explainFrom(placed *placementDecision, present placement.Present, now time.Time) *placement.Explained {
	return placement.Explain(p.fleet, placed.query, placed.class.view.Ranking, p.others(), present, now)
}

// explainAfter explains a decision of the last pass. It starts from the previous decision, unless there
// are reservations: those are already the new ones, and reservations made by others in the pass
// count too.
func (p *placementPlanner) explainAfter(placed *placementDecision, foreseen *api.Explanation, written bool, now time.Time) *api.Explanation {
	if foreseen != nil && (!written || !placed.query.HasRequests()) {
		return foreseen
	}
	if late := untold(p.fleet, placed.query, &p.late.told, now); late != nil {
		return late
	}
	was := *placed
	if !placed.query.HasRequests() {
		was.status = &placed.object.Status
	}
	return p.explainFrom(&was, was.present(), now).Render()
}
