package api

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// SpotSpec configures whether workloads are split between the on-demand and spot nodes of a
// cluster.
type SpotSpec struct {
	Enabled     bool      `json:"enabled,omitempty" default:"false" doc:"If true, the pods of workloads that request it are split. Requires a kubeconfig and a server that the cluster can reach ('--webhook-listen')."`
	NodeTypeKey string    `json:"node_type_key,omitempty" default:"node.kubernetes.io/capacity" doc:"Node label that tells on-demand from spot nodes, with the values 'on-demand' and 'spot'. The labels 'karpenter.sh/capacity-type', 'eks.amazonaws.com/capacityType', 'cloud.google.com/gke-spot' and 'kubernetes.azure.com/scalesetpriority' are recognized with their own values."`
	OnDisable   OnDisable `json:"on_disable,omitempty" enum:"keep,recreate" default:"keep" doc:"What happens to the pods when a workload is no longer split. 'keep': they stay as they are. 'recreate': they are replaced by pods without a node type, one at a time."`
}

// SpotEnabled reports whether the pods of workloads are split in the cluster.
func (c *Cluster) SpotEnabled() bool { return c.Spec.Spot != nil && c.Spec.Spot.Enabled }

// OnDisable is what happens to pods that are no longer split.
type OnDisable string

// Values of OnDisable.
const (
	// OnDisableKeep keeps them unchanged.
	OnDisableKeep OnDisable = "keep"
	// OnDisableRecreate replaces them with pods without the server's node selection rules.
	OnDisableRecreate OnDisable = "recreate"
)

// DefaultNodeTypeKey is the node label that distinguishes on-demand from spot nodes.
const DefaultNodeTypeKey = "node.kubernetes.io/capacity"

// kubernetesNameShape and kubernetesPrefixShape are the parts of a Kubernetes label key. Kubernetes
// is stricter than this server: with an invalid key, no pod could be created.
var (
	kubernetesNameShape   = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	kubernetesPrefixShape = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

// checkKubernetesKey checks a Kubernetes label key.
func checkKubernetesKey(key string) string {
	prefix, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		prefix, name = "", key
	}
	switch {
	case len(key) > 253+1+63:
		return fmt.Sprintf("must have at most %d characters, as the key of a label in Kubernetes, has %d", 253+1+63, len(key))
	case prefixed && (len(prefix) > 253 || !kubernetesPrefixShape.MatchString(prefix)):
		return fmt.Sprintf("the prefix %q of the key must be a domain in lowercase, such as \"example.com\"", prefix)
	case !kubernetesNameShape.MatchString(name):
		return fmt.Sprintf("the key %q must have 1 to 63 letters, digits, \"-\", \"_\" or \".\", and start and end with a letter or digit", name)
	}
	return ""
}

// SpotStatus is the state of spot handling in a cluster.
type SpotStatus struct {
	OnDemandNodes int64 `json:"on_demand_nodes" doc:"Number of on-demand nodes that accept pods."`
	SpotNodes     int64 `json:"spot_nodes" doc:"Number of spot nodes that accept pods."`
	EndingNodes   int64 `json:"ending_nodes,omitempty" doc:"Number of nodes that announced their termination."`
	Workloads     int64 `json:"workloads" doc:"Number of workloads whose pods are split."`
	Converged     int64 `json:"converged" doc:"Number of those workloads that have reached their split."`
	Pods          int64 `json:"pods" doc:"Number of pods of those workloads."`
	FallenBack    int64 `json:"fallen_back,omitempty" doc:"Number of pods meant for spot nodes that run on on-demand nodes."`
}

// Interruption announces that a node of a cluster will be terminated.
type Interruption struct {
	Deadline *time.Time `json:"deadline,omitempty" doc:"When the node terminates. If omitted, in two minutes."`
}
