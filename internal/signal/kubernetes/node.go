package kubernetes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/kube/feed"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
)

// nodeFacts counts and sums up nodes.
func nodeFacts(nodes map[feed.UID]feed.Node) *health.NodeFacts {
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
		// New pods do not come to a node that is cordoned off.
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
		capacity[string(corev1.ResourcePods)] = 0 // else as many as one likes could run on nothing
	}
	// What only nodes have that are cordoned off is 0 for new pods, and not unknown.
	for name := range capacity {
		allocatable.addTo(name, 0)
	}
	f.Capacity, f.Allocatable = capacity.quantities(), allocatable.quantities()
	// The region of most nodes; of equal numbers the first by name.
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
