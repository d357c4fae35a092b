package kubernetes

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
)

// allocated sums up what pods use of the nodes that accept new pods. Pods on cordoned nodes do not
// count, because the nodes themselves do not either. If the nodes are unknown (nil), all pods
// count.
func allocated(pods map[informer.UID]informer.Pod, nodes map[informer.UID]informer.Node) api.Quantities {
	counted := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		counted[n.Name] = !n.Unschedulable
	}
	sum := newTotals()
	sum[string(corev1.ResourcePods)] = amount.Milli{}
	for _, p := range pods {
		if node := p.Node(); node == "" || nodes != nil && !counted[node] {
			continue
		}
		sum.add(p.Requests)
		sum.addUnits(string(corev1.ResourcePods), 1)
	}
	return sum.quantities()
}
