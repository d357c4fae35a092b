package spot

import "slices"

// SystemNamespaces are never touched: a cluster has to come up without this server.
var SystemNamespaces = []string{"kube-system", "kube-public", "kube-node-lease"}

// OptedOut reports whether the labels of a namespace, a workload or a pod template say
// that nothing is to be split there.
func OptedOut(labels map[string]string) bool {
	return slices.ContainsFunc(LabelsEnabled, func(key string) bool { return labels[key] == "false" })
}
