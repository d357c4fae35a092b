package runner

import "github.com/scheduler/terraform-provider-scheduler/internal/api"

// target is what an agent does in a cluster. Another one needs another agent.
type target struct {
	uid        string
	kubeconfig api.Secret
	label      string // key of the node type
	enabled    bool
	recreate   bool
}

// targetOf reads it out of a cluster; it is empty where there is nothing to do. One
// that has spot switched off may have been split before: what was installed is removed,
// and pods that are to be recreated are.
func targetOf(c *api.Cluster) target {
	s := c.Spec.Spot
	if s == nil || !c.HasKubeconfig() {
		return target{}
	}
	return target{c.Metadata.UID, c.Spec.Kubernetes.Kubeconfig, s.NodeTypeKey, s.Enabled, s.OnDisable == api.OnDisableRecreate}
}

// splits reports whether new pods are to be split.
func (t target) splits() bool { return t.enabled }
