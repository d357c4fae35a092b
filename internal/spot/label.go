package spot

import (
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
)

// Label is how nodes say of which type they are.
type Label struct {
	Key string
	// onDemand and spot are the values; without one for on-demand nodes, every node
	// that is not spot is on-demand.
	onDemand, spot []string
}

// labels are the known ones. Where only spot nodes have the label, the rest is
// on-demand.
var labels = []Label{
	{Key: api.DefaultNodeTypeKey, onDemand: []string{"on-demand"}, spot: []string{"spot"}},
	// Karpenter calls capacity that was paid for in advance reserved: it stays.
	{Key: "karpenter.sh/capacity-type", onDemand: []string{"on-demand", "reserved"}, spot: []string{"spot"}},
	{Key: "eks.amazonaws.com/capacityType", onDemand: []string{"ON_DEMAND", "CAPACITY_BLOCK"}, spot: []string{"SPOT"}},
	{Key: "cloud.google.com/gke-spot", spot: []string{"true"}},
	{Key: "kubernetes.azure.com/scalesetpriority", spot: []string{"spot"}},
}

// LabelOf is the label with a key. A key that is not known has the values on-demand
// and spot.
func LabelOf(key string) Label {
	if i := slices.IndexFunc(labels, func(l Label) bool { return l.Key == key }); i >= 0 {
		return labels[i]
	}
	return Label{Key: key, onDemand: []string{"on-demand"}, spot: []string{"spot"}}
}

// TypeOf is the type of a node with some labels.
func (l Label) TypeOf(nodeLabels map[string]string) split.NodeType {
	value, ok := nodeLabels[l.Key]
	switch {
	case ok && slices.Contains(l.spot, value):
		return split.Spot
	case l.onDemand == nil || ok && slices.Contains(l.onDemand, value):
		return split.OnDemand
	}
	return split.Unset
}

// Requirement is a rule about a label of nodes, in the words of Kubernetes.
type Requirement struct {
	Key      string
	Operator string // In or NotIn; NotIn also takes nodes without the label
	Values   []string
}

// Requirement is the rule that only nodes of a type follow.
func (l Label) Requirement(t split.NodeType) Requirement {
	switch {
	case t == split.Spot:
		return Requirement{l.Key, "In", l.spot}
	case l.onDemand == nil:
		return Requirement{l.Key, "NotIn", l.spot}
	}
	return Requirement{l.Key, "In", l.onDemand}
}

// Taint is what providers, or the owners of a cluster, keep other pods off spot nodes
// with: pods that are for these have to tolerate it.
func (l Label) Taint() (key, value string) { return l.Key, l.spot[0] }
