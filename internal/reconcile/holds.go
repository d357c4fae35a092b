package reconcile

import (
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// hold updates the reservations for a status, and marks everything that depends on the room of the
// affected clusters.
func (b *workloadPlanner) hold(w *workloadBinding) { b.holdAs(w, w.needs) }

// holdAs is hold with the given needs per replica, in addition to its machine.
func (b *workloadPlanner) holdAs(w *workloadBinding, needs ledger.Needs) {
	after := clustersOf(&w.status)
	machines := w.machinesOf(b.fleet, needs)
	var more, less []int
	touch := func(rows *[]int, name string) {
		if row, ok := b.fleet.Row(name); ok {
			*rows = append(*rows, row)
		}
	}
	key, alike := w.key(), needs.Equal(w.heldNeeds)
	for name, had := range w.holds {
		if after[name] == 0 {
			b.reserved.Release(b.fleet, key, name)
			touch(&more, name)
		} else if after[name] < had {
			touch(&more, name)
		}
	}
	for name, replicas := range after {
		each, same := needs, alike
		if len(machines)+len(w.machines) > 0 {
			each = eachOn(machines, needs, name)
			same = each.Equal(w.heldOn(name))
		}
		switch {
		case replicas == 0:
			delete(after, name)
			continue
		case replicas == w.holds[name] && same:
			continue
		case !same: // some resources may have more free now, and others less
			touch(&more, name)
			touch(&less, name)
		case replicas > w.holds[name]:
			touch(&less, name)
		}
		since := sinceOf(&w.status, name)
		if !alike && w.heldNeeds != nil {
			since = b.now // an earlier report contains them with other needs
		}
		b.reserved.HoldReplicas(b.fleet, key, each, name, replicas, since)
	}
	w.holds, w.heldNeeds, w.machines = after, needs, machines
	if len(more)+len(less) == 0 {
		return
	}
	rows := slices.Concat(more, less)
	slices.Sort(rows)
	b.heldOtherwise(slices.Compact(rows), more, less)
}

// machinesOf returns what a replica needs on the clusters on which it has a flavor.
func (w *workloadBinding) machinesOf(f *columns.Fleet, needs ledger.Needs) (machines map[string]ledger.Needs) {
	further := w.object.Spec.Machines()
	for i := range w.status.Clusters {
		c := &w.status.Clusters[i]
		if c.Flavor == "" && len(further) == 0 {
			continue
		}
		if machines == nil {
			machines = make(map[string]ledger.Needs, len(w.status.Clusters))
		}
		machines[c.Name] = ledger.NeedsOn(f, needs, c.Name, c.Flavor, further)
	}
	return machines
}

// heldOn returns what each replica of a workload holds on a cluster.
func (w *workloadBinding) heldOn(cluster string) ledger.Needs {
	return eachOn(w.machines, w.heldNeeds, cluster)
}

func eachOn(machines map[string]ledger.Needs, needs ledger.Needs, cluster string) ledger.Needs {
	if m, ok := machines[cluster]; ok {
		return m
	}
	return needs
}

// resize updates what replicas hold when the flavors of clusters have changed.
func (b *workloadPlanner) resize(was *columns.Fleet, rows []int) {
	for _, row := range rows {
		cluster := b.fleet.Cluster(row)
		if cluster == nil || ledger.SameMachines(was, b.fleet, row) {
			continue
		}
		for w := range b.occupants[cluster.Metadata.Name] {
			if w.machines != nil {
				b.holdAs(w, w.heldNeeds)
				b.changed = append(b.changed, w.key())
			}
		}
	}
}

// sinceOf returns since when a workload has its replicas on a cluster.
func sinceOf(s *api.WorkloadStatus, name string) time.Time {
	for _, c := range s.Clusters {
		if c.Name == name {
			if c.Since == nil {
				return columns.TimeOf(s.ScheduledAt)
			}
			return *c.Since
		}
	}
	for _, e := range s.Evictions {
		if e.Cluster == name {
			return columns.TimeOf(e.Since)
		}
	}
	return time.Time{}
}
