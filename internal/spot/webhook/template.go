package webhook

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// Pinned is the one type of nodes that the rules of a workload's pods allow, and Unset
// where they allow both or none. It looks at a template, to which nothing of ours was
// added.
func Pinned(template *corev1.PodSpec, label spot.Label) spot.NodeType {
	if template.NodeSelector == nil && template.Affinity == nil {
		return spot.Unset
	}
	data, err := json.Marshal(corev1.PodSpec{NodeSelector: template.NodeSelector, Affinity: template.Affinity})
	if err != nil {
		return spot.Unset
	}
	var s podSpec
	if err := json.Unmarshal(data, &s); err != nil {
		return spot.Unset
	}
	return s.pinned(label)
}
