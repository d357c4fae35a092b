package ledger

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// CountedPrefix starts the name under which machines of a flavor are reserved if the cluster
// declares their number. No resource has such a name.
const CountedPrefix = "flavor:"

// declared reports whether an amount is part of a declared number of machines, which no capacity
// report contains.
func (r *Amount) declared() bool { return strings.HasPrefix(r.Resource, CountedPrefix) }

// Machine is how a cluster provides machines of a flavor: measured by the resources that each
// needs, or as a number. Equal machines have equal needs, whatever the cluster.
type Machine struct {
	Flavor  string
	vcpus   int64
	memory  api.Quantity
	Counted bool
}

// MachineOn returns how a cluster provides a flavor. ok is false if it does not, or declares
// neither size nor number. A declared number is used only as long as the cluster reports no amounts
// by which the size can be measured.
//
// hint is the position where the flavor is looked up first, and is updated to where it was found,
// because clusters often list the same flavors.
func MachineOn(f *columns.Fleet, row int, flavor string, hint *int) (m Machine, count int64, ok bool) {
	flavors := f.Cluster(row).Spec.Flavors
	if *hint < len(flavors) && flavors[*hint].Name == flavor {
		return machineOf(f, row, &flavors[*hint])
	}
	for i := range flavors {
		if flavors[i].Name == flavor {
			*hint = i
			return machineOf(f, row, &flavors[i])
		}
	}
	return Machine{}, 0, false
}

func machineOf(f *columns.Fleet, row int, c *api.ClusterFlavor) (m Machine, count int64, ok bool) {
	sized := c.VCPUs > 0 && columns.Positive(c.Memory)
	switch {
	case sized && (c.Count == nil || f.Reported(columns.ResourceCPU, row) && f.Reported(columns.ResourceMemory, row)):
		return Machine{Flavor: c.Name, vcpus: c.VCPUs, memory: c.Memory}, 0, true
	case c.Count != nil:
		return Machine{Flavor: c.Name, Counted: true}, *c.Count, true
	}
	return Machine{}, 0, false
}

// Needs returns the needs of a replica that is one such machine.
func (m *Machine) Needs(base Needs) Needs { return m.Plus(base, 1) }

// with returns the needs plus an amount.
func (n Needs) with(resource string, milli amount.Milli) Needs {
	i, found := slices.BinarySearchFunc(n, resource, func(r Amount, name string) int { return strings.Compare(r.Resource, name) })
	out := slices.Clone(n)
	if found {
		out[i].Milli = out[i].Milli.Plus(milli)
		return out
	}
	return slices.Insert(out, i, Amount{Resource: resource, Milli: milli})
}

// Plus returns the needs of a replica that includes a number of such machines.
func (m *Machine) Plus(base Needs, count int64) Needs {
	if m.Counted {
		return base.with(CountedPrefix+m.Flavor, amount.Units(count))
	}
	memory, _ := m.memory.Milli() // machineOf has parsed it
	return base.with(columns.ResourceCPU, amount.Units(m.vcpus).Times(count)).with(columns.ResourceMemory, memory.Times(count))
}

// NeedsOn returns the needs of a replica on a cluster, where it is a machine of a flavor, "" for
// none, plus further machines. If the cluster no longer has such machines, their needs are unknown.
func NeedsOn(f *columns.Fleet, base Needs, cluster, flavor string, further map[string]int64) Needs {
	row, ok := f.Row(cluster)
	if !ok {
		return base
	}
	add := func(flavor string, count int64) {
		if m, _, ok := MachineOn(f, row, flavor, new(int)); ok {
			base = m.Plus(base, count)
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

// Left returns how many of a declared number of machines are not reserved.
func (m *Machine) Left(reserved *Reservations, row int, count int64) int64 {
	return amount.Units(count).Minus(At(reserved.Column(CountedPrefix+m.Flavor), row)).Fits(amount.Unit)
}

// FlavorCounts returns how many machines of each flavor fit on a cluster. Flavors for which that is
// unknown are omitted.
func FlavorCounts(f *columns.Fleet, reserved *Reservations, row int) map[string]int64 {
	if f.Cluster(row) == nil {
		return nil
	}
	var out map[string]int64
	flavors, here := f.Cluster(row).Spec.Flavors, RowRoom{}
	if len(flavors) > 0 {
		here = RoomOn(f, reserved, row)
	}
	for i := range flavors {
		m, count, ok := machineOf(f, row, &flavors[i])
		if !ok {
			continue
		}
		n := here.For(m.Needs(nil))
		if m.Counted {
			n = min(here.For(nil), m.Left(reserved, row, count)) // 0 if not even one machine fits
		}
		if n == math.MaxInt64 {
			continue
		}
		if out == nil {
			out = make(map[string]int64, len(flavors))
		}
		out[m.Flavor] = n
	}
	return out
}

// SameMachines reports whether a row is the same cluster in two fleets, and machines of its flavors
// need the same resources.
func SameMachines(a, b *columns.Fleet, row int) bool {
	if row >= len(a.Rows()) || row >= len(b.Rows()) || a.Rows()[row] == nil || b.Rows()[row] == nil {
		return false
	}
	x, y := a.Cluster(row), b.Cluster(row)
	if x.Metadata.Name != y.Metadata.Name || !columns.SameFlavors(x.Spec.Flavors, y.Spec.Flavors) {
		return false
	}
	return len(x.Spec.Flavors) == 0 ||
		a.Reported(columns.ResourceCPU, row) == b.Reported(columns.ResourceCPU, row) && a.Reported(columns.ResourceMemory, row) == b.Reported(columns.ResourceMemory, row)
}
