package inventory

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// namespace is what is kept of a namespace.
type namespace struct {
	name string
	out  bool // excluded by its labels
}

func namespaceOf(o *corev1.Namespace) *namespace { return &namespace{o.Name, spot.OptedOut(o.Labels)} }

// followNamespaces tracks the namespaces that are excluded by their labels: new pods there do not
// pass through the webhook, so replacing one would change nothing.
func (i *Inventory) followNamespaces() {
	follow(i, "namespaces", i.Client.CoreV1().Namespaces(), reduced(namespaceOf), func(c informer.Change[*namespace]) {
		if c.New != nil {
			i.leaveOut(c.New.name, c.New.out)
		} else {
			i.leaveOut(c.Old.name, false)
		}
	})
}

// leaveOut records whether a namespace is excluded by its labels.
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

// excluded says why nothing is split in a namespace, or returns "".
func (i *Inventory) excluded(namespace string) string {
	if slices.Contains(spot.SystemNamespaces, namespace) || slices.Contains(i.Exclude, namespace) {
		return "namespace " + namespace + " is excluded"
	}
	if _, out := i.leftOut[namespace]; out {
		return "namespace " + namespace + " has a label that disables the split"
	}
	return ""
}
