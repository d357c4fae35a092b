package reconcile

import (
	"log/slog"
	"slices"
	"time"

	"github.com/google/btree"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// planner knows every placement and every workload, its decision, and what would
// make that decision stale. It is not safe for concurrent use: Run alone has it, and
// readers get snapshots.
type planner struct {
	*picture
	bindings *bindings
	pending  columns.Changes // of the fleet, not yet applied

	placements map[api.Key]*placementDecision
	classes    cohorts[*placementDecision, *class]
	rankings   map[string]*ranking // by rankKey
	occupants  occupants[*placementDecision]
	passes     int
	following  bool   // another server leads: what it has stored goes before what is decided here
	found      writes // since the last pass
	// aside are the clusters on which something is reserved for an object that is left
	// out.
	aside   map[api.Key][]string
	started time.Time // of the server; zero where the world is imagined

	clouds         *hosts // of clusters
	cloudObjects   map[string]*api.Cloud
	cloudOf        map[string]string              // the cloud that a cluster has something from
	onCloud        map[string]map[string]struct{} // clusters by that cloud
	projects       *hosts                         // of Magnum clusters
	projectObjects map[string]*api.OpenStackProject
	records        *btree.BTreeG[*record] // for readers
	differing      differences            // records since the last snapshot
	waitedFor      map[api.Key]api.Key    // by decisions that were looked at since the last snapshot
	inherited      *inherited             // of a fork; else nil
	zoned          []*guest               // whose zone was observed for the first time, for the pass to write
}

// placementDecision is one placement and its decision.
type placementDecision struct {
	turn
	object *api.Placement
	// status is that as last decided, which may be ahead of the store; the object's own
	// where it is not. It never changes.
	status       *api.PlacementStatus
	specRevision int64
	query        *placement.Query
	class        *class
	position     int32 // among the class's placements
	holding      bool  // has reservations

	standing
	// sentence says why clusters do not fit it, nil where it has not been asked.
	sentence *sentence
	// recorded is its state in the records.
	recorded *placedState
}

// standing is how a decision stands: whether every wanted seat is taken, and what an
// outsider has to be better than (see placement.Outcome), and how far it was looked at.
type standing struct {
	worst, worstTotal placement.Merit
	full              bool
	decided           bool
	resumed           bool // was decided by an earlier run of the server, and not looked at since
	wanting           bool // did not get what it wants
}

// placedState is what a fork has to know of a placement besides its object. It never
// changes.
type placedState struct {
	standing

	specRevision int64
	query        *placement.Query
	told         string    // its sentence
	at           time.Time // its own instant
}

// state is that of a placement now.
func (p *placementDecision) state() placedState {
	s := placedState{
		standing: p.standing, specRevision: p.specRevision, query: p.query, at: p.at,
	}
	if p.sentence != nil {
		s.told = p.sentence.text
	}
	return s
}

func newPlanner(logger *slog.Logger) *planner {
	p := &planner{
		picture: &picture{
			logger:   logger,
			version:  1, // a class without a sentence has version 0
			fleet:    &columns.Fleet{},
			reserved: ledger.NewReservations(),
			load:     ledger.NewLoad(),
			queue:    newQueue(),
		},
		rankings:   map[string]*ranking{},
		placements: map[api.Key]*placementDecision{},
		waitedFor:  map[api.Key]api.Key{},
		classes:    newCohorts[*placementDecision, *class](),
		occupants:  occupants[*placementDecision]{},

		cloudObjects:   map[string]*api.Cloud{},
		cloudOf:        map[string]string{},
		onCloud:        map[string]map[string]struct{}{},
		projectObjects: map[string]*api.OpenStackProject{},
		records:        newRecords(),
		differing:      differences{many: true},
	}
	p.clouds = newHosting(&clusters, clustersOnClouds, p)
	p.projects = newHosting(&magnumClusters, magnumInProjects(func(path string) *api.OpenStackProject { return p.projectObjects[path] }), p)
	p.bindings = newBindings(p.picture)
	p.bindings.amountsChanged = p.reservedChanged
	return p
}

// put tells the planner of an object as it is now. Fleet objects take effect
// with the next pass. The status of what is decided is used where no decision is
// known; otherwise the one that is known is at least as new.
func (p *planner) put(object api.Object, specRevision int64) {
	key := api.KeyOf(object)
	p.focus(key)
	defer p.record(key)
	k := decidedAs(key.Kind)
	if k == nil {
		if i, ok := inputs[key.Kind]; ok {
			i.take(p, key, object)
		}
		return
	}
	p.takeBack(key)
	known := k.known(p, key)
	if known != nil && (known.stored().Meta().UID != object.Meta().UID || p.following && !k.agreed(known, object)) {
		k.forget(p, key)
		known = nil
	}
	if known != nil && known.revision() == specRevision {
		k.see(p, known, object)
		return
	}
	if known != nil {
		known.queued().place = place{} // its turn may depend on what changes
	}
	k.take(p, known, object, specRevision)
}

// remove tells the planner that an object is gone.
func (p *planner) remove(key api.Key) {
	p.focus(key)
	if k := decidedAs(key.Kind); k != nil {
		p.takeBack(key)
		k.forget(p, key)
	} else if i, ok := inputs[key.Kind]; ok {
		i.take(p, key, nil)
	}
	p.record(key)
}

// metric is the metric of a key as it was put last, nil where there is none.
func (p *planner) metric(key api.Key) *api.Metric {
	if m, pending := p.pending.Metrics[key]; pending {
		return m
	}
	return p.fleet.Metric(key)
}

// provider is the metrics provider of a key as it was put last, nil where there is
// none.
func (p *planner) provider(key api.Key) *api.MetricsProvider {
	if m, pending := p.pending.Providers[key]; pending {
		return m
	}
	return p.fleet.Provider(key)
}

// putPlacement takes in a new placement, or a new spec of one.
func (p *planner) putPlacement(known *placementDecision, object *api.Placement, specRevision int64) {
	query, err := placement.NewQuery(object)
	if err != nil {
		p.logger.Error("a stored placement cannot be decided; its decision does not change", "placement", api.KeyOf(object).Path(), "error", err)
		return
	}
	if known == nil {
		known = &placementDecision{object: object, specRevision: specRevision, query: query, status: &object.Status}
		known.resumed = p.passes == 0 || p.following
		p.placements[query.Key] = known
		p.joinClass(known)
		known.class.share(query)
		p.index(known, nil, object.Status.Clusters)
		p.reserve(known, nil, object.Status.Decisions)
		p.queue.mark(known)
		return
	}
	p.leaveClass(known)
	known.object, known.specRevision, known.query = object, specRevision, query
	p.joinClass(known)
	known.class.share(query)
	before := known.status
	if sameStatus(&object.Status, before) {
		known.status = &object.Status
	}
	if now := object.Status; now.ObservedGeneration == object.Metadata.Generation &&
		now.ObservedGeneration > before.ObservedGeneration {
		// The decision was committed together with the spec: it had been previewed.
		// One that was made here meanwhile for the spec before, and could not be
		// written any more, is void.
		known.status = &object.Status
		p.index(known, before.Clusters, object.Status.Clusters)
	}
	p.reserve(known, before.Decisions, known.status.Decisions)
	p.queue.mark(known)
}

// seePlacement takes in a status of a known spec. An older one may arrive after a
// newer one was decided.
func (p *planner) seePlacement(known *placementDecision, object *api.Placement) {
	if sameStatus(&object.Status, known.status) {
		known.object, known.status = object, &object.Status // share the memory of the fleet's copy
	}
}

// withStatus is a placement with a status, which may be its own.
func withStatus(object *api.Placement, status *api.PlacementStatus) *api.Placement {
	if status == &object.Status {
		return object
	}
	other := *object
	other.Status = *status
	return &other
}

// sameStatus reports whether two statuses of one placement say the same.
func sameStatus(a, b *api.PlacementStatus) bool {
	return a.DecisionRevision == b.DecisionRevision && a.ObservedGeneration == b.ObservedGeneration &&
		a.ObservedRescheduleRequests == b.ObservedRescheduleRequests &&
		slices.EqualFunc(a.Conditions, b.Conditions, sameCondition)
}

func sameCondition(x, y api.Condition) bool {
	return x.Type == y.Type && x.Status == y.Status && x.Reason == y.Reason && x.Message == y.Message
}

func (p *planner) drop(placed *placementDecision) {
	placed.gone = true
	p.leaveClass(placed)
	p.index(placed, placed.status.Clusters, nil)
	p.reserve(placed, placed.status.Decisions, nil)
	delete(p.placements, placed.query.Key)
}

func (p *planner) joinClass(placed *placementDecision) {
	c := p.classOf(placed.query)
	c.add(placed)
	placed.class, placed.wanting, placed.decided = c, false, false
}

// classOf is the class of a query, which is used once more.
func (p *planner) classOf(q *placement.Query) *class {
	return p.classes.join(q, concerning(q), func(shared cohort[*placementDecision]) *class {
		c := &class{cohort: shared}
		p.rank(c)
		return c
	})
}

// concerning are the aspects of a cluster of which a change has the class of a query
// looked at: what says who is admitted, and what follows from that for more than one
// cluster.
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

func (p *planner) leaveClass(placed *placementDecision) {
	c := placed.class
	c.remove(placed)
	c.wait(placed, false)
	c.silence(&placed.sentence)
	c.forgetFloor()
	if p.classes.leave(c) {
		p.unrank(c)
	}
}

// index keeps occupants, and the count of decisions, in step with a decision.
func (p *planner) index(placed *placementDecision, before, after []string) {
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

// reserve keeps the reservations in step with a decision, and has everything
// that asks for resources on the touched clusters looked at again.
func (p *planner) reserve(placed *placementDecision, before, after []api.Decision) {
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
	p.version++
	p.reservedChanged(rows)
	p.bindings.roomChanged(rows)
	p.bindings.roomTaken(rows)
}

// reservedChanged has everything that asks for resources on some rows looked at
// again.
func (p *planner) reservedChanged(rows []int) {
	delta := columns.AllOf(columns.Reserved, rows)
	p.touch(nil, &delta)
}

// advance brings the fleet to a moment, with the pending changes.
func (p *planner) advance(now time.Time) {
	p.host(now)
	was := p.fleet
	p.bindings.spotChanged(was, p.pending.Clusters)
	next, delta := was.With(p.pending, now)
	rooms := p.bindings.rooms(delta.Rows)
	p.fleet, p.pending = next, columns.Changes{}
	defer p.classes.expire(p.picture, now, p.expired)
	defer p.bindings.scopes.expire(p.picture, now, p.bindings.expired)
	if delta.Empty() {
		return
	}
	p.version++
	p.reserved.Sync(next, delta)
	p.load.Sync(next, delta)
	p.updateRankings(delta.Rows)
	for _, name := range delta.Gone {
		p.takeOverAll(onCluster, name)
		p.occupants.wake(&p.queue, name)
	}
	// Whether a metric exists, and a set exists and has members, stands in the
	// conditions.
	for _, aspect := range apart {
		if delta.Fleet.Any(aspect) {
			for c := range p.classes.readers[aspect] {
				c.markAll(p)
			}
		}
	}
	p.touch(was, &delta)
	p.bindings.advance(was, delta, rooms)
}

// expired takes in that time alone has taken rows out of the view of a class.
func (p *planner) expired(c *class, gone []int) {
	c.markSpreading(p)
	all := c.query.Relative() && placement.UpdateRanking(c.panel.ranking.Ranking, p.fleet, c.query, c.view.Mask, gone)
	if c.noteExpired(p.fleet) || all {
		c.markAll(p)
	}
	c.wake(&p.queue)
}

// nextAt is when the planner has to be called again although nothing changed.
func (p *planner) nextAt() time.Time {
	next := sooner(p.queue.agenda.next(), p.fleet.NextAt())
	return sooner(next, sooner(p.classes.agenda.next(), p.bindings.scopes.agenda.next()))
}

// decide makes one decision again, and reports whether the status differs, and
// whether the clusters do.
func (p *planner) decide(placed *placementDecision, now time.Time) (changed, moved bool) {
	p.focus(placed.query.Key)
	present := placed.present()
	present.Standing = placed.resumed
	out := placement.Decide(p.fleet, placed.query, placed.class.view, p.others(), present, now)
	var why func() string
	if !out.Full || len(out.Choices) == 0 {
		why = p.why(placed, present, len(out.Choices), now)
	}
	status, changed := placement.NewStatus(p.fleet, placed.query, placed.class.view, &placed.object.Metadata, placed.status, out, now, why)
	before := placed.status
	if changed {
		status.Conditions = placed.class.says(status.Conditions)
		kept := status
		placed.status = &kept
	}
	if !out.Same {
		p.index(placed, before.Clusters, status.Clusters)
		p.reserve(placed, before.Decisions, status.Decisions)
	}
	wanting := placed.query.Wanted != 0 && !out.Full && (placed.query.Wanted != score.All || len(out.Choices) == 0)
	p.setWanting(placed, wanting)
	placed.full, placed.worst, placed.worstTotal = out.Full, out.Worst, out.WorstTotal
	placed.decided, placed.resumed = true, false
	placed.class.forgetFloor()
	p.queue.agenda.set(placed, out.NextAt)
	return changed, !out.Same
}

// why tells why a placement does not have what it wants.
func (p *planner) why(placed *placementDecision, present placement.Present, chosen int, now time.Time) func() string {
	return func() string {
		if chosen == 0 && len(present.Decisions) == 0 {
			return placed.class.fits(p.picture, &placed.sentence, placed.query)
		}
		return placement.Explain(p.fleet, placed.query, placed.class.view.Ranking, p.others(), present, now).Summary()
	}
}

func (p *planner) setWanting(placed *placementDecision, wanting bool) {
	if placed.wanting == wanting {
		return
	}
	placed.wanting = wanting
	placed.class.wait(placed, wanting)
	if !wanting {
		placed.class.silence(&placed.sentence)
	}
}

// present is the placement's decision as the engine takes it.
func (p *placementDecision) present() placement.Present { return presentOf(p.object, p.status) }

// presentOf is the decision in a status of a placement as the engine takes it.
func presentOf(p *api.Placement, s *api.PlacementStatus) placement.Present {
	present := placement.Present{
		Decisions: s.Decisions,
		Answered:  s.ObservedGeneration == p.Metadata.Generation,
		Fresh:     s.ObservedRescheduleRequests != p.Metadata.RescheduleRequests,
	}
	if s.ScheduledAt != nil {
		present.ScheduledAt = *s.ScheduledAt
	}
	return present
}

// explain looks at one placement without changing anything: why it is where it
// is, or where it goes if a change that concerns it waits to be looked at.
func (p *planner) explain(placed *placementDecision, now time.Time) *placement.Explained {
	present := placed.present()
	present.Standing = placed.resumed || placed.decided && !placed.stale
	return p.explainFrom(placed, present, now)
}

// explainFrom explains a decision that starts from another.
func (p *planner) explainFrom(placed *placementDecision, present placement.Present, now time.Time) *placement.Explained {
	return placement.Explain(p.fleet, placed.query, placed.class.view.Ranking, p.others(), present, now)
}
