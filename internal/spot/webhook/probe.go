package webhook

import (
	"context"

	"github.com/go-json-experiment/json"
)

// LabelProbe is the label of the ConfigMap with which it is tried whether the API
// server of a cluster reaches the webhook. The ConfigMap is never stored; it comes
// back with an annotation of the same name and value.
const LabelProbe = "vacant.io/webhook-probe"

// answerProbe proves that a request came here and its answer back.
func answerProbe(_ context.Context, _ Cluster, r *request) answer {
	if !r.DryRun || r.Operation != operationCreate || !r.isObject("", "ConfigMap") {
		return allowed(resultUnchanged)
	}
	var configMap struct {
		Metadata marks `json:"metadata"`
	}
	if err := json.Unmarshal(r.Object, &configMap); err != nil {
		return unread(err)
	}
	nonce, ok := configMap.Metadata.Labels[LabelProbe]
	if !ok {
		return allowed(resultUnchanged)
	}
	a := answer{result: resultPatched}
	a.patch.addEntries("/metadata/annotations", configMap.Metadata.Annotations != nil, entry{LabelProbe, nonce})
	return a
}
