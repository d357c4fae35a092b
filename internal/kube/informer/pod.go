package informer

import (
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	podresource "k8s.io/component-helpers/resource"
)

// placedPods selects the pods that use resources: scheduled, and not completed.
const placedPods = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"

// Pod is what is kept of a pod.
type Pod struct {
	node     unique.Handle[string] // zero if it uses no resources
	Requests Amount
	// Detail is what a Follower keeps in addition.
	Detail any
}

// PodOf returns what a pod uses, computed as in the Kubernetes scheduler: with init containers,
// sidecars, overhead, and pod-level requests. It returns false if it uses nothing.
func PodOf(object runtime.Object) (Pod, bool) {
	o, ok := object.(*corev1.Pod)
	if !ok || o.Spec.NodeName == "" || o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed {
		return Pod{}, false
	}
	requests := podresource.PodRequests(o, podresource.PodResourcesOptions{UseStatusResources: true})
	return Pod{node: unique.Make(o.Spec.NodeName), Requests: AmountOf(requests)}, true
}

// podWith reduces all pods, including those that use nothing.
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

// Node returns the node whose resources the pod uses, or "".
func (p Pod) Node() string {
	if p.node == (unique.Handle[string]{}) {
		return ""
	}
	return p.node.Value()
}

func samePod(a, b Pod) bool { return a.node == b.node && a.Requests == b.Requests }
