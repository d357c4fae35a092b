package reconcile

import (
	"cmp"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/binding"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/movement"
)

// preempt makes room for a workload that does not fit by taking clusters from workloads of lower
// priority, if it then gets everything that it wants; otherwise nobody loses anything. Of the
// workloads on a cluster the least important goes first, among equals the latest, and no more than
// necessary.
func (b *bindings) preempt(w *workloadBinding, present binding.Present, now time.Time) (binding.Binding, bool) {
	spare := b.spares.below(w.p.Priority, b, now)
	if w.rivals = spare != nil; !w.rivals {
		return binding.Binding{}, false
	}
	out := b.binder.Bind(b.fleet, w.p, w.views(), b.others(), spare, present, now)
	if !out.Complete {
		return binding.Binding{}, false
	}
	for _, s := range out.Shares {
		name := b.fleet.Cluster(int(s.Row)).Metadata.Name
		// A cluster that already has the replicas is kept if only its size has changed.
		if present.Pending || w.holds[name] < s.Replicas || !w.needs.Equal(w.heldNeeds) {
			b.clear(w, name, int(s.Row), s.Replicas, now)
		}
	}
	return out, true
}

// spares remember what workloads of lower priorities hold until the picture changes, so
// that many that wait cost little.
type spares struct {
	of      map[int64]ledger.Spare // by the priority that they give way to
	version int                    // of the picture
	at      time.Time
	// until is when the next of those whose moves are held may be displaced; zero if none.
	until time.Time
}

// below is what workloads of a priority below another hold, nil where that is nothing.
func (s *spares) below(priority int64, b *bindings, now time.Time) ledger.Spare {
	if s.of == nil || s.version != b.version || !s.at.Equal(now) {
		s.of, s.version, s.at, s.until = map[int64]ledger.Spare{}, b.version, now, time.Time{}
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
			if c.Replicas == 0 || b.mayNotLeave(victim, c.Name, now) {
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

// mayNotLeave reports whether a workload is held on a cluster although another one needs the room.
func (b *bindings) mayNotLeave(victim *workloadBinding, cluster string, now time.Time) bool {
	holding := b.moves.holding(movingWorkload(victim.object, &victim.status, victim.policy), now)
	row, ok := b.fleet.Row(cluster)
	if holding == nil || !ok {
		return false
	}
	_, held := holding().Take([]movement.Move{{From: b.fleet.Cluster(row), Reason: api.CausePreemption}})
	if held != nil {
		b.spares.until = sooner(b.spares.until, held.Again)
	}
	return held != nil
}

// wakePreempting makes waiting workloads look for others to displace, because one may have become
// less important than they are.
func (b *bindings) wakePreempting() {
	b.version++
	for _, w := range b.workloads {
		if w.pending && w.p != nil && w.p.Preempts {
			b.queue.mark(w)
		}
	}
}

// yields reports whether a workload yields to another.
func (b *bindings) yields(victim, w *workloadBinding) bool {
	return victim != w && !victim.gone && victim.object.Spec.Priority < w.p.Priority
}

// clear takes one cluster from workloads until there is room for the replicas of w.
func (b *bindings) clear(w *workloadBinding, cluster string, row int, replicas int64, now time.Time) {
	var victims []*workloadBinding
	for victim := range b.occupants[cluster] {
		if b.yields(victim, w) {
			victims = append(victims, victim)
		}
	}
	slices.SortFunc(victims, func(x, y *workloadBinding) int {
		return cmp.Or(
			cmp.Compare(x.object.Spec.Priority, y.object.Spec.Priority),
			timeOf(y.status.ScheduledAt).Compare(timeOf(x.status.ScheduledAt)),
			x.key().Compare(y.key()),
		)
	})
	freed := ledger.Spare{}
	for _, victim := range victims {
		if room, known := binding.Room(b.fleet, w.p, b.reserved, freed, row); !known || room >= replicas {
			return
		}
		if victim.holds[cluster] > 0 && !b.mayNotLeave(victim, cluster, now) && victim.heldOn(cluster).Compete(b.fleet, row, w.needs) {
			b.take(victim, cluster, w, freed, now)
		}
	}
}

// take ends what a workload has on a cluster, because another one needs the room. The amounts are
// available to that one at once, even if only the next capacity report will show it.
func (b *bindings) take(victim *workloadBinding, cluster string, by *workloadBinding, freed ledger.Spare, now time.Time) {
	now = now.UTC()
	if b.tells {
		victim.moves(preemptedBy(by), nil, now)
	}
	before, priority := victim.status, by.p.Priority
	lost := before.Meant()[cluster]
	for _, c := range before.Clusters {
		if c.Name == cluster {
			lost = c.Replicas
		}
	}
	on := func(c api.WorkloadCluster) bool { return c.Name == cluster }
	switch r := before.Rollout; {
	case r != nil && (r.Targets(cluster) || slices.ContainsFunc(before.Clusters, on)):
		// What is meant there must go elsewhere; what only stood there has a successor.
		victim.status.LostReplicas += before.Meant()[cluster]
		without := *r
		without.Target = slices.DeleteFunc(slices.Clone(r.Target), func(t api.RolloutTarget) bool { return t.Cluster == cluster })
		victim.status.Rollout = &without
	case slices.ContainsFunc(before.Clusters, on):
		victim.status.LostReplicas += lost
	default:
		return
	}
	victim.status.Clusters = slices.DeleteFunc(slices.Clone(before.Clusters), on)
	// The reports were about the replicas that are removed.
	victim.status.Health = slices.DeleteFunc(slices.Clone(before.Health), func(h api.ClusterHealth) bool { return h.Cluster == cluster })
	victim.status.ScheduledAt = &now
	victim.status.DecisionRevision++
	victim.status.Preemptions = append(slices.Clone(before.Preemptions), api.PreemptedBy{
		Cluster: cluster, Replicas: lost, Workload: by.key().Path(), Priority: &priority, At: &now,
	})
	if over := len(victim.status.Preemptions) - maxPreemptions; over > 0 {
		victim.status.Preemptions = victim.status.Preemptions[over:]
	}
	if moving := movingWorkload(victim.object, &before, victim.policy); b.moves.holding(moving, now) != nil {
		victim.status.Moves = b.moves.spent(moving, 1, now)
		b.moves.account(victim.key(), before.Policy, before.Moves, victim.status.Policy, victim.status.Moves)
	}
	freed.AddHold(b.fleet, victim.heldOn(cluster), cluster, lost)
	// What was counted as reserved becomes available with the release, so it must not count twice.
	counted := b.reserved.Counted(victim.key(), cluster)
	freed.Subtract(b.fleet, cluster, counted)
	b.index(victim, &before)
	b.hold(victim)
	victim.reported = true // must be written, whatever it gets next
	b.queue.mark(victim)
}

// maxPreemptions is the number of preemptions that a status keeps.
const maxPreemptions = 10
