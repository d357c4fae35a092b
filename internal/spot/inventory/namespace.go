package inventory

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// namespaceTable knows the namespaces that are left out by their labels: new pods there
// do not pass through the webhook, so that replacing one would change nothing.
func (i *Inventory) namespaceTable() *table {
	names := map[types.UID]string{}
	return newTable(i, "namespaces", i.Client.CoreV1().Namespaces(), &corev1.Namespace{},
		func(o *corev1.Namespace) { o.ManagedFields = nil },
		func(n *corev1.Namespace) types.UID {
			names[n.UID] = n.Name
			i.leaveOut(n.Name, spot.OptedOut(n.Labels))
			return n.UID
		},
		func(uid types.UID) {
			i.leaveOut(names[uid], false)
			delete(names, uid)
		})
}

// leaveOut takes in whether a namespace is left out by its labels.
func (i *Inventory) leaveOut(namespace string, out bool) {
	if _, before := i.leftOut[namespace]; before == out {
		return
	}
	if out {
		i.leftOut[namespace] = struct{}{}
	} else {
		delete(i.leftOut, namespace)
	}
	for key := range i.workloads {
		if key.Namespace == namespace {
			i.Changed(key)
		}
	}
}

// excluded says why nothing is split in a namespace, "" where something may be.
func (i *Inventory) excluded(namespace string) string {
	if slices.Contains(spot.SystemNamespaces, namespace) || slices.Contains(i.Exclude, namespace) {
		return "namespace " + namespace + " is excluded"
	}
	if _, out := i.leftOut[namespace]; out {
		return "namespace " + namespace + " is labelled to be left alone"
	}
	return ""
}
