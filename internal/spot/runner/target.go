package runner

import "github.com/scheduler/terraform-provider-scheduler/internal/api"

// target is what an agent does in a cluster. A changed target needs another agent.
type target struct {
	uid        string
	kubeconfig api.Secret
	label      string // key of the node type label
	enabled    bool
	recreate   bool
}

// targetOf returns the target of a cluster; it is empty if there is nothing to do. A cluster with
// spot disabled may have been split before: the webhook is uninstalled, and pods are recreated if
// requested.
func targetOf(c *api.Cluster) target {
	s := c.Spec.Spot
	if s == nil || !c.HasKubeconfig() {
		return target{}
	}
	return target{c.Metadata.UID, c.Spec.Kubernetes.Kubeconfig, s.NodeTypeKey, s.Enabled, s.OnDisable == api.OnDisableRecreate}
}

// splits reports whether new pods should be split.
func (t target) splits() bool { return t.enabled }
