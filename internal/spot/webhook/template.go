package webhook

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// Pinned returns the only node type that the rules of a workload's pods allow, or Unset if they
// allow both or none. It examines a template, which the webhook does not change.
func Pinned(template *corev1.PodSpec, label spot.Label) split.NodeType {
	if template.NodeSelector == nil && template.Affinity == nil {
		return split.Unset
	}
	data, err := json.Marshal(corev1.PodSpec{NodeSelector: template.NodeSelector, Affinity: template.Affinity})
	if err != nil {
		return split.Unset
	}
	var s podSpec
	if err := json.Unmarshal(data, &s); err != nil {
		return split.Unset
	}
	return s.pinned(label)
}
