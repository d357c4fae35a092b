package openstack

import (
	"maps"
	"slices"
	"strconv"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// defaultZone is the availability zone of hosts that are in no aggregate with a zone.
const defaultZone = "nova"

// hypervisor holds the resources of one compute node. A host may have several.
type hypervisor struct {
	id   string
	host string // name of the compute service, as used by aggregates
	up   bool   // running, and accepts machines
	cpu  amount
	// memory is in MiB.
	memory amount
}

// amount is an amount of one resource, in whole units.
type amount struct {
	total       int64 // physical
	allocatable int64 // with the allocation ratio, less what is reserved
	used        int64
}

func (a amount) plus(b amount) amount {
	return amount{total: a.total + b.total, allocatable: a.allocatable + b.allocatable, used: a.used + b.used}
}

// aggregate is a host aggregate. With a zone, it is an availability zone or part of one.
type aggregate struct {
	zone  string
	hosts []string
}

// zoneOf returns the zone of every host in an aggregate. Nova allows a host in one zone only; if a
// response has several, the first by name is used.
func zoneOf(aggregates []aggregate) map[string]string {
	zones := map[string]string{}
	for _, a := range aggregates {
		for _, host := range a.hosts {
			if known, ok := zones[host]; a.zone != "" && (!ok || a.zone < known) {
				zones[host] = a.zone
			}
		}
	}
	return zones
}

// compute adds up the resources of the hypervisors of every availability zone, by name. Hypervisors
// that are down or disabled do not count; a zone that only has such is listed with zero amounts.
func compute(hypervisors []hypervisor, aggregates []aggregate) []api.CloudZone {
	zones := zoneOf(aggregates)
	type sum struct {
		hosts       map[string]bool
		cpu, memory amount
	}
	sums := map[string]*sum{}
	seen := map[string]bool{}
	for _, h := range hypervisors {
		if seen[h.id] {
			continue // on two pages, because one was added in between
		}
		seen[h.id] = true
		name, ok := zones[h.host]
		if !ok {
			name = defaultZone
		}
		s := sums[name]
		if s == nil {
			s = &sum{hosts: map[string]bool{}}
			sums[name] = s
		}
		if h.up {
			s.hosts[h.host] = true
			s.cpu, s.memory = s.cpu.plus(h.cpu), s.memory.plus(h.memory)
		}
	}
	out := make([]api.CloudZone, 0, len(sums))
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		s := sums[name]
		zone := api.CloudZone{
			Name: name, Hosts: int64(len(s.hosts)),
			Capacity: api.Quantities{}, Allocatable: api.Quantities{}, Allocated: api.Quantities{}, Available: api.Quantities{},
		}
		s.cpu.into(zone, api.ResourceCPU, "")
		s.memory.into(zone, api.ResourceMemory, "Mi")
		out = append(out, zone)
	}
	return out
}

// into adds an amount to a zone. An overcommitted resource has nothing available: this is clamped
// here, after adding everything up, so that an overcommitted host counts against the others. Sums that are more than a
// quantity can be are not known: they are left out.
func (a amount) into(zone api.CloudZone, resource, unit string) {
	if _, err := quantity(max(a.total, a.allocatable, a.used), unit).Milli(); err != nil {
		return
	}
	zone.Capacity[resource] = quantity(a.total, unit)
	zone.Allocatable[resource] = quantity(a.allocatable, unit)
	zone.Allocated[resource] = quantity(a.used, unit)
	zone.Available[resource] = quantity(max(a.allocatable-a.used, 0), unit)
}

func quantity(n int64, unit string) api.Quantity {
	switch {
	case n == 0:
		return "0"
	case unit == "Gi" && n == unlimited:
		return "8Pi"
	}
	return api.Quantity(strconv.FormatInt(n, 10) + unit)
}
