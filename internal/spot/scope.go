package spot

import "slices"

// SystemNamespaces are never touched: a cluster must be able to start without this server.
var SystemNamespaces = []string{"kube-system", "kube-public", "kube-node-lease"}

// OptedOut reports whether the labels of a namespace, workload or pod template disable splitting.
func OptedOut(labels map[string]string) bool {
	return slices.ContainsFunc(LabelsEnabled, func(key string) bool { return labels[key] == "false" })
}
