package kubernetes

import (
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	podresource "k8s.io/component-helpers/resource"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// placedPods selects the pods that take up room: on a node, and not at their end.
const placedPods = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"

// pod is what counts of a pod.
type pod struct {
	node     string
	requests amount
}

// podOf reduces a pod to what it takes up, by the rule of the scheduler of
// Kubernetes: init containers, sidecars, overhead, and requests of the whole pod.
func podOf(object runtime.Object) (pod, bool) {
	o, ok := object.(*corev1.Pod)
	if !ok || o.Spec.NodeName == "" || o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed {
		return pod{}, false
	}
	requests := podresource.PodRequests(o, podresource.PodResourcesOptions{UseStatusResources: true})
	return pod{node: unique.Make(o.Spec.NodeName).Value(), requests: amountOf(requests)}, true
}

// allocated sums up what pods take up of the nodes that new pods come to. What
// runs on a node that is cordoned off takes nothing of what is left, as the node
// itself is not counted either. Where the nodes are not known (nil) all pods count.
func allocated(pods map[uid]pod, nodes map[uid]node) api.Quantities {
	counted := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		counted[n.name] = !n.unschedulable
	}
	sum := newTotals()
	sum[string(corev1.ResourcePods)] = 0
	for _, p := range pods {
		if nodes != nil && !counted[p.node] {
			continue
		}
		sum.add(p.requests)
		sum.addTo(string(corev1.ResourcePods), 1)
	}
	return sum.quantities()
}
