package webhook

import (
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// FuzzReview sends arbitrary bodies to arbitrary paths. The response is an error or belongs to the request, and a patch
// applies to its object.
func FuzzReview(f *testing.F) {
	// In the order of the paths. They are short, so that the fuzzer tries more.
	pod := `"kind":{"kind":"Pod"},"operation":"CREATE","object":{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","controller":true}]},"spec":{`
	for i, request := range []string{
		pod + `"affinity":{"nodeAffinity":null}}}`,
		`"kind":{"kind":"Pod"},"operation":"UPDATE","object":{},"oldObject":{"metadata":{"labels":{"vacant.io/affinity":"spot"}}}`,
		`"kind":{"group":"apps","kind":"Deployment"},"operation":"CREATE","object":{"metadata":{"labels":{"vacant.io/optimize-scheduling-mode":"custom"}}}`,
		`"kind":{"kind":"ConfigMap"},"operation":"CREATE","dryRun":true,"object":{"metadata":{"labels":{"vacant.io/webhook-probe":"x"}}}`,
		pod + `"nodeSelector":{"karpenter.sh/capacity-type":"spot"},"tolerations":[{"operator":"Exists"}]}}`,
		pod + `"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{},{"matchFields":[{}]},{"matchExpressions":[{"key":"n","operator":"Gt","values":["3"]}]}]}}}}}`,
	} {
		f.Add(uint8(i), []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u",`+request+`}}`))
	}
	var servers []*Server
	for _, to := range []split.NodeType{split.OnDemand, split.Spot} {
		for _, key := range keysOf(nodeTypeKeys) {
			servers = append(servers, serverOf(f, always(Assignment{Type: to, Label: spot.LabelOf(key), Cost: new(int32(1))})))
		}
	}
	paths := []string{"pods", "pod-labels", "workloads", "probe"}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		s, path := servers[int(which)/len(paths)%len(servers)], paths[int(which)%len(paths)]
		w := post(s, path, string(body))
		if w.Code == 400 {
			return
		}
		var got admissionv1.AdmissionReview
		if err := json.Unmarshal(w.Body.Bytes(), &got); w.Code != 200 || err != nil || got.Response == nil {
			t.Fatalf("status %d, %v: %s", w.Code, err, w.Body)
		}
		if got.Response.UID == "" || !got.Response.Allowed && (got.Response.Result == nil || got.Response.Result.Message == "") {
			t.Fatalf("incomplete answer: %s", w.Body)
		}
		if got.Response.Patch == nil {
			return
		}
		var asked struct {
			Request struct{ Object json.RawMessage }
		}
		if err := json.Unmarshal(body, &asked); err != nil {
			t.Fatalf("patch for an unreadable request: %v", err)
		}
		patch, err := jsonpatch.DecodePatch(got.Response.Patch)
		if err == nil {
			_, err = patch.Apply(asked.Request.Object)
		}
		if err != nil {
			t.Fatalf("error %v in the patch %s", err, got.Response.Patch)
		}
	})
}
