package split

import "time"

// NodeType is a type of nodes, as the label of a pod says which it is for.
type NodeType string

// The types of nodes.
const (
	// Unset is neither: not known, or left to the scheduler.
	Unset    NodeType = ""
	OnDemand NodeType = "on-demand"
	Spot     NodeType = "spot"
)

// Split is a number of pods of each type.
type Split struct{ OnDemand, Spot int64 }

// Total is the number of pods.
func (s Split) Total() int64 { return s.OnDemand + s.Spot }

// Of is the number of one type.
func (s Split) Of(t NodeType) int64 {
	switch t {
	case OnDemand:
		return s.OnDemand
	case Spot:
		return s.Spot
	case Unset:
	}
	return 0
}

// Plus counts one more pod; one of no type is not counted.
func (s Split) Plus(t NodeType) Split {
	switch t {
	case OnDemand:
		s.OnDemand++
	case Spot:
		s.Spot++
	case Unset:
	}
	return s
}

// Pod is what the rules look at of a pod.
type Pod struct {
	Name string
	UID  string
	// For is what the pod was created for, Unset where nobody said.
	For NodeType
	// On is the type of the node that it runs on, Unset where it runs nowhere yet or
	// the node does not say.
	On          NodeType
	Node        string
	Ready       bool
	Terminating bool
	Created     time.Time
	// Ordinal is the number of a StatefulSet's pod.
	Ordinal int
	// Pinned says that the pod's own rules allow one type of nodes only, so that
	// another pod in its place would be of the same.
	Pinned bool
	// Ends is when its node ends, zero for never.
	Ends time.Time
}

// capacityType is what the pod counts as: what it was created for, and otherwise the type
// of the node that it runs on. A pod for spot nodes that found none and runs on an
// on-demand node counts as one for spot: replacing it would change nothing, for ever.
func (p *Pod) capacityType() NodeType {
	if p.For != Unset {
		return p.For
	}
	return p.On
}

// FallenBack reports whether the pod is for spot nodes and runs on an on-demand one.
func (p *Pod) FallenBack() bool { return p.For == Spot && p.On == OnDemand }

// Live counts the pods that are not going.
func Live(pods []Pod) Split {
	var s Split
	for i := range pods {
		if !pods[i].Terminating {
			s = s.Plus(pods[i].capacityType())
		}
	}
	return s
}
