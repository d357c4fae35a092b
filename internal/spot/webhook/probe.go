package webhook

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// answerProbe proves that a request arrived here and its response arrived back.
func answerProbe(_ context.Context, _ Cluster, r *request) answer {
	if !r.dryRun() || r.Operation != admissionv1.Create || !r.isObject("", "ConfigMap") {
		return allowed(resultUnchanged)
	}
	var configMap struct {
		Metadata marks `json:"metadata"`
	}
	if err := read(r.Object, &configMap); err != nil {
		return unread(err)
	}
	nonce, ok := configMap.Metadata.Labels[spot.LabelProbe]
	if !ok {
		return allowed(resultUnchanged)
	}
	a := answer{result: resultPatched}
	a.patch.addEntries("/metadata/annotations", configMap.Metadata.Annotations != nil, entry{spot.LabelProbe, nonce})
	return a
}
