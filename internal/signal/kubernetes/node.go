package kubernetes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
)

// nodeFacts counts and sums up nodes.
func nodeFacts(nodes map[informer.UID]informer.Node) *health.NodeFacts {
	f := &health.NodeFacts{}
	capacity, allocatable := newTotals(), newTotals()
	regions, zones := map[string]int{}, map[string]bool{}
	for _, n := range nodes {
		f.Total++
		switch {
		case !n.Ready:
			f.NotReady++
		case !n.Pressure:
			f.Ready++
		}
		if n.Pressure {
			f.Pressure++
		}
		capacity.add(n.Capacity)
		// New pods are not scheduled on cordoned nodes.
		if !n.Unschedulable {
			allocatable.add(n.Allocatable)
		}
		if n.Region != "" {
			regions[n.Region]++
		}
		if n.Zone != "" {
			zones[n.Zone] = true
		}
	}
	if f.Total == 0 {
		capacity[string(corev1.ResourcePods)] = amount.Milli{} // otherwise any number of pods would fit
	}
	// Resources that only cordoned nodes have are 0 for new pods, not unknown.
	for name := range capacity {
		allocatable.addUnits(name, 0)
	}
	f.Capacity, f.Allocatable = capacity.quantities(), allocatable.quantities()
	// The region of most nodes; ties go to the first by name.
	for region, count := range regions {
		if most := regions[f.Region]; count > most || count == most && region < f.Region {
			f.Region = region
		}
	}
	for zone := range zones {
		f.Zones = append(f.Zones, zone)
	}
	slices.Sort(f.Zones)
	return f
}
