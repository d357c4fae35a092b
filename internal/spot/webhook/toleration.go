package webhook

import "github.com/scheduler/terraform-provider-scheduler/internal/spot"

// toleration lets a pod run on nodes with a taint.
type toleration struct {
	Key      string `json:"key"`
	Operator string `json:"operator"`
	Value    string `json:"value"`
	Effect   string `json:"effect"`
}

const effectNoSchedule = "NoSchedule"

// covers reports whether the toleration matches a taint that keeps new pods away.
func (t toleration) covers(key, value string) bool {
	if t.Effect != "" && t.Effect != effectNoSchedule {
		return false
	}
	switch t.Operator {
	case "Exists":
		return t.Key == "" || t.Key == key
	case "Equal", "":
		return t.Key == key && t.Value == value
	}
	return false
}

// tolerate adds a toleration for the taint of spot nodes.
func (s *podSpec) tolerate(out *patch, label spot.Label) {
	key, value := label.Taint()
	for _, t := range s.Tolerations {
		if t.covers(key, value) {
			return
		}
	}
	out.addElement(pathTolerations, len(s.Tolerations) > 0, toleration{
		Key: key, Operator: "Equal", Value: value, Effect: effectNoSchedule,
	})
}
