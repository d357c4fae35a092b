package reconcile

import (
	"log/slog"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// planner holds every placement, workload and guest, its decision, and what makes that decision
// stale. It is not safe for concurrent use: only Run uses it, and readers get snapshots.
type planner struct {
	*basis
	pending *pending // changes of the fleet

	placer         *placementPlanner
	bindings       *workloadPlanner
	clouds         *hosts // of clusters
	clusters       *cloudClusters
	projects       *hosts // of Magnum clusters
	projectObjects map[string]*api.OpenStackProject

	passes int
	found  writes // since the last pass
	// quarantined are the clusters on which something is reserved for an object that is left out.
	quarantined map[api.Key][]string
	records     records             // for readers
	waitedFor   map[api.Key]api.Key // by decisions that were evaluated since the last snapshot

	limit *limit // of the work of a fork; nil if there is none
}

func newPlanner(logger *slog.Logger) *planner {
	shared := &basis{
		logger:   logger,
		version:  1, // a class without a sentence has version 0
		fleet:    &columns.Fleet{},
		reserved: ledger.NewReservations(),
		load:     ledger.NewLoad(),
		queue:    newQueue(),
	}
	p := &planner{
		basis: shared, pending: &pending{basis: shared}, bindings: newBindings(shared),
		projectObjects: map[string]*api.OpenStackProject{},
		records:        records{newRecords(), differences{many: true}},
		waitedFor:      map[api.Key]api.Key{},
	}
	p.placer = newPlacementPlanner(shared, func(placed *placementDecision) { p.note(placed) })
	p.clouds = newHosting(&clusters, clustersOnClouds, shared, p.pending)
	p.clusters = newCloudClusters(p.clouds, p.pending)
	p.projects = newHosting(&magnumClusters, magnumInProjects(func(path string) *api.OpenStackProject { return p.projectObjects[path] }), shared, p.pending)
	p.pending.hosts = [...]*hosts{p.clouds, p.projects}
	shared.heldOtherwise = p.followReservations
	return p
}

// put passes the current version of an object to the planner. Objects of the fleet take effect with
// the next pass. The status of a decided object is used if no decision is known; otherwise the
// known one is at least as new.
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
	p.readmit(key)
	known := k.known(p, key)
	if known != nil && (known.stored().Meta().UID != object.Meta().UID || p.following && !k.agreed(known, object)) {
		k.forget(p, key)
		known = nil
	}
	if known != nil && known.revision() == specRevision {
		k.applyStatus(p, known, object)
		return
	}
	if known != nil {
		known.queued().place = place{} // its turn may depend on what changes
	}
	k.applySpec(p, known, object, specRevision)
}

// putEntry is put for an object as it is stored.
func (p *planner) putEntry(entry *fleet.Entry) {
	p.put(entry.Object, entry.SpecRevision)
	if w, ok := p.bindings.workloads[api.KeyOf(entry.Object)]; ok {
		w.committed = entry.StatusRevision == entry.SpecRevision
	}
}

// remove notifies the planner that an object is gone.
func (p *planner) remove(key api.Key) {
	p.focus(key)
	if k := decidedAs(key.Kind); k != nil {
		p.readmit(key)
		k.forget(p, key)
	} else if i, ok := inputs[key.Kind]; ok {
		i.take(p, key, nil)
	}
	p.record(key)
}

// advance updates the fleet to a time, with the pending changes. The time may be earlier than that
// of the last pass: the clock may be set back, and a simulation may be of an earlier time.
func (p *planner) advance(now time.Time) {
	p.host(now)
	was := p.fleet
	back := now.Before(was.Now())
	p.bindings.spotChanged(was, p.pending.Clusters)
	next, delta := was.With(p.pending.Changes, now)
	rooms := p.bindings.rooms(delta.Rows)
	p.fleet, p.pending.Changes = next, columns.Changes{}
	p.changes.advance(was, delta.Rows)
	defer p.placer.classes.expire(p.basis, now, back, p.placer.expired)
	defer p.bindings.scopes.expire(p.basis, now, back, p.bindings.scopes.expired)
	if delta.Empty() {
		return
	}
	p.version++
	p.reserved.Sync(next, delta)
	p.load.Sync(next, delta)
	p.placer.advance(was, delta)
	p.bindings.advance(was, delta, rooms)
	if delta.Fleet.Any(columns.MoveWindows) {
		p.markMovable()
	}
}

// markMovable marks all decisions that a move window may hold or has held.
func (p *planner) markMovable() {
	p.inherited.takeOverKind(api.KindPlacement)
	p.inherited.takeOverKind(api.KindWorkload)
	for _, placed := range p.placer.placements {
		p.queue.mark(placed)
	}
	for _, w := range p.bindings.workloads {
		p.queue.mark(w)
	}
}

// host chooses clouds and projects.
func (p *planner) host(now time.Time) {
	for _, h := range [...]*hosts{p.projects, p.clouds} {
		if h.kind == &clusters && h.changes() {
			p.inherited.takeOverAll(awaitsHost, "")
		}
		h.follow(now)
		p.decideStale(h.kind, now)
	}
}

// followReservations marks everything that depends on reservations on some rows: on those in more
// there may be more room, on those in less there may be less.
func (p *planner) followReservations(rows, more, less []int) {
	p.version++
	p.placer.reservedChanged(rows)
	p.bindings.roomChanged(more)
	p.bindings.scopes.roomTaken(less)
}

// nextAt returns when the planner must be called again without a change.
func (p *planner) nextAt() time.Time {
	next := sooner(p.queue.agenda.next(), p.fleet.NextAt())
	next = sooner(next, p.placer.late.resumeAt(p.fleet.Now()))
	return sooner(next, sooner(p.placer.classes.agenda.next(), p.bindings.scopes.agenda.next()))
}
