package engine

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// countedPrefix begins the name under which machines of a flavor are reserved
// that a cluster has a declared number of. No resource has such a name.
const countedPrefix = "flavor:"

// declared reports whether an amount is part of a declared number: no capacity
// report contains it.
func (r *request) declared() bool { return strings.HasPrefix(r.resource, countedPrefix) }

// machine is how a cluster has machines of a flavor: by what they take of its
// amounts, or as a number. Equal machines need the same, whatever the cluster.
type machine struct {
	flavor  string
	vcpus   int64
	memory  api.Quantity
	counted bool
}

// machineOn is how a cluster has a flavor; ok is false where it does not, or says
// neither the size nor a number. A number counts as long as no amounts are
// reported that the size can be measured by.
//
// hint is where the flavor is looked for first, and becomes where it was found:
// mostly clusters list the same flavors.
func machineOn(f *Fleet, row int, flavor string, hint *int) (m machine, count int64, ok bool) {
	flavors := f.rows[row].cluster.Spec.Flavors
	if *hint < len(flavors) && flavors[*hint].Name == flavor {
		return machineOf(f, row, &flavors[*hint])
	}
	for i := range flavors {
		if flavors[i].Name == flavor {
			*hint = i
			return machineOf(f, row, &flavors[i])
		}
	}
	return machine{}, 0, false
}

func machineOf(f *Fleet, row int, c *api.ClusterFlavor) (m machine, count int64, ok bool) {
	sized := c.VCPUs > 0 && positive(c.Memory)
	switch {
	case sized && (c.Count == nil || f.reported(resourceCPU, row) && f.reported(resourceMemory, row)):
		return machine{flavor: c.Name, vcpus: c.VCPUs, memory: c.Memory}, 0, true
	case c.Count != nil:
		return machine{flavor: c.Name, counted: true}, *c.Count, true
	}
	return machine{}, 0, false
}

// needs is what a replica needs that is such a machine.
func (m *machine) needs(base Needs) Needs { return m.plus(base, 1) }

// with is the needs and a further amount.
func (n Needs) with(resource string, milli int64) Needs {
	i, found := slices.BinarySearchFunc(n, resource, func(r request, name string) int { return strings.Compare(r.resource, name) })
	out := slices.Clone(n)
	if found {
		out[i].milli = min(out[i].milli, maxAmount-min(milli, maxAmount)) + min(milli, maxAmount)
		return out
	}
	return slices.Insert(out, i, request{resource: resource, milli: min(milli, maxAmount)})
}

// plus is what a replica needs that a number of such machines belong to.
func (m *machine) plus(base Needs, count int64) Needs {
	if m.counted {
		return base.with(countedPrefix+m.flavor, times(1000, count))
	}
	memory, _ := m.memory.Milli() // machineOf has read it
	return base.with(resourceCPU, times(times(1000, m.vcpus), count)).with(resourceMemory, times(memory, count))
}

// NeedsOn is what a replica needs on a cluster where it is a machine of a flavor,
// "" for none, together with further machines. Where the cluster does not have such
// machines any more nobody knows what they take.
func NeedsOn(f *Fleet, base Needs, cluster, flavor string, further map[string]int64) Needs {
	row, ok := f.Row(cluster)
	if !ok {
		return base
	}
	add := func(flavor string, count int64) {
		if m, _, ok := machineOn(f, row, flavor, new(int)); ok {
			base = m.plus(base, count)
		}
	}
	if flavor != "" {
		add(flavor, 1)
	}
	for _, name := range slices.Sorted(maps.Keys(further)) {
		add(name, further[name])
	}
	return base
}

// left is how many of a declared number of machines are not reserved.
func (m *machine) left(reserved *Reservations, row int, count int64) int64 {
	return max(count-at(reserved.column(countedPrefix+m.flavor), row)/1000, 0)
}

// FlavorCounts is for how many machines of each of its flavors a cluster has room.
// Flavors of which that is not known are left out.
func FlavorCounts(f *Fleet, reserved *Reservations, row int) map[string]int64 {
	if f.Cluster(row) == nil {
		return nil
	}
	var out map[string]int64
	flavors, here := f.rows[row].cluster.Spec.Flavors, RowRoom{}
	if len(flavors) > 0 {
		here = RoomOn(f, reserved, row)
	}
	for i := range flavors {
		m, count, ok := machineOf(f, row, &flavors[i])
		if !ok {
			continue
		}
		n := here.For(m.needs(nil))
		if m.counted {
			n = min(here.For(nil), m.left(reserved, row, count)) // 0 where not one machine has room
		}
		if n == math.MaxInt64 {
			continue
		}
		if out == nil {
			out = make(map[string]int64, len(flavors))
		}
		out[m.flavor] = n
	}
	return out
}

// SameMachines reports whether a row of two fleets is the same cluster, and
// machines of its flavors take the same of it.
func SameMachines(a, b *Fleet, row int) bool {
	if row >= len(a.rows) || row >= len(b.rows) || a.rows[row] == nil || b.rows[row] == nil {
		return false
	}
	x, y := a.rows[row].cluster, b.rows[row].cluster
	if x.Metadata.Name != y.Metadata.Name || !sameFlavors(x.Spec.Flavors, y.Spec.Flavors) {
		return false
	}
	return len(x.Spec.Flavors) == 0 ||
		a.reported(resourceCPU, row) == b.reported(resourceCPU, row) && a.reported(resourceMemory, row) == b.reported(resourceMemory, row)
}
