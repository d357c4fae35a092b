package api

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// SpotSpec switches on that workloads are split over the on-demand and spot nodes
// of a cluster.
type SpotSpec struct {
	Enabled     bool      `json:"enabled,omitempty" doc:"Split the pods of workloads that ask for it. Needs a kubeconfig."`
	NodeTypeKey string    `json:"node_type_key,omitempty" doc:"Label of nodes that says which they are. Default \"node.kubernetes.io/capacity\" with the values on-demand and spot; those of Karpenter, EKS, GKE and AKS are known by their keys."`
	OnDisable   OnDisable `json:"on_disable,omitempty" enum:"keep,recreate" doc:"What becomes of the pods when a workload is not split any more. keep (default): they stay as they are. recreate: they are replaced, one after the other."`
}

// SpotEnabled reports whether the pods of workloads are split in the cluster.
func (c *Cluster) SpotEnabled() bool { return c.Spec.Spot != nil && c.Spec.Spot.Enabled }

// OnDisable says what becomes of pods that are not to be split any more.
type OnDisable string

// What becomes of pods that are not to be split any more.
const (
	// OnDisableKeep leaves them alone.
	OnDisableKeep OnDisable = "keep"
	// OnDisableRecreate replaces them by pods without our rules.
	OnDisableRecreate OnDisable = "recreate"
)

// DefaultNodeTypeKey is the label of nodes that says which they are.
const DefaultNodeTypeKey = "node.kubernetes.io/capacity"

func (s *SpotSpec) setDefaults() {
	if s.NodeTypeKey == "" {
		s.NodeTypeKey = DefaultNodeTypeKey
	}
	if s.OnDisable == "" {
		s.OnDisable = OnDisableKeep
	}
}

// kubernetesNameShape and kubernetesPrefixShape are the parts of a label's key as
// Kubernetes takes them, which is stricter than what the labels of this server may be:
// a rule with another key would keep every pod from being created.
var (
	kubernetesNameShape   = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	kubernetesPrefixShape = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

// checkKubernetesKey accepts the keys of labels in Kubernetes.
func checkKubernetesKey(key string) string {
	prefix, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		prefix, name = "", key
	}
	switch {
	case len(key) > 253+1+63:
		return fmt.Sprintf("has %d characters, more than a label of Kubernetes may have", len(key))
	case prefixed && (len(prefix) > 253 || !kubernetesPrefixShape.MatchString(prefix)):
		return fmt.Sprintf("the prefix %q of the key must be a domain in lower case, such as \"example.com\"", prefix)
	case !kubernetesNameShape.MatchString(name):
		return fmt.Sprintf("the key %q must have 1 to 63 letters, digits, \"-\", \"_\" or \".\", and start and end with a letter or digit", name)
	}
	return ""
}

func (s *SpotSpec) validate(errs *FieldErrors, field string) {
	errs.check(field+".node_type_key", checkKubernetesKey(s.NodeTypeKey))
	errs.check(field+".on_disable", oneOf(s.OnDisable, OnDisableKeep, OnDisableRecreate))
}

// SpotStatus is what the server does about the spot nodes of a cluster.
type SpotStatus struct {
	OnDemandNodes int64 `json:"on_demand_nodes" doc:"Nodes that take pods and are on-demand."`
	SpotNodes     int64 `json:"spot_nodes" doc:"Nodes that take pods and are spot."`
	EndingNodes   int64 `json:"ending_nodes,omitempty" doc:"Nodes that announced their end."`
	Workloads     int64 `json:"workloads" doc:"Workloads whose pods are split."`
	Converged     int64 `json:"converged" doc:"Those of them that have their split."`
	Pods          int64 `json:"pods" doc:"Pods of those workloads."`
	FallenBack    int64 `json:"fallen_back,omitempty" doc:"Pods for spot nodes that run on on-demand ones."`
}

// Interruption announces that a node of a cluster ends.
type Interruption struct {
	Deadline *time.Time `json:"deadline,omitempty" doc:"When the node ends. Default: in two minutes."`
}
