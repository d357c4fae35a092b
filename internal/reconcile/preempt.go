package reconcile

import (
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/binding"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// preempt makes room for a workload that does not fit by displacing replicas of workloads of lower
// priority, if it then gets everything that it wants; otherwise nobody loses anything. Displaced are
// replicas of the lowest priorities, the fewest, of the fewest workloads, of the youngest ones; who is
// not needed is not touched.
func (b *workloadPlanner) preempt(w *workloadBinding, present binding.Present, now time.Time) (binding.Binding, bool) {
	spare := b.spares.below(w.p.Priority, b)
	if w.rivals = spare != nil; !w.rivals {
		return binding.Binding{}, false
	}
	var out binding.Binding
	enough := func(spare ledger.Spare) bool {
		out = b.binder.Bind(b.fleet, w.p, w.views(), b.others(), spare, present, now)
		return out.Complete
	}
	if !enough(spare) {
		return binding.Binding{}, false
	}
	d := newDisplacement(b, w, enough)
	d.reduce()
	if !enough(d.spare) {
		return binding.Binding{}, false
	}
	b.displace(d, now)
	return out, true
}

// makeRoom displaces what is in the way of a workload whose binding was committed as it was previewed.
func (b *workloadPlanner) makeRoom(w *workloadBinding, now time.Time) {
	d := newDisplacement(b, w, func(spare ledger.Spare) bool {
		for _, c := range w.status.Clusters {
			row, ok := b.fleet.Row(c.Name)
			if !ok {
				continue
			}
			if room, known := binding.Room(b.fleet, w.p, b.reserved, spare, row); known && room < c.Replicas {
				return false
			}
		}
		return true
	})
	if d.enough(d.spare) {
		d.reduce()
		b.displace(d, now)
	}
}

// displace takes from workloads what a displacement says.
func (b *workloadPlanner) displace(d *displacement, now time.Time) {
	for i := range d.units {
		if u := &d.units[i]; u.takes > 0 {
			b.take(u, d.by, now)
		}
	}
}

// spares remember what workloads of lower priorities hold until the basis changes, so
// that many that wait cost little.
type spares struct {
	of      map[int64]ledger.Spare // by the priority that they give way to
	version int                    // of the basis
}

// below is what workloads of a priority below another hold, nil where that is nothing.
func (s *spares) below(priority int64, b *workloadPlanner) ledger.Spare {
	if s.of == nil || s.version != b.version {
		s.of, s.version = map[int64]ledger.Spare{}, b.version
	}
	spare, known := s.of[priority]
	if known {
		return spare
	}
	for _, victim := range b.workloads {
		if victim.object.Spec.Priority >= priority {
			continue
		}
		for _, c := range victim.status.Clusters {
			if c.Replicas == 0 {
				continue
			}
			if spare == nil {
				spare = ledger.Spare{}
			}
			spare.AddHold(b.fleet, victim.heldOn(c.Name), c.Name, c.Replicas)
		}
	}
	s.of[priority] = spare
	return spare
}

// wakePreempting makes waiting workloads look again for others to displace: there may be more than
// before.
func (b *workloadPlanner) wakePreempting() {
	b.version++
	for w := range b.preempting {
		b.queue.mark(w)
	}
}

// take ends what a workload has on a cluster, or a part of it, because another one needs the room.
func (b *workloadPlanner) take(u *displaced, by *workloadBinding, now time.Time) {
	victim := u.victim
	i := slices.IndexFunc(victim.status.Clusters, func(c api.WorkloadCluster) bool { return c.Name == u.cluster })
	if i < 0 {
		return
	}
	now = now.UTC()
	before, priority := victim.status, by.p.Priority
	victim.status.Clusters = slices.Clone(before.Clusters)
	if c := &victim.status.Clusters[i]; u.takes < c.Replicas {
		c.Replicas -= u.takes
		c.OnDemand, c.Spot, c.Since = nil, nil, &now
	} else {
		victim.status.Clusters = slices.Delete(victim.status.Clusters, i, i+1)
		// The reports were about the replicas that are removed.
		victim.status.Health = slices.DeleteFunc(slices.Clone(before.Health), func(h api.ClusterHealth) bool { return h.Cluster == u.cluster })
	}
	victim.status.LostReplicas += u.takes
	victim.status.ScheduledAt = &now
	victim.status.DecisionRevision++
	victim.status.Cause = displacedBy(by)
	victim.status.Preemptions = append(slices.Clone(before.Preemptions), api.PreemptedBy{
		Cluster: u.cluster, Replicas: u.takes, Workload: by.key().Path(), Priority: &priority, At: &now,
	})
	if over := len(victim.status.Preemptions) - maxPreemptions; over > 0 {
		victim.status.Preemptions = victim.status.Preemptions[over:]
	}
	b.index(victim, &before)
	b.hold(victim)
	victim.reported = true // must be written, whatever it gets next
	b.queue.mark(victim)
}

// maxPreemptions is the number of preemptions that a status keeps.
const maxPreemptions = 10
