package spot

import (
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
)

// Label is a node label that says which type nodes have.
type Label struct {
	Key string
	// onDemand and spot are the values. Without values for on-demand, every node that is not spot
	// is on-demand.
	onDemand, spot []string
}

// labels are the known ones. If only spot nodes have the label, all others are on-demand.
var labels = []Label{
	{Key: api.DefaultNodeTypeKey, onDemand: []string{"on-demand"}, spot: []string{"spot"}},
	// Karpenter's reserved capacity is paid in advance and not interrupted.
	{Key: "karpenter.sh/capacity-type", onDemand: []string{"on-demand", "reserved"}, spot: []string{"spot"}},
	{Key: "eks.amazonaws.com/capacityType", onDemand: []string{"ON_DEMAND", "CAPACITY_BLOCK"}, spot: []string{"SPOT"}},
	{Key: "cloud.google.com/gke-spot", spot: []string{"true"}},
	{Key: "kubernetes.azure.com/scalesetpriority", spot: []string{"spot"}},
}

// LabelOf returns the label with a key. An unknown key has the values on-demand and spot.
func LabelOf(key string) Label {
	if i := slices.IndexFunc(labels, func(l Label) bool { return l.Key == key }); i >= 0 {
		return labels[i]
	}
	return Label{Key: key, onDemand: []string{"on-demand"}, spot: []string{"spot"}}
}

// TypeOf returns the type of a node with the given labels.
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

// Requirement is a Kubernetes node selector requirement.
type Requirement struct {
	Key      string
	Operator string // In or NotIn; NotIn also matches nodes without the label
	Values   []string
}

// Requirement returns the requirement that only nodes of a type meet.
func (l Label) Requirement(t split.NodeType) Requirement {
	switch {
	case t == split.Spot:
		return Requirement{l.Key, "In", l.spot}
	case l.onDemand == nil:
		return Requirement{l.Key, "NotIn", l.spot}
	}
	return Requirement{l.Key, "In", l.onDemand}
}

// Taint returns the taint with which providers, or owners of clusters, keep other pods off spot
// nodes. Pods for spot nodes must tolerate it.
func (l Label) Taint() (key, value string) { return l.Key, l.spot[0] }
