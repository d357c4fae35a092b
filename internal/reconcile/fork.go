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

// fork is a planner that stands where that of the snapshot stood, and goes its own
// way from there. Nothing is decided, compiled or looked at anew: what never changes
// is shared, what is copied when it changes is shared until then, and of each
// decision there is a copy. Neither the snapshot nor its planner notices, so there
// may be any number of forks at once, beside passes.
func (s *snapshot) fork(logger *slog.Logger) *planner {
	p := newPlanner(logger)
	p.passes, p.started, p.fleet, p.aside = s.passes, s.started, s.fleet, maps.Clone(s.aside)
	p.reserved, p.load = s.reserved.Thaw(), s.load.Thaw()
	p.records, p.classes.views = thaw(s.records), thaw(s.classes)
	b := p.bindings
	b.followers, b.scopes.views = thaw(s.followers), thaw(s.scopes)
	b.claims, b.braked = s.policies.Thaw(b.all()), binding.Brakes(p.fleet)
	p.clouds.begin(s.clouds)
	p.projects.begin(s.projects)
	s.records.Ascend(func(r record) bool {
		if k := decidedAs(r.key.Kind); k != nil {
			k.adopted(p, &r)
		} else if i, ok := inputs[r.key.Kind]; ok {
			i.adopted(p, &r)
		}
		return true
	})
	if s.waiting != nil {
		p.lost = &lost{waiting: thaw(s.waiting)} // for lose, which tells what of
	}
	return p
}

// begin takes over the hosts of a snapshot.
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

// adopt takes over a guest of a snapshot.
func (h *hosts) adopt(r *record) {
	g := *r.guest
	g.turn, g.hosting = turn{}, h
	h.guests[r.key] = &g
	h.occupants.move(&g, nowhere, inPlace(g.host))
	h.cohort.wait(&g, g.waits)
}

// adoptPlacement takes over a placement of a snapshot.
func (p *planner) adoptPlacement(object *api.Placement, r *record) {
	s := r.placed
	placed := &tracked{object: object, specRevision: s.specRevision, query: s.query, status: object.Status, recorded: s}
	p.placements[r.key] = placed
	p.joinClass(placed)
	p.occupants.move(placed, nowhere, slices.Values(placed.status.Clusters))
	for _, name := range placed.status.Clusters {
		p.load.Restore(name)
	}
	placed.holding = s.query.HasRequests() && len(placed.status.Decisions) > 0
	placed.out = placement.Outcome{Full: s.full, Worst: s.worst, WorstTotal: s.worstTotal, NextAt: s.at}
	placed.decided, placed.resumed = s.decided, s.resumed
	p.setWanting(placed, s.wanting)
	if s.told != "" {
		placed.class.adopt(&placed.sentence, s.query, s.told)
	}
	p.queue.agenda.set(placed, s.at)
}

// adoptWorkload takes over a workload of a snapshot.
func (b *bindings) adoptWorkload(object *api.Workload, r *record) {
	w := &workloadBinding{bindingState: r.binding.bindingState, object: object, status: object.Status}
	b.workloads[r.key] = w
	// Why it follows its policy is asked again: it may be because it has.
	w.unclaimed, w.reason = true, ""
	b.occupants.move(w, nowhere, maps.Keys(clustersOf(&w.status)))
	if w.p != nil {
		b.joinScopes(w)
		b.setPending(w, w.pending)
		b.watch(w)
	}
	w.gained = math.MaxInt64 // how much it is, is not recorded
	b.queue.agenda.set(w, r.binding.at)
}

// adopt gives a member the sentence that it was told last.
func (c *cohort[D]) adopt(own **sentence, q *placement.Query, told string) {
	if *own = c.sentences.join(q); (*own).text == "" {
		(*own).text = told
	}
}

// all yields the workloads that there are when it is asked.
func (b *bindings) all() iter.Seq[*api.Workload] {
	return func(yield func(*api.Workload) bool) {
		for _, w := range b.workloads {
			if !yield(w.object) {
				return
			}
		}
	}
}
