package split

import "time"

// NodeType is a type of nodes, or the type that a pod is meant for.
type NodeType string

// Node types.
const (
	// Unset is unknown, or left to the Kubernetes scheduler.
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

// Plus adds a pod; a pod without a type is not counted.
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

// Pod is what the rules use of a pod.
type Pod struct {
	Name string
	UID  string
	// For is the type that the pod was created for, or Unset.
	For NodeType
	// On is the type of its node, or Unset if it is not scheduled or the node has no type.
	On          NodeType
	Node        string
	Ready       bool
	Terminating bool
	Created     time.Time
	// Ordinal is the ordinal of a StatefulSet's pod.
	Ordinal int
	// Pinned says that the pod's own rules allow only one node type, so that its replacement would
	// have the same type.
	Pinned bool
	// Ends is when its node ends; zero means never.
	Ends time.Time
}

// capacityType returns the type that the pod counts as: the one it was created for, otherwise that
// of its node. A spot pod that found no spot node and runs on an on-demand node counts as spot:
// otherwise it would be replaced over and over.
func (p *Pod) capacityType() NodeType {
	if p.For != Unset {
		return p.For
	}
	return p.On
}

// FallenBack reports whether the pod is meant for spot nodes and runs on an on-demand one.
func (p *Pod) FallenBack() bool { return p.For == Spot && p.On == OnDemand }

// Live counts the pods that are not terminating.
func Live(pods []Pod) Split {
	var s Split
	for i := range pods {
		if !pods[i].Terminating {
			s = s.Plus(pods[i].capacityType())
		}
	}
	return s
}
