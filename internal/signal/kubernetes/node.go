package kubernetes

import (
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
)

// node is what counts of a node.
type node struct {
	name                           string
	ready, pressure, unschedulable bool
	region, zone                   string
	capacity, allocatable          amount
}

// nodeOf reduces a node. One that has not said yet whether it is ready counts as
// ready: it was just created, and there may be nobody to say it.
func nodeOf(object runtime.Object) (node, bool) {
	o, ok := object.(*corev1.Node)
	if !ok {
		return node{}, false
	}
	n := node{
		name: o.Name, ready: true, unschedulable: o.Spec.Unschedulable,
		region: label(o.Labels, corev1.LabelTopologyRegion), zone: label(o.Labels, corev1.LabelTopologyZone),
		capacity: amountOf(o.Status.Capacity), allocatable: amountOf(o.Status.Allocatable),
	}
	for _, condition := range o.Status.Conditions {
		switch {
		case condition.Type == corev1.NodeReady:
			n.ready = condition.Status == corev1.ConditionTrue
		case strings.HasSuffix(string(condition.Type), "Pressure"):
			n.pressure = n.pressure || condition.Status == corev1.ConditionTrue
		}
	}
	return n, true
}

// label is the value of a label, one copy for all nodes that share it.
func label(labels map[string]string, key string) string {
	if value := labels[key]; value != "" && len(value) <= maxName {
		return unique.Make(value).Value()
	}
	return ""
}

// nodeFacts counts and sums up nodes.
func nodeFacts(nodes map[uid]node) *health.NodeFacts {
	f := &health.NodeFacts{}
	capacity, allocatable := newTotals(), newTotals()
	regions, zones := map[string]int{}, map[string]bool{}
	for _, n := range nodes {
		f.Total++
		switch {
		case !n.ready:
			f.NotReady++
		case !n.pressure:
			f.Ready++
		}
		if n.pressure {
			f.Pressure++
		}
		capacity.add(n.capacity)
		// New pods do not come to a node that is cordoned off.
		if !n.unschedulable {
			allocatable.add(n.allocatable)
		}
		if n.region != "" {
			regions[n.region]++
		}
		if n.zone != "" {
			zones[n.zone] = true
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
