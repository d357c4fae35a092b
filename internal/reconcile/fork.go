package reconcile

import (
	"iter"
	"log/slog"
	"maps"
	"math"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/binding"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// fork returns a planner that starts with the state of the snapshot and continues independently.
// Nothing is decided, compiled or evaluated again: immutable data is shared, copy-on-write data is
// shared until it changes, and a decision is taken over when it becomes relevant, which the index
// of the snapshot determines. The snapshot and its planner are not affected, so any number of forks
// may exist at once, concurrently with passes.
func (s *snapshot) fork(ix *forkIndex, logger *slog.Logger) *planner {
	p := newReadPlanner(logger)
	p.passes, p.started, p.fleet, p.quarantined = s.passes, s.started, s.fleet, maps.Clone(s.held)
	p.reserved, p.load = s.reserved.Thaw(), s.load.Thaw(ix.on)
	p.inherited = &inherited{ix, map[api.Key]struct{}{}, func(r *record) {
		if k := decidedAs(r.key.Kind); k != nil {
			k.load(p, r)
		} else if i, ok := inputs[r.key.Kind]; ok {
			i.adopted(p, r)
		}
	}}
	p.records.all, p.placer.classes.views = thaw(s.records), thaw(s.classes)
	b := p.bindings
	b.followers, b.scopes.views = thaw(s.followers), thaw(s.scopes)
	b.claims, b.braked = s.policies.Thaw(b.all()), binding.Brakes(p.fleet)
	p.clouds.begin(s.clouds)
	p.projects.begin(s.projects)
	ix.resting.Ascend(func(c restingClass) bool {
		p.placer.adoptClass(c)
		return true
	})
	p.inherited.takeOverAll(restless, "")
	if s.waiting != nil {
		p.lost = &lost{waiting: thaw(s.waiting)} // for lose, which compares with it
	}
	return p
}

// inherited is what a fork has from its snapshot and has not taken over yet.
type inherited struct {
	*forkIndex
	taken map[api.Key]struct{} // taken over, or gone since
	adopt func(r *record)
}

// takeOver copies a decision of the snapshot to the planner.
func (in *inherited) takeOver(key api.Key) {
	if in == nil {
		return
	}
	if _, taken := in.taken[key]; taken {
		return
	}
	r, known := in.records.Get(&record{key: &key})
	if !known {
		return
	}
	in.taken[key] = struct{}{}
	in.adopt(r)
}

// takeOverAll is takeOver for everything that is related to one thing.
func (in *inherited) takeOverAll(kind relationKind, to string) {
	if in == nil {
		return
	}
	for key := range in.related(kind, to) {
		in.takeOver(key)
	}
}

// takeOverKind is takeOver for a whole kind.
func (in *inherited) takeOverKind(kind api.Kind) {
	if in == nil {
		return
	}
	in.records.AscendGreaterOrEqual(&record{key: &api.Key{Kind: kind}}, func(r *record) bool {
		if r.key.Kind == kind {
			in.takeOver(*r.key)
		}
		return r.key.Kind == kind
	})
}

// takeOver copies all placements that rest in the class to the planner.
func (c *class) takeOver(in *inherited) {
	if c.absent > 0 {
		in.takeOverAll(restsIn, c.query.Class)
	}
}

// begin copies the hosts of a snapshot.
func (h *hosts) begin(fleet *columns.Fleet) {
	h.fleet = fleet
	for row := range fleet.Slots() {
		if host := fleet.Cluster(row); host != nil {
			h.hosts[host.Metadata.Name] = host
			for _, ref := range host.Spec.Metrics {
				h.listed[ref.Key()]++
			}
		}
	}
}

// adopt copies a guest of a snapshot.
func (h *hosts) adopt(r *record) {
	g := *r.guest
	g.queueEntry, g.hosting = queueEntry{}, h
	h.guests[*r.key] = &g
	h.occupants.move(&g, nowhere, inPlace(g.host))
	h.cohort.wait(&g, g.waits)
}

// adoptClass copies a class of a snapshot, without the placements that rest in it.
func (p *placementPlanner) adoptClass(resting restingClass) {
	c := p.classOf(resting.query)
	c.uses += resting.n - 1
	c.absent, c.resting = resting.n, resting
}

// adopt copies a placement of a snapshot.
func (p *placementPlanner) adopt(object *api.Placement, r *record) {
	s := r.placed
	placed := &placementDecision{object: object, specRevision: s.specRevision, query: s.query, status: &object.Status, recorded: s}
	p.placements[*r.key] = placed
	p.joinClass(placed)
	if r.rests() {
		placed.class.absent--
		placed.class.uses--
	}
	p.occupants.move(placed, nowhere, slices.Values(object.Status.Clusters))
	placed.holding = s.query.HasRequests() && len(object.Status.Decisions) > 0
	placed.standing, placed.wanting = s.standing, false
	placed.want(s.wanting)
	if s.told != "" {
		placed.class.adopt(&placed.sentence, s.query, s.told)
	}
	p.queue.agenda.set(placed, s.at)
}

// adoptWorkload copies a workload of a snapshot.
func (b *workloadPlanner) adoptWorkload(object *api.Workload, r *record) {
	w := &workloadBinding{bindingState: r.binding.bindingState, object: object, status: object.Status}
	b.workloads[*r.key] = w
	// The reason for its policy is determined again: it may be that it has it already.
	w.unclaimed, w.reason = true, ""
	b.occupants.move(w, nowhere, maps.Keys(clustersOf(&w.status)))
	if w.p != nil {
		b.scopes.enter(w)
		b.setPending(w, w.pending)
		w.watch()
	}
	w.gained = math.MaxInt64 // the actual value is not recorded
	b.queue.agenda.set(w, r.binding.at)
}

// adopt sets a member's last sentence.
func (c *cohort[D]) adopt(own **sentence, q *placement.Query, told string) {
	if *own = c.sentences.join(q); (*own).text == "" {
		(*own).text = told
	}
}

// all yields the workloads that exist when it is called.
func (b *workloadPlanner) all() iter.Seq[*api.Workload] {
	return func(yield func(*api.Workload) bool) {
		for _, w := range b.workloads {
			if !yield(w.object) {
				return
			}
		}
	}
}
