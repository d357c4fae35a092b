package feed

import (
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	podresource "k8s.io/component-helpers/resource"
)

// placedPods selects the pods that take up room: on a node, and not at their end.
const placedPods = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"

// Pod is what counts of a pod.
type Pod struct {
	node     unique.Handle[string] // zero where it takes up no room
	Requests Amount
	// Detail is what a Follower keeps besides.
	Detail any
}

// PodOf reduces a pod to what it takes up, by the rule of the scheduler of
// Kubernetes: init containers, sidecars, overhead, and requests of the whole pod.
// It is false where that is nothing.
func PodOf(object runtime.Object) (Pod, bool) {
	o, ok := object.(*corev1.Pod)
	if !ok || o.Spec.NodeName == "" || o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed {
		return Pod{}, false
	}
	requests := podresource.PodRequests(o, podresource.PodResourcesOptions{UseStatusResources: true})
	return Pod{node: unique.Make(o.Spec.NodeName), Requests: AmountOf(requests)}, true
}

// podWith reduces all pods, also those that take up nothing.
func podWith(detail func(*corev1.Pod, Amount) any) func(runtime.Object) (Pod, bool) {
	return func(object runtime.Object) (Pod, bool) {
		o, ok := object.(*corev1.Pod)
		if !ok {
			return Pod{}, false
		}
		p, _ := PodOf(o)
		p.Detail = detail(o, p.Requests)
		return p, true
	}
}

// Node is where the pod takes up room, "" where it takes up none.
func (p Pod) Node() string {
	if p.node == (unique.Handle[string]{}) {
		return ""
	}
	return p.node.Value()
}

func samePod(a, b Pod) bool { return a.node == b.node && a.Requests == b.Requests }
