package reconcile

import (
	"cmp"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/binding"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// maxDisplacements limits how many combinations of replicas are compared to find the least that must
// be displaced. Beyond, what is not needed is left out one after another.
const maxDisplacements = 512

// displacement determines the least that workloads of lower priority must give for another one.
type displacement struct {
	by     *workloadBinding
	fleet  *columns.Fleet
	enough func(spare ledger.Spare) bool
	// units are what could be displaced, the most important first: by priority, then the oldest.
	units []displaced
	// spare is what the units give.
	spare ledger.Spare
}

// displaced are the replicas of one workload on one cluster.
type displaced struct {
	victim   *workloadBinding
	cluster  string
	needs    ledger.Needs
	replicas int64   // that run there
	takes    int64   // that must go
	whole    bool    // they are one copy: all go, or none
	gain     float64 // how much room each of them gives
}

// newDisplacement lists what could be displaced for a workload, all of which is displaced at first.
func newDisplacement(b *workloadPlanner, by *workloadBinding, enough func(spare ledger.Spare) bool) *displacement {
	d := &displacement{by: by, fleet: b.fleet, enough: enough, spare: ledger.Spare{}}
	views := by.views()
	admitted := func(row int) bool {
		return slices.ContainsFunc(views, func(v *placement.View) bool { return v.Mask.Has(row) })
	}
	for _, victim := range b.workloads {
		if victim == by || victim.gone || victim.object.Spec.Priority >= by.p.Priority {
			continue
		}
		for _, c := range victim.status.Clusters {
			row, ok := b.fleet.Row(c.Name)
			if !ok || c.Replicas == 0 || by.holds[c.Name] == 0 && !admitted(row) {
				continue
			}
			needs := victim.heldOn(c.Name)
			if !needs.Compete(b.fleet, row, by.needs) {
				continue
			}
			d.units = append(d.units, displaced{
				victim: victim, cluster: c.Name, needs: needs, replicas: c.Replicas,
				gain: gainOf(needs, by.needs),
			})
		}
	}
	slices.SortFunc(d.units, func(x, y displaced) int {
		return cmp.Or(
			cmp.Compare(y.victim.object.Spec.Priority, x.victim.object.Spec.Priority),
			columns.TimeOf(x.victim.status.ScheduledAt).Compare(columns.TimeOf(y.victim.status.ScheduledAt)),
			x.victim.key().Compare(y.victim.key()),
			cmp.Compare(x.cluster, y.cluster),
		)
	})
	for i := range d.units {
		u := &d.units[i]
		b.claim(u.victim) // its turn may be still to come
		u.whole = !binding.Divides(u.victim.object, u.victim.policy)
		d.set(u, u.replicas)
	}
	return d
}

// gainOf says how much room a replica gives to replicas with the other needs.
func gainOf(needs, other ledger.Needs) (gain float64) {
	for _, a := range needs {
		for _, b := range other {
			if a.Resource == b.Resource && b.Milli.Positive() {
				gain += a.Milli.Share(b.Milli)
			}
		}
	}
	return gain
}

// set changes how many replicas a unit gives.
func (d *displacement) set(u *displaced, takes int64) {
	switch {
	case takes > u.takes:
		d.spare.AddHold(d.fleet, u.needs, u.cluster, takes-u.takes)
	case takes < u.takes:
		amounts := map[string]amount.Milli{}
		for _, a := range u.needs.Of(u.takes - takes) {
			amounts[a.Resource] = a.Milli
		}
		d.spare.Subtract(d.fleet, u.cluster, amounts)
	}
	u.takes = takes
}

// reduce leaves out what is not needed: exactly, if there are few ways, otherwise priority by priority,
// beginning with the highest.
func (d *displacement) reduce() {
	if d.takeLeast(d.units) {
		return
	}
	for units := d.units; len(units) > 0; {
		n := 1
		for n < len(units) && units[n].victim.object.Spec.Priority == units[0].victim.object.Spec.Priority {
			n++
		}
		d.reduceLevel(units[:n])
		units = units[n:]
	}
}

// reduceLevel leaves out what is not needed of one priority.
func (d *displacement) reduceLevel(units []displaced) {
	for i := range units {
		d.set(&units[i], 0)
	}
	if d.enough(d.spare) {
		return
	}
	if d.takeLeast(units) {
		return
	}
	for i := range units {
		d.set(&units[i], units[i].replicas)
	}
	order := make([]*displaced, len(units))
	for i := range units {
		order[i] = &units[i]
	}
	slices.SortStableFunc(order, func(x, y *displaced) int { return cmp.Compare(x.gain, y.gain) })
	d.leaveOut(order)
}

// leaveOut leaves out units as long as the rest is enough, which it is at first: half of them at once,
// then halves of these.
func (d *displacement) leaveOut(units []*displaced) {
	had := make([]int64, len(units))
	for i, u := range units {
		had[i] = u.takes
		d.set(u, 0)
	}
	if len(units) == 0 || d.enough(d.spare) {
		return
	}
	for i, u := range units {
		d.set(u, had[i])
	}
	if n := len(units); n > 1 {
		d.leaveOut(units[:n/2])
		d.leaveOut(units[n/2:])
		return
	}
	if u := units[0]; !u.whole {
		few, enough := int64(0), u.takes
		for few+1 < enough {
			half := few + (enough-few)/2
			if d.set(u, half); d.enough(d.spare) {
				enough = half
			} else {
				few = half
			}
		}
		d.set(u, enough)
	}
}

// takeLeast takes the least of some units that is enough. It reports false if there are too many ways.
func (d *displacement) takeLeast(units []displaced) bool {
	for _, takes := range combinations(units) {
		for i := range units {
			d.set(&units[i], takes[i])
		}
		if d.enough(d.spare) {
			return true
		}
	}
	return false
}

// combinations returns all ways to take replicas from units, the least first: by replicas of the
// highest priority, then of the next ones, then by workloads, then such that the last workloads give,
// and of each the last units. It returns nil if there are too many.
func combinations(units []displaced) [][]int64 {
	count := int64(1)
	for i := range units {
		ways := int64(2)
		if !units[i].whole {
			ways = units[i].replicas + 1
		}
		if ways > maxDisplacements/count {
			return nil
		}
		count *= ways
	}
	type way struct {
		takes, replicas, each []int64 // by unit, by priority, and by workload
		workloads             int
	}
	all := []way{{takes: []int64{}}}
	for i := range units {
		var next []way
		for _, w := range all {
			for n := int64(0); n <= units[i].replicas; n++ {
				if !units[i].whole || n == 0 || n == units[i].replicas {
					next = append(next, way{takes: append(slices.Clone(w.takes), n)})
				}
			}
		}
		all = next
	}
	for k := range all {
		w := &all[k]
		for i, n := range w.takes {
			if i == 0 || units[i].victim.object.Spec.Priority != units[i-1].victim.object.Spec.Priority {
				w.replicas = append(w.replicas, 0)
			}
			if i == 0 || units[i].victim != units[i-1].victim {
				w.each = append(w.each, 0)
			}
			w.replicas[len(w.replicas)-1] += n
			w.each[len(w.each)-1] += n
		}
		for _, n := range w.each {
			if n > 0 {
				w.workloads++
			}
		}
	}
	slices.SortFunc(all, func(x, y way) int {
		return cmp.Or(slices.Compare(x.replicas, y.replicas), cmp.Compare(x.workloads, y.workloads),
			slices.Compare(x.each, y.each), slices.Compare(x.takes, y.takes))
	})
	out := make([][]int64, len(all))
	for i := range all {
		out[i] = all[i].takes
	}
	return out
}
