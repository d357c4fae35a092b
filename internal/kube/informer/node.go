package informer

import (
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Node is what is kept of a node.
type Node struct {
	Name                           string
	Ready, Pressure, Unschedulable bool
	Region, Zone                   string
	Capacity, Allocatable          Amount
	// Detail is what a Follower keeps in addition.
	Detail any
}

// NodeOf returns what is kept of a node. A node without a Ready condition counts as ready: it was
// just created, and there may be no controller to set it.
func NodeOf(object runtime.Object) (Node, bool) { return nodeWith(nil)(object) }

func nodeWith(detail func(*corev1.Node) any) func(runtime.Object) (Node, bool) {
	return func(object runtime.Object) (Node, bool) {
		o, ok := object.(*corev1.Node)
		if !ok {
			return Node{}, false
		}
		n := Node{
			Name: o.Name, Ready: true, Unschedulable: o.Spec.Unschedulable,
			Region: label(o.Labels, corev1.LabelTopologyRegion), Zone: label(o.Labels, corev1.LabelTopologyZone),
			Capacity: AmountOf(o.Status.Capacity), Allocatable: AmountOf(o.Status.Allocatable),
		}
		for _, condition := range o.Status.Conditions {
			switch {
			case condition.Type == corev1.NodeReady:
				n.Ready = condition.Status == corev1.ConditionTrue
			case strings.HasSuffix(string(condition.Type), "Pressure"):
				n.Pressure = n.Pressure || condition.Status == corev1.ConditionTrue
			}
		}
		if detail != nil {
			n.Detail = detail(o)
		}
		return n, true
	}
}

func sameNode(a, b Node) bool {
	a.Detail, b.Detail = nil, nil
	return a == b
}

// label returns the value of a label, interned.
func label(labels map[string]string, key string) string {
	if value := labels[key]; value != "" && len(value) <= MaxName {
		return unique.Make(value).Value()
	}
	return ""
}
